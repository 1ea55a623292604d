"""Permutations of the inputs: what they may hold."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ninfer_core.findings import Findings
from ninfer_core.schemes.faults import report


def unsigned(permutation: NDArray[Any]) -> NDArray[Any]:
    """The indices; tools store those of sixteen bits as signed words for want of an unsigned type."""
    if permutation.dtype == np.int16:
        return np.ascontiguousarray(permutation).view(np.uint16)
    return permutation


def check_permutation(part: str, permutation: NDArray[Any], findings: Findings) -> None:
    """One finding for the entries that point outside or repeat an earlier one."""
    indices = unsigned(permutation)
    wide = indices.astype(np.int64)
    size = wide.size
    at_fault = (wide < 0) | (wide >= size)
    first = np.full(size, size, np.int64)
    inside = np.flatnonzero(~at_fault)
    np.minimum.at(first, wide[inside], inside)
    at_fault[inside] = first[wide[inside]] != inside
    message = "repeats an index or points outside"
    report(findings, "permutation_invalid", part, at_fault, indices, message, f"0 to {size - 1}, each once")
