"""Error sums between a source and what is stored, in binary64, in the order of PARITY_SUMS_V1.

Each row is cut into tiles. In a tile, line after line adds its four quarters, as (first + second) + (third + fourth),
to 32 accumulators; at its end these are folded by halves, and what is left is added to the block's sum. The squared
values of grouped formats are formed by groups: their squared codes are summed as integers.
"""

import math

import numpy as np

from ninfer_core.kernels.cache import inline, kernel
from ninfer_core.kernels.tiles import (
    LANES,
    LINE,
    QUARTERS,
    TILE,
    Array,
    load,
    scratch,
    unpack,
    widen_scales,
)

COLUMNS = 32
SUMS = 4  # (x-y)^2, x^2, y^2, max |x-y|; the accumulators of one sum lie together


@inline
def larger(a: float, b: float) -> float:
    """The larger of two numbers."""
    return a if a > b else b


@inline
def add_squares(x0: float, x1: float, x2: float, x3: float, place: int, sums: Array) -> None:
    """Add the squares of one lane of each quarter to the accumulator at `place`."""
    sums[place] += (x0 * x0 + x1 * x1) + (x2 * x2 + x3 * x3)


@inline
def add_errors(d0: float, d1: float, d2: float, d3: float, lane: int, sums: Array, farthest: Array) -> None:
    """Add the squared differences of one lane, and keep the largest in `farthest`, int64 [COLUMNS].

    Words of numbers that are not negative are ordered as they are, and a selection among integers is not stored under
    a mask. The root of a rounded square is the number itself unless the square is subnormal; none here is.
    """
    d0, d1, d2, d3 = d0 * d0, d1 * d1, d2 * d2, d3 * d3
    sums[lane] += (d0 + d1) + (d2 + d3)
    farthest[lane] = max(farthest[lane], np.float64(larger(larger(d0, d1), larger(d2, d3))).view(np.int64))


@inline
def add_lines(x: Array, y: Array, lines: int, sums: Array, farthest: Array) -> None:
    """Add whole lines of binary32 values x and y."""
    left, right = x.reshape((TILE, LINE)), y.reshape((TILE, LINE))
    for i in range(lines):
        for lane in range(32):
            x0, x1 = np.float64(left[i, lane]), np.float64(left[i, lane + 32])
            x2, x3 = np.float64(left[i, lane + 64]), np.float64(left[i, lane + 96])
            y0, y1 = np.float64(right[i, lane]), np.float64(right[i, lane + 32])
            y2, y3 = np.float64(right[i, lane + 64]), np.float64(right[i, lane + 96])
            add_errors(x0 - y0, x1 - y1, x2 - y2, x3 - y3, lane, sums, farthest)
            add_squares(x0, x1, x2, x3, lane + 32, sums)
            add_squares(y0, y1, y2, y3, lane + 64, sums)


@inline
def add_code_lines(x: Array, codes: Array, quarters: Array, lines: int, sums: Array, farthest: Array) -> None:
    """Add whole lines of values x and of codes times scales, but for the squares of these."""
    left, right = x.reshape((TILE, LINE)), codes.reshape((TILE, LINE))
    for i in range(lines):
        a, b = np.float64(quarters[4 * i]), np.float64(quarters[4 * i + 1])
        c, d = np.float64(quarters[4 * i + 2]), np.float64(quarters[4 * i + 3])
        for lane in range(32):
            x0, x1 = np.float64(left[i, lane]), np.float64(left[i, lane + 32])
            x2, x3 = np.float64(left[i, lane + 64]), np.float64(left[i, lane + 96])
            add_errors(
                x0 - np.float64(right[i, lane]) * a,
                x1 - np.float64(right[i, lane + 32]) * b,
                x2 - np.float64(right[i, lane + 64]) * c,
                x3 - np.float64(right[i, lane + 96]) * d,
                lane,
                sums,
                farthest,
            )
            add_squares(x0, x1, x2, x3, lane + 32, sums)


