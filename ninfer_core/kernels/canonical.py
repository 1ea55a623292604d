"""A stored block held to the canonical encoding of its source, and its error sums, in one pass over both.

The encoder's codes are those of the sums, so nothing is unpacked and no plane is written; the first word that differs
ends the pass. From BF16, code and difference are formed side by side: a canonical code keeps the difference so short
that binary32 holds it exactly. For with a scale of m * 2**t, m of 11 bits, a code other than 0 means |x| of nearly
half a scale at least, so that x is a multiple of 2**t as the stored value is; and a code of 0 leaves x itself.
"""

import numpy as np

from ninfer_core.kernels.cache import inline, kernel
from ninfer_core.kernels.encode import (
    clamp_subnormal,
    codes_of,
    factors_of,
    holds_subnormal,
    largest_bf16_magnitudes,
    largest_magnitudes,
    scales_of,
)
from ninfer_core.kernels.parity import (
    COLUMNS,
    add_code_lines,
    add_errors,
    add_squares,
    close_block,
    close_tile,
    fold,
    square_groups,
)
from ninfer_core.kernels.tiles import (
    KIND_BF16,
    LANES,
    LINE,
    QUARTERS,
    TILE,
    Array,
    fifth_bits_of,
    load,
    nibbles_of,
    scratch,
    upper_bits_of,
)


@inline
def bf16_value(word: int) -> float:
    """The value of a BF16 word, in binary32."""
    value: float = np.uint32(np.uint32(word) << np.uint32(16)).view(np.float32)  # type: ignore[assignment]
    return value


@inline
def quarter(x: float, scale: float, rounded: float) -> float:
    """The difference of a source and its canonical value, exact in binary32, widened."""
    difference: float = np.float64(np.float32(x) - np.float32(rounded) * np.float32(scale))
    return difference


@inline
def add_bf16_lines(
    rows: Array, inverse: Array, wide: Array, group: int, codes: Array, sums: Array, farthest: Array
) -> None:
    """The codes of lines of BF16 words whose scales are normal, and their error sums."""
    out = codes.reshape((TILE, LINE))
    for i in range(rows.shape[0]):
        a, b, c, d = factors_of(inverse, group, i)
        s, t, u, v = factors_of(wide, group, i)
        for lane in range(32):
            x0, x1 = bf16_value(rows[i, lane]), bf16_value(rows[i, lane + 32])
            x2, x3 = bf16_value(rows[i, lane + 64]), bf16_value(rows[i, lane + 96])
            r0, r1, r2, r3 = np.rint(x0 * a), np.rint(x1 * b), np.rint(x2 * c), np.rint(x3 * d)
            out[i, lane], out[i, lane + 32] = np.int8(np.int32(r0)), np.int8(np.int32(r1))
            out[i, lane + 64], out[i, lane + 96] = np.int8(np.int32(r2)), np.int8(np.int32(r3))
            d0, d1, d2, d3 = quarter(x0, s, r0), quarter(x1, t, r1), quarter(x2, u, r2), quarter(x3, v, r3)
            add_errors(d0, d1, d2, d3, lane, sums, farthest)
            add_squares(np.float64(x0), np.float64(x1), np.float64(x2), np.float64(x3), lane + 32, sums)


@inline
def spread_scales(wide: Array, group: int, groups: int, quarters: Array) -> None:
    """The scale of every quarter of a tile from those of its groups."""
    if group == 32:
        for i in range(groups):
            quarters[i] = wide[i]
    else:
        for i in range(groups):
            quarters[2 * i] = wide[i]
            quarters[2 * i + 1] = wide[i]


@inline
def scales_differ(own: Array, stored: Array) -> bool:
    """True when the scale words of a tile are not those that are stored."""
    hit = np.uint16(0)
    for i in range(stored.size):
        hit = np.uint16(hit | np.uint16(own[i] ^ stored[i]))
    return bool(hit != 0)


