"""The canonical encoder MAXABS_F16_RECIP_RNE_V1, compiled (tensor-formats section 7).

Why a flush-to-zero mode cannot alter a result: a subnormal binary32 source or quotient stays far below half of
2**-24, so its scale is rescued and its code is 0 whether or not it is flushed; zero is told from nonzero on
integer words; scales are widened and rounded by integers; the reciprocal lies within 2**-16 and 2**24.
"""

import numpy as np

from ninfer_core.kernels.cache import inline, kernel
from ninfer_core.kernels.tiles import (
    KIND_BF16,
    LANES,
    LINE,
    QUARTERS,
    TILE,
    Array,
    binary16_of_binary32,
    binary32_of_binary16,
    code_of_normalized,
    load,
    pack,
    scratch,
)


@inline
def largest_magnitudes(words: Array, group: int, lines: int, amax: Array) -> None:
    """The largest magnitude word of each group; infinities and NaN are larger than any finite one."""
    rows, mask = words.reshape((TILE, LINE)), np.uint32(0x7FFFFFFF)
    for i in range(lines):
        a, b, c, d = np.uint32(0), np.uint32(0), np.uint32(0), np.uint32(0)
        for lane in range(32):
            a = np.uint32(max(a, np.uint32(rows[i, lane] & mask)))
            b = np.uint32(max(b, np.uint32(rows[i, lane + 32] & mask)))
            c = np.uint32(max(c, np.uint32(rows[i, lane + 64] & mask)))
            d = np.uint32(max(d, np.uint32(rows[i, lane + 96] & mask)))
        if group == 32:
            amax[4 * i], amax[4 * i + 1], amax[4 * i + 2], amax[4 * i + 3] = a, b, c, d
        else:
            amax[2 * i], amax[2 * i + 1] = max(a, b), max(c, d)