@inline
def square_groups(
    codes: Array, quarters: Array, group: int, lines: int, squares: Array, places: Array
) -> None:
    """The sum of the squared values of each group of a tile into `places`, float64 [QUARTERS], zeros after them.

    `squares`, int32 [QUARTERS], takes the sums of the squared codes.
    """
    rows = codes.reshape((TILE, LINE))
    if group == 64:
        for i in range(lines):
            a, b = np.int32(0), np.int32(0)
            for lane in range(64):
                # The compiler multiplies and adds pairs of 16-bit lanes when it sees them as such.
                p, q = np.int16(rows[i, lane]), np.int16(rows[i, lane + 64])
                a = np.int32(a + np.int32(np.int32(p) * np.int32(p)))
                b = np.int32(b + np.int32(np.int32(q) * np.int32(q)))
            squares[2 * i], squares[2 * i + 1] = a, b
    else:
        for i in range(lines):
            a, b, c, d = np.int32(0), np.int32(0), np.int32(0), np.int32(0)
            for lane in range(32):
                p, q = np.int16(rows[i, lane]), np.int16(rows[i, lane + 32])
                r, s = np.int16(rows[i, lane + 64]), np.int16(rows[i, lane + 96])
                a = np.int32(a + np.int32(np.int32(p) * np.int32(p)))
                b = np.int32(b + np.int32(np.int32(q) * np.int32(q)))
                c = np.int32(c + np.int32(np.int32(r) * np.int32(r)))
                d = np.int32(d + np.int32(np.int32(s) * np.int32(s)))
            squares[4 * i], squares[4 * i + 1], squares[4 * i + 2], squares[4 * i + 3] = a, b, c, d
    groups, per_group = lines * (LINE // group), group // 32
    for i in range(groups):
        scale = np.float64(quarters[i * per_group])
        places[i] = np.float64(squares[i]) * (scale * scale)
    places[groups:] = 0.0


@inline
def fold(values: Array, count: int) -> float:
    """The sum of `count` numbers, a power of two: the upper half is added to the lower, until one is left."""
    for half in (64, 32, 16, 8, 4):
        if half < count:
            low, high = values[:half], values[half : 2 * half]
            for i in range(low.size):
                low[i] += high[i]
    result: float = (values[0] + values[2]) + (values[1] + values[3])
    return result


@inline
def close_tile(count: int, sums: Array, out: Array) -> None:
    """Add the accumulators of the first `count` sums of a tile to `out` and clear them."""
    for k in range(count):
        out[k] += fold(sums[k * COLUMNS : (k + 1) * COLUMNS], COLUMNS)
    sums[:] = 0.0


@inline
def close_block(farthest: Array, out: Array) -> None:
    """The largest difference of the block."""
    largest = np.float64(0.0)
    for square in farthest.view(np.float64):
        largest = larger(largest, square)
    out[3] = math.sqrt(largest)


@inline
def cut_scales(quarters: Array, group: int, lanes: int, lines: int) -> None:
    """Zero the scales of groups without a logical lane."""
    quarters[(lanes + group - 1) // group * (group // 32) : 4 * lines] = 0.0


@kernel
def grouped(
    bits: int,
    group: int,
    rows: int,
    columns: int,
    base: Array,
    high: Array,
    scales: Array,
    kind: int,
    source: Array,
    out: Array,
) -> None:
    """Sums over the logical lanes of a block; the source, as bytes, is rounded to binary32 first."""
    codes, words = scratch(LANES).view(np.int8), scratch(4 * LANES).view(np.uint32)
    quarters, squares = np.empty(QUARTERS, np.float32), np.empty(QUARTERS, np.int32)
    places = scratch(8 * QUARTERS).view(np.float64)
    sums, farthest = scratch(8 * 3 * COLUMNS).view(np.float64), scratch(8 * COLUMNS).view(np.int64)
    sums[:], farthest[:] = 0.0, 0
    row_lines = (columns + LINE - 1) // LINE
    for row in range(rows):
        for first in range(0, row_lines, TILE):
            lines = min(TILE, row_lines - first)
            lanes = min(lines * LINE, columns - first * LINE)
            line = row * row_lines + first
            load(kind, source, row * columns + first * LINE, lanes, lines, words)
            unpack(bits, base, high, line, lines, codes)
            codes[lanes : lines * LINE] = 0
            widen_scales(scales, group, line, lines, quarters)
            cut_scales(quarters, group, lanes, lines)
            add_code_lines(words.view(np.float32), codes, quarters, lines, sums, farthest)
            square_groups(codes, quarters, group, lines, squares, places)
            close_tile(2, sums, out)
            out[2] += fold(places, QUARTERS)
    close_block(farthest, out)


@kernel
def words(count: int, kind_x: int, source: Array, kind_y: int, stored: Array, out: Array) -> None:
    """Sums over two arrays of `count` words, as bytes, each rounded to binary32 first."""
    x, y = scratch(4 * LANES).view(np.uint32), scratch(4 * LANES).view(np.uint32)
    sums, farthest = scratch(8 * 3 * COLUMNS).view(np.float64), scratch(8 * COLUMNS).view(np.int64)
    sums[:], farthest[:] = 0.0, 0
    for start in range(0, count, LANES):
        lanes = min(LANES, count - start)
        lines = (lanes + LINE - 1) // LINE
        load(kind_x, source, start, lanes, lines, x)
        load(kind_y, stored, start, lanes, lines, y)
        add_lines(x.view(np.float32), y.view(np.float32), lines, sums, farthest)
        close_tile(3, sums, out)
    close_block(farthest, out)