@inline
def codes_differ(bits: int, codes: Array, line: int, lines: int, base: Array, high: Array) -> bool:
    """True when codes are not those of physical lines [line, line + lines): what `pack` makes, but never stored.

    An update in place (`|=`) would widen the bytes to 64 bits, an eighth of a vector's worth.
    """
    own, hit = codes[: lines * LINE], np.uint8(0)
    if bits == 8:
        stored = base[line * LINE : (line + lines) * LINE]
        for i in range(stored.size):
            hit = np.uint8(hit | np.uint8(np.uint8(own[i]) ^ stored[i]))
        return bool(hit != 0)
    pairs = own.view(np.uint16)
    nibbles = base[line * 64 : (line + lines) * 64]
    for i in range(nibbles.size):
        hit = np.uint8(hit | np.uint8(nibbles_of(pairs[i]) ^ nibbles[i]))
    if bits == 5:
        eights = own.view(np.uint64)
        fifth = high[line * 16 : (line + lines) * 16]
        for i in range(fifth.size):
            hit = np.uint8(hit | np.uint8(fifth_bits_of(eights[i]) ^ fifth[i]))
    elif bits == 6:
        fours = own.view(np.uint32)
        upper = high[line * 32 : (line + lines) * 32]
        for i in range(upper.size):
            hit = np.uint8(hit | np.uint8(upper_bits_of(fours[i]) ^ upper[i]))
    return bool(hit != 0)


@kernel
def grouped(
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
    out: Array,
) -> bool:
    """Whether the planes are the encoding of `rows` x `columns` source words, as bytes; if so, the sums are in `out`."""
    words, codes = scratch(4 * LANES).view(np.uint32), scratch(LANES).view(np.int8)
    values = words.view(np.float32)
    amax, own = np.empty(QUARTERS, np.uint32), np.empty(QUARTERS, np.uint16)
    wide, inverse = np.empty(QUARTERS, np.float32), np.empty(QUARTERS, np.float32)
    quarters, squares = np.empty(QUARTERS, np.float32), np.empty(QUARTERS, np.int32)
    places = scratch(8 * QUARTERS).view(np.float64)
    sums, farthest = scratch(8 * 3 * COLUMNS).view(np.float64), scratch(8 * COLUMNS).view(np.int64)
    sums[:], farthest[:] = 0.0, 0
    counts = np.zeros(2, np.int64)
    pairs = source.view(np.uint16)
    row_lines, per_line = (columns + LINE - 1) // LINE, LINE // group
    qmin = -127 if bits == 8 else -qmax - 1
    for row in range(rows):
        for first in range(0, row_lines, TILE):
            lines = min(TILE, row_lines - first)
            lanes = min(lines * LINE, columns - first * LINE)
            line, groups = row * row_lines + first, lines * per_line
            start = row * columns + first * LINE
            direct = kind == KIND_BF16 and lanes == lines * LINE
            rows16 = pairs[start : start + direct * lanes].reshape((direct * lines, LINE))
            if direct:
                largest_bf16_magnitudes(rows16, group, amax)
            else:
                load(kind, source, start, lanes, lines, words)
                largest_magnitudes(words, group, lines, amax)
            if scales_of(amax, groups, qmax, own, wide, inverse, counts):
                return False
            stored = scales[line * per_line : line * per_line + groups]
            if scales_differ(own, stored):
                return False
            spread_scales(wide, group, groups, quarters)
            if direct and not holds_subnormal(stored):
                add_bf16_lines(rows16, inverse, wide, group, codes, sums, farthest)
            else:
                load(kind, source, start, lanes, lines, words)
                codes_of(values, inverse, group, lines, codes)
                clamp_subnormal(values, inverse, own, group, groups, qmin, qmax, codes)
                add_code_lines(values, codes, quarters, lines, sums, farthest)
            if codes_differ(bits, codes, line, lines, base, high):
                return False
            square_groups(codes, quarters, group, lines, squares, places)
            close_tile(2, sums, out)
            out[2] += fold(places, QUARTERS)
    close_block(farthest, out)
    return True