@inline
def largest_bf16_magnitudes(rows: Array, group: int, amax: Array) -> None:
    """The same of lines of BF16 words, as binary32 words."""
    mask = np.uint16(0x7FFF)
    for i in range(rows.shape[0]):
        a, b, c, d = np.uint16(0), np.uint16(0), np.uint16(0), np.uint16(0)
        for lane in range(32):
            a = np.uint16(max(a, np.uint16(rows[i, lane] & mask)))
            b = np.uint16(max(b, np.uint16(rows[i, lane + 32] & mask)))
            c = np.uint16(max(c, np.uint16(rows[i, lane + 64] & mask)))
            d = np.uint16(max(d, np.uint16(rows[i, lane + 96] & mask)))
        if group == 32:
            amax[4 * i], amax[4 * i + 1], amax[4 * i + 2], amax[4 * i + 3] = a, b, c, d
        else:
            amax[2 * i], amax[2 * i + 1] = max(a, b), max(c, d)
    for i in range(rows.size // group):
        amax[i] = np.uint32(amax[i] << np.uint32(16))


@inline
def scales_of(
    amax: Array, groups: int, qmax: int, scales: Array, wide: Array, inverse: Array, counts: Array
) -> bool:
    """Scale words, their values and reciprocals, group by group of a tile; true when one of them must be refused."""
    own, top, own_words = inverse[:groups], amax[:groups], inverse[:groups].view(np.uint32)
    values, value_words = wide[:groups], wide[:groups].view(np.uint32)
    top_values = top.view(np.float32)
    divisor = np.float32(qmax)
    refused, rescued = np.uint32(0), np.uint32(0)
    for i in range(own.size):
        own[i] = top_values[i] / divisor
    for i in range(own.size):
        word = np.uint32(binary16_of_binary32(np.int32(own_words[i])))
        zero = top[i] == 0
        rescued += np.uint32(word == 0 and not zero)
        word = np.uint32(0) if zero else max(word, np.uint32(1))
        refused |= np.uint32(top[i] >= np.uint32(0x7F800000)) | np.uint32(word >= np.uint32(0x7C00))
        scales[i] = np.uint16(word)
    for i in range(own.size):
        value_words[i] = np.uint32(binary32_of_binary16(np.int32(scales[i])))
    for i in range(own.size):
        # The codes of an all-zero group are 0 whatever it is multiplied by; 1 keeps the division tame.
        own[i] = np.float32(1) / (values[i] if scales[i] != 0 else np.float32(1))
    counts[0] += rescued
    return bool(refused != 0)


@inline
def factors_of(inverse: Array, group: int, line: int) -> tuple[float, float, float, float]:
    """The reciprocals of the four quarters of a line."""
    if group == 32:
        return inverse[4 * line], inverse[4 * line + 1], inverse[4 * line + 2], inverse[4 * line + 3]
    return inverse[2 * line], inverse[2 * line], inverse[2 * line + 1], inverse[2 * line + 1]


@inline
def codes_of(values: Array, inverse: Array, group: int, lines: int, codes: Array) -> None:
    """Rounded products value * reciprocal, not clamped yet."""
    rows, out = values.reshape((TILE, LINE)), codes.reshape((TILE, LINE))
    for i in range(lines):
        a, b, c, d = factors_of(inverse, group, i)
        for lane in range(32):
            out[i, lane] = np.int8(np.int32(np.rint(rows[i, lane] * a)))
            out[i, lane + 32] = np.int8(np.int32(np.rint(rows[i, lane + 32] * b)))
            out[i, lane + 64] = np.int8(np.int32(np.rint(rows[i, lane + 64] * c)))
            out[i, lane + 96] = np.int8(np.int32(np.rint(rows[i, lane + 96] * d)))


@inline
def bf16_product(word: int, factor: float) -> int:
    """The rounded product of a BF16 word and a reciprocal."""
    code: int = np.int32(np.rint(np.uint32(np.uint32(word) << np.uint32(16)).view(np.float32) * factor))  # type: ignore[assignment]
    return code


@inline
def codes_of_bf16(rows: Array, inverse: Array, group: int, codes: Array) -> None:
    """The same from lines of BF16 words, without a stop in memory."""
    out = codes.reshape((TILE, LINE))
    for i in range(rows.shape[0]):
        a, b, c, d = factors_of(inverse, group, i)
        for lane in range(32):
            out[i, lane] = np.int8(bf16_product(rows[i, lane], a))
            out[i, lane + 32] = np.int8(bf16_product(rows[i, lane + 32], b))
            out[i, lane + 64] = np.int8(bf16_product(rows[i, lane + 64], c))
            out[i, lane + 96] = np.int8(bf16_product(rows[i, lane + 96], d))


@inline
def clamp_subnormal(
    values: Array, inverse: Array, scales: Array, group: int, groups: int, qmin: int, qmax: int, codes: Array
) -> int:
    """Redo, with the clamp, the groups whose scale is subnormal; the number of lanes it changed.

    A normal scale is within a factor 1 + 2**-11 of amax / qmax, so no product comes near qmax + 1/2.
    """
    clamped = 0
    for i in range(groups):
        if 0 < scales[i] < 0x400:
            for lane in range(i * group, (i + 1) * group):
                rounded = np.int64(np.rint(values[lane] * inverse[i]))
                code = code_of_normalized(rounded, qmin, qmax)
                clamped += code != rounded
                codes[lane] = np.int8(code)
    return clamped


@inline
def holds_subnormal(scales: Array) -> bool:
    """True when some scale is a subnormal binary16 number."""
    hit = np.uint16(0)
    for i in range(scales.size):
        hit |= np.uint16(np.uint16(scales[i] - np.uint16(1)) < np.uint16(0x3FF))
    return bool(hit != 0)


@inline
def first_refused(amax: Array, scales: Array, groups: int) -> int:
    """The first group of a tile that the encoder refuses, or -1."""
    for i in range(groups):
        if amax[i] >= 0x7F800000 or scales[i] >= 0x7C00:
            return i
    return -1


@kernel
def encode_block(
    kind: int,
    source: Array,
    rows: int,
    columns: int,
    bits: int,
    group: int,
    qmax: int,
    base: Array,
    high: Array,
    scales: Array,
    counts: Array,
) -> int:
    """Encode `rows` x `columns` source words, as bytes, into planes; counts [rescued, clamped] are added to.

    Returns the first physical group that must be refused, or -1.
    """
    words, codes = scratch(4 * LANES).view(np.uint32), scratch(LANES).view(np.int8)
    values = words.view(np.float32)
    amax, wide = np.empty(QUARTERS, np.uint32), np.empty(QUARTERS, np.float32)
    inverse = np.empty(QUARTERS, np.float32)
    pairs = source.view(np.uint16)
    row_lines, per_line = (columns + LINE - 1) // LINE, LINE // group
    qmin = -127 if bits == 8 else -qmax - 1
    for row in range(rows):
        for first in range(0, row_lines, TILE):
            lines = min(TILE, row_lines - first)
            lanes = min(lines * LINE, columns - first * LINE)
            line, groups = row * row_lines + first, lines * per_line
            own = scales[line * per_line : line * per_line + groups]
            start = row * columns + first * LINE
            direct = kind == KIND_BF16 and lanes == lines * LINE
            rows16 = pairs[start : start + direct * lanes].reshape((direct * lines, LINE))
            if direct:
                largest_bf16_magnitudes(rows16, group, amax)
            else:
                load(kind, source, start, lanes, lines, words)
                largest_magnitudes(words, group, lines, amax)
            if scales_of(amax, groups, qmax, own, wide, inverse, counts):
                return int(line * per_line + first_refused(amax, own, groups))
            if direct:
                codes_of_bf16(rows16, inverse, group, codes)
            else:
                codes_of(values, inverse, group, lines, codes)
            if holds_subnormal(own):
                load(kind, source, start, lanes, lines, words)
                counts[1] += clamp_subnormal(values, inverse, own, group, groups, qmin, qmax, codes)
            pack(bits, codes, line, lines, base, high)
    return -1
