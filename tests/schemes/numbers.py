"""Comparison of decoded values: by words, and NaN only with NaN."""

from typing import Any

import numpy as np
from numpy.typing import NDArray


def normal(shape: int | tuple[int, ...], seed: int = 5) -> NDArray[np.float32]:
    """Values as weights have them, the same for a seed."""
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def sylvester(size: int) -> NDArray[np.float64]:
    """The signs of the Hadamard matrix: the parity of the bits that row and column have in common."""
    index = np.arange(size)
    common = np.array([[(row & column).bit_count() for column in index.tolist()] for row in index.tolist()])
    return np.where(common % 2 == 0, 1.0, -1.0)


def assert_same_numbers(ours: NDArray[Any], theirs: NDArray[Any]) -> None:
    """Equal binary32 words; NaN on both sides or on none, whatever its sign and payload."""
    assert ours.dtype == theirs.dtype == np.float32
    assert ours.shape == theirs.shape
    nan = np.isnan(theirs)
    np.testing.assert_array_equal(np.isnan(ours), nan)
    np.testing.assert_array_equal(ours[~nan].view(np.uint32), theirs[~nan].view(np.uint32))
