"""Comparison of decoded values: by words, and NaN only with NaN."""

from typing import Any

import numpy as np
from numpy.typing import NDArray


def assert_same_numbers(ours: NDArray[Any], theirs: NDArray[Any]) -> None:
    """Equal binary32 words; NaN on both sides or on none, whatever its sign and payload."""
    assert ours.dtype == theirs.dtype == np.float32
    assert ours.shape == theirs.shape
    nan = np.isnan(theirs)
    np.testing.assert_array_equal(np.isnan(ours), nan)
    np.testing.assert_array_equal(ours[~nan].view(np.uint32), theirs[~nan].view(np.uint32))
