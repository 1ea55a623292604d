"""Error sums between a source and what is stored, in binary64, in an order that the block alone fixes.

Each line of 128 lanes adds its four quarters, as (first + second) + (third + fourth), to 32 accumulators that take
line after line; at the end the 32 are added in order.
"""

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
SUMS = 5  # (x-y)^2, x^2, y^2, x*y, max |x-y|; accumulators of one sum lie together


@inline
def add_four(
    x0: float,
    x1: float,
    x2: float,
    x3: float,
    y0: float,
    y1: float,
    y2: float,
    y3: float,
    lane: int,
    sums: Array,
) -> None:
    """Add one lane of each quarter to its accumulators in `sums` [SUMS * COLUMNS]."""
    d0, d1, d2, d3 = x0 - y0, x1 - y1, x2 - y2, x3 - y3
    sums[lane] += (d0 * d0 + d1 * d1) + (d2 * d2 + d3 * d3)
    sums[lane + 32] += (x0 * x0 + x1 * x1) + (x2 * x2 + x3 * x3)
    sums[lane + 64] += (y0 * y0 + y1 * y1) + (y2 * y2 + y3 * y3)
    sums[lane + 96] += (x0 * y0 + x1 * y1) + (x2 * y2 + x3 * y3)
    d0, d1, d2, d3 = abs(d0), abs(d1), abs(d2), abs(d3)
    d0, d2 = d0 if d0 > d1 else d1, d2 if d2 > d3 else d3
    d0 = d0 if d0 > d2 else d2
    sums[lane + 128] = d0 if d0 > sums[lane + 128] else sums[lane + 128]


@inline
def add_lines(x: Array, y: Array, lines: int, sums: Array) -> None:
    """Add whole lines of values x and y, in binary64."""
    left, right = x.reshape((TILE, LINE)), y.reshape((TILE, LINE))
    for i in range(lines):
        for lane in range(32):
            add_four(
                np.float64(left[i, lane]),
                np.float64(left[i, lane + 32]),
                np.float64(left[i, lane + 64]),
                np.float64(left[i, lane + 96]),
                np.float64(right[i, lane]),
                np.float64(right[i, lane + 32]),
                np.float64(right[i, lane + 64]),
                np.float64(right[i, lane + 96]),
                lane,
                sums,
            )


@inline
def add_code_lines(x: Array, codes: Array, quarters: Array, lines: int, sums: Array) -> None:
    """Add whole lines of values x and of codes times scales, a product that is exact in binary32 already."""
    left, right = x.reshape((TILE, LINE)), codes.reshape((TILE, LINE))
    for i in range(lines):
        a, b = np.float64(quarters[4 * i]), np.float64(quarters[4 * i + 1])
        c, d = np.float64(quarters[4 * i + 2]), np.float64(quarters[4 * i + 3])
        for lane in range(32):
            add_four(
                np.float64(left[i, lane]),
                np.float64(left[i, lane + 32]),
                np.float64(left[i, lane + 64]),
                np.float64(left[i, lane + 96]),
                np.float64(right[i, lane]) * a,
                np.float64(right[i, lane + 32]) * b,
                np.float64(right[i, lane + 64]) * c,
                np.float64(right[i, lane + 96]) * d,
                lane,
                sums,
            )


@inline
def total(sums: Array, out: Array) -> None:
    """Add the accumulators in order into `out` [SUMS]."""
    for column in range(COLUMNS):
        for k in range(4):
            out[k] += sums[k * COLUMNS + column]
        out[4] = max(out[4], sums[4 * COLUMNS + column])


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
    """Sums over the logical lanes of a block; the source, flat, is rounded to binary32 first."""
    codes, words = scratch(LANES).view(np.int8), scratch(4 * LANES).view(np.uint32)
    quarters = np.empty(QUARTERS, np.float32)
    sums = scratch(8 * SUMS * COLUMNS).view(np.float64)
    sums[:] = 0.0
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
            add_code_lines(words.view(np.float32), codes, quarters, lines, sums)
    total(sums, out)


@kernel
def words32(kind_x: int, source: Array, kind_y: int, stored: Array, out: Array) -> None:
    """Sums over two flat arrays of words of at most 32 bits."""
    x, y = scratch(4 * LANES).view(np.uint32), scratch(4 * LANES).view(np.uint32)
    sums = scratch(8 * SUMS * COLUMNS).view(np.float64)
    sums[:] = 0.0
    for start in range(0, source.size, LANES):
        lanes = min(LANES, source.size - start)
        lines = (lanes + LINE - 1) // LINE
        load(kind_x, source, start, lanes, lines, x)
        load(kind_y, stored, start, lanes, lines, y)
        add_lines(x.view(np.float32), y.view(np.float32), lines, sums)
    total(sums, out)


@kernel
def words64(source: Array, stored: Array, out: Array) -> None:
    """Sums over two flat arrays of binary64 values."""
    x, y = np.zeros(LANES, np.float64), np.zeros(LANES, np.float64)
    sums = scratch(8 * SUMS * COLUMNS).view(np.float64)
    sums[:] = 0.0
    for start in range(0, source.size, LANES):
        lanes = min(LANES, source.size - start)
        lines = (lanes + LINE - 1) // LINE
        x[:lanes], y[:lanes] = source[start : start + lanes], stored[start : start + lanes]
        x[lanes : lines * LINE], y[lanes : lines * LINE] = 0.0, 0.0
        add_lines(x, y, lines, sums)
    total(sums, out)
