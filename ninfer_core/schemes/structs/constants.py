"""Constants: inline tensors that take no payload. What makes one legal, and how many elements it has."""

import math
from typing import Final

from ninfer_core.schemes.structs.leaves import LEAVES
from ninfer_core.schemes.structs.model import Constant

MAX_UINT64 = 2**64 - 1
MAX_CONSTANT_RANK: Final = (
    64  # of a numpy array; the product of dimensions without end takes time without end
)


def constant_bytes(dtype: str, dims: tuple[int, ...]) -> int:
    """The bytes that a tensor of a leaf type takes; elements of less than a byte are packed, low bits first."""
    return (math.prod(dims) * LEAVES[dtype].bits + 7) // 8


def constant_fault(constant: Constant) -> tuple[str, object, object] | None:
    """Why a constant is none: message, expected, found; None for a legal one."""
    if constant.external:
        return "a constant cannot lie outside of its type.", "inline data", "external data"
    if constant.dtype not in LEAVES:
        return (
            f"{constant.dtype or 'nothing'} is no type of a constant.",
            ", ".join(LEAVES.names),
            constant.dtype,
        )
    if len(constant.dims) > MAX_CONSTANT_RANK:
        rank = len(constant.dims)
        return f"{rank:,} dimensions.", f"at most {MAX_CONSTANT_RANK} dimensions", rank
    if not all(0 <= dim <= MAX_UINT64 for dim in constant.dims):
        return f"dimensions {list(constant.dims)}.", "unsigned 64-bit integers", list(constant.dims)
    expected, found = constant_bytes(constant.dtype, constant.dims), len(constant.data)
    if expected != found:
        message = f"{found:,} bytes of data for {constant.dtype} {list(constant.dims)}."
        return message, f"{expected:,} bytes", f"{found:,} bytes"
    return None
