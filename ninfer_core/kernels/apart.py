"""Two grouped matrices made of the same source rows: elements further apart than two roundings can bring them."""

import numpy as np

from ninfer_core.kernels.cache import inline, kernel
from ninfer_core.kernels.tiles import LANES, LINE, QUARTERS, TILE, Array, binary32_of_binary16, unpack

LARGEST_FINITE = 0x7BFF
SMALLEST_NORMAL = 0x0400


@inline
def prepare(
    bits: int,
    group: int,
    planes: tuple[Array, Array, Array],
    line: int,
    lines: int,
    lanes: int,
    codes: Array,
    scales: Array,
    reach: Array,
    rounding: float,
    clamp: float,
) -> None:
    """Codes of a tile, and of every quarter the scale and how far its source may lie from its values.

    Groups with a scale that is no scale get a reach of infinity: nothing is said of them.
    """
    base, high, words = planes
    unpack(bits, base, high, line, lines, codes)
    word = np.empty(1, np.uint32)
    for start in range(0, lanes, group):
        stored = np.int64(words[(line * LINE + start) // group])
        illegal = stored > LARGEST_FINITE
        if stored == 0:
            for lane in range(start, min(start + group, lanes)):
                illegal |= codes[lane] != 0
        word[0] = np.uint32(0 if illegal else binary32_of_binary16(stored))
        scale = np.float64(word.view(np.float32)[0])
        far = np.inf if illegal else scale * rounding + (clamp if 0 < stored < SMALLEST_NORMAL else 0.0)
        for quarter in range(start // 32, (start + group) // 32):
            scales[quarter], reach[quarter] = scale, far


@kernel
def rows_apart(
    a_bits: int,
    a_group: int,
    a: tuple[Array, Array, Array],
    a_clamp: float,
    b_bits: int,
    b_group: int,
    b: tuple[Array, Array, Array],
    b_clamp: float,
    columns: int,
    rounding: float,
    counts: Array,
) -> None:
    """Add to `counts`, int64 [rows], the elements of a row whose values lie further apart than both may reach.

    Planes are (base, high, scales). A value and its source differ by at most scale * `rounding`, and `clamp` more under
    a subnormal scale. Values, their difference and what it is compared with are binary64; but for the last all exact.
    """
    a_codes, b_codes = np.empty(LANES, np.int8), np.empty(LANES, np.int8)
    a_scales, b_scales = np.empty(QUARTERS, np.float64), np.empty(QUARTERS, np.float64)
    a_reach, b_reach = np.empty(QUARTERS, np.float64), np.empty(QUARTERS, np.float64)
    row_lines = (columns + LINE - 1) // LINE
    for row in range(counts.size):
        for first in range(0, row_lines, TILE):
            lines = min(TILE, row_lines - first)
            lanes = min(lines * LINE, columns - first * LINE)
            line = row * row_lines + first
            prepare(a_bits, a_group, a, line, lines, lanes, a_codes, a_scales, a_reach, rounding, a_clamp)
            prepare(b_bits, b_group, b, line, lines, lanes, b_codes, b_scales, b_reach, rounding, b_clamp)
            for quarter in range((lanes + 31) // 32):
                start, end = quarter * 32, min(quarter * 32 + 32, lanes)
                left, right = a_codes[start:end], b_codes[start:end]
                x, y, most = a_scales[quarter], b_scales[quarter], a_reach[quarter] + b_reach[quarter]
                wrong = 0
                for i in range(left.size):
                    wrong += abs(np.float64(left[i]) * x - np.float64(right[i]) * y) > most
                counts[row] += wrong
