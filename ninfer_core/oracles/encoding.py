"""The encoder profiles over whole matrices, for more weights than the integer oracles of `encoders` can take.

Binary64 holds every product here exactly, and a quotient of two binary32 numbers so closely that rounding it a second
time gives what one rounding would (53 bits are more than twice 24 and 2). Every narrowing is by integers, so no mode of
the thread that flushes subnormals matters. Sources have to be encodable: whatever is refused is left to `encoders`.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ninfer_core.formats import GroupedFormat
from ninfer_core.words import (
    Words8,
    Words16,
    Words32,
    expand_bf16,
    expand_binary16,
    narrow_bf16,
    narrow_binary32,
    values_of_binary32,
)

Values = NDArray[np.float64]
_LARGEST_CODE: Final = 448.0


@dataclass(frozen=True, slots=True)
class GroupedMatrix:
    """Logical codes [N, K], scale words [N, groups], and what was bent on the way."""

    codes: NDArray[np.int8]
    scales: Words16
    rescued: int
    clamped: int


@dataclass(frozen=True, slots=True)
class RowMatrix:
    """E4M3FN words [N, K], BF16 words [N], and the lanes that the clamp changed."""

    codes: Words8
    scales: Words16
    clamped: int


def rounded32(values: Values) -> Words32:
    """Binary32 words nearest to values."""
    return narrow_binary32(np.ascontiguousarray(values).view(np.uint64))


def rounded16(magnitudes: Values) -> Words16:
    """Binary16 words nearest to magnitudes below 65520."""
    return _nearest(magnitudes, fraction_bits=10, bias=15)


def rounded_e4m3fn(magnitudes: Values) -> Words8:
    """E4M3FN words nearest to magnitudes of at most 448."""
    return _nearest(magnitudes, fraction_bits=3, bias=7).astype(np.uint8)


def _nearest(magnitudes: Values, *, fraction_bits: int, bias: int) -> Words16:
    exponent = np.frexp(magnitudes)[1]  # of a significand in [1/2, 1)
    # 1 stands for subnormal words and zero as well.
    exponent = np.where(magnitudes > 0, np.maximum(exponent - 1 + bias, 1), 1)
    steps = np.rint(np.ldexp(magnitudes, fraction_bits + bias - exponent)).astype(np.int64)
    words: Words16 = (steps + ((exponent - 1) << fraction_bits)).astype(np.uint16)
    return words


def encode_grouped(fmt: GroupedFormat, source: Words32) -> GroupedMatrix:
    """MAXABS_F16_RECIP_RNE_V1 of binary32 words [N, K]."""
    rows, columns = source.shape
    groups = -(-columns // fmt.group)
    x = np.zeros((rows, groups * fmt.group))
    x[:, :columns] = values_of_binary32(source)
    x = x.reshape(rows, groups, fmt.group)
    amax = np.abs(x).max(axis=2)
    scales = rounded16(values_of_binary32(rounded32(amax / fmt.qmax)))
    rescue = (scales == 0) & (amax > 0)
    scales[rescue] = 1
    inverse = _inverse(values_of_binary32(expand_binary16(scales)))
    normalized = values_of_binary32(rounded32(x * inverse[:, :, None]))
    nearest = np.rint(normalized)
    codes = np.clip(nearest, fmt.qmin, fmt.qmax)
    logical = codes.astype(np.int8).reshape(rows, -1)[:, :columns]
    return GroupedMatrix(logical, scales, int(rescue.sum()), int((codes != nearest).sum()))


def encode_rows(source: Words32) -> RowMatrix:
    """MAXABS_BF16S_RECIP_E4M3FN_RNE_V1 of binary32 words [N, K]."""
    x = values_of_binary32(source)
    amax = np.abs(x).max(axis=1)
    scales = narrow_bf16(rounded32(amax / _LARGEST_CODE))
    inverse = _inverse(values_of_binary32(expand_bf16(scales)))
    normalized = values_of_binary32(rounded32(np.abs(x) * inverse[:, None]))
    codes = rounded_e4m3fn(np.minimum(normalized, _LARGEST_CODE))
    signs = (source >> 24 & 0x80).astype(np.uint8)
    signs[scales == 0] = 0  # a zero row is all zeros of one sign
    return RowMatrix(codes | signs, scales, int((normalized > _LARGEST_CODE).sum()))


def _inverse(scales: Values) -> Values:
    """1 / scale rounded to binary32; 0 for a zero scale, under which every code is 0."""
    some = scales > 0
    return np.where(some, values_of_binary32(rounded32(1 / np.where(some, scales, 1.0))), 0.0)
