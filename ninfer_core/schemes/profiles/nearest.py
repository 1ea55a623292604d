"""Codes nearest to numbers, where the rules fix them: half to even, and always within the leaf's range (R5)."""

from fractions import Fraction
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ninfer_core.schemes.form import Values
from ninfer_core.schemes.profiles.leaf_values import SMALL
from ninfer_core.schemes.run import CannotEncode
from ninfer_core.schemes.small_floats import (
    E8M0_BIAS,
    encode,
    expand_e8m0,
)
from ninfer_core.schemes.structs.leaves import LEAVES
from ninfer_core.words import expand_binary16, narrow_bf16

Codes = NDArray[Any]
_AT_ONCE: Final = 1 << 22  # distances of one piece


def finite(values: NDArray[Any]) -> None:
    """Raises: CannotEncode for NaN or infinity, which integers and tables do not hold."""
    if not np.isfinite(values).all():
        raise CannotEncode("the values hold NaN or infinity, for which there is no code")


def integers(values: NDArray[Any], leaf: str, bits: int) -> Codes:
    """The nearest integers in the range of a leaf, or of an unsigned code of `bits` bits in a stream."""
    finite(values)
    signed = LEAVES[leaf].kind == "signed" and LEAVES[leaf].bits == bits
    low = -(1 << bits - 1) if signed else 0
    high = (1 << bits - signed) - 1
    return np.clip(np.rint(values.astype(np.float64)), low, high).astype(np.int64)


def floats(values: Values, leaf: str) -> Codes:
    """The words of a floating-point leaf nearest to values; small floats saturate."""
    if leaf in SMALL:
        try:
            return encode(SMALL[leaf], values)
        except ValueError as fault:
            raise CannotEncode(str(fault)) from fault
    words = np.ascontiguousarray(values, np.float32)
    if leaf == "BFLOAT16":
        return narrow_bf16(words.view(np.uint32))
    if leaf == "FLOAT16":
        return words.astype(np.float16).view(np.uint16)
    if leaf == "FLOAT":
        return words.view(np.uint32)
    if leaf == "DOUBLE":
        return words.astype(np.float64).view(np.uint64)
    raise CannotEncode(f"no rule says how values become {leaf}")


def entries(values: Values, table: Values) -> Codes:
    """The entry of `table` [entries, n] nearest to each of `values` [..., n]; between two, the one of even index."""
    finite(values)
    flat = values.reshape(-1, table.shape[1]).astype(np.float64)
    order = np.concatenate([np.arange(0, len(table), 2), np.arange(1, len(table), 2)])
    wide = table.astype(np.float64)[order]
    picks = np.empty(len(flat), np.int64)
    step = max(1, _AT_ONCE // max(1, wide.size))
    for start in range(0, len(flat), step):
        part = flat[start : start + step, None, :] - wide
        picks[start : start + step] = order[np.square(part).sum(axis=-1).argmin(axis=-1)]
    return picks.reshape(values.shape[:-1])


def scale_words(largest: Values, leaf: str, top: Fraction) -> tuple[Codes, Values]:
    """Scale words for blocks with these largest magnitudes, and the scales; `top` is the largest value of a code.

    E8M0 by the rule of the microscaling standard, floor(log2 largest) less that of the largest code; others so that the
    largest magnitude is the largest code.
    """
    finite(largest)
    words, scales = _scale_words(np.atleast_1d(largest), leaf, top)
    return words.reshape(np.shape(largest)), scales.reshape(np.shape(largest))


def _scale_words(largest: Values, leaf: str, top: Fraction) -> tuple[Codes, Values]:
    if leaf == "FLOAT8E8M0":
        exponents = np.frexp(largest)[1].astype(np.int64) - 1 - (floor_log2(top))
        words = np.where(largest > 0, np.clip(exponents + E8M0_BIAS, 0, 254), 0).astype(np.uint8)
        return words, expand_e8m0(words)
    wanted = (largest.astype(np.float64) / float(top)).astype(np.float32)
    if leaf == "FLOAT16":
        halves = np.minimum(wanted, np.float32(65504)).astype(np.float16).view(np.uint16)
        return halves, expand_binary16(halves).view(np.float32)
    words = floats(wanted, leaf)
    if leaf in SMALL:
        from ninfer_core.schemes.small_floats import decode

        return words, decode(SMALL[leaf], words)
    if leaf == "FLOAT":
        return words, wanted
    if leaf == "BFLOAT16":
        return words, (words.astype(np.uint32) << 16).view(np.float32)
    raise CannotEncode(f"no rule says how scales become {leaf}")


def floor_log2(value: Fraction) -> int:
    """The exponent of the largest power of two that is not above a positive number."""
    return (
        value.numerator.bit_length()
        - value.denominator.bit_length()
        - (value < Fraction(2) ** (value.numerator.bit_length() - value.denominator.bit_length()))
    )


def over(values: Values, scales: Values) -> Values:
    """values / scales in binary32; where a scale is 0, 0."""
    some = np.where(scales != 0, scales, np.float32(1))
    return np.asarray(np.where(scales != 0, values / some, np.float32(0)), np.float32)
