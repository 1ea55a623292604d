"""How many codes of two grouped blocks of one shape differ: logical lanes only, padding never counts."""

import numpy as np

from ninfer_core.formats import GroupedFormat
from ninfer_core.kernels.cache import kernel
from ninfer_core.kernels.tiles import LANES, LINE, TILE, Array, scratch, unpack
from ninfer_core.kernels.values import GroupedPlanes

_NONE = -1


@kernel
def grouped(
    bits: int, rows: int, columns: int, base_a: Array, high_a: Array, base_b: Array, high_b: Array, out: Array
) -> None:
    """Count into `out[0]`; `out[1]` is the place of the first one, flat over [rows, columns], left alone without any."""
    codes_a, codes_b = scratch(LANES).view(np.int8), scratch(LANES).view(np.int8)
    row_lines = (columns + LINE - 1) // LINE
    for row in range(rows):
        for first in range(0, row_lines, TILE):
            lines = min(TILE, row_lines - first)
            lanes = min(lines * LINE, columns - first * LINE)
            line = row * row_lines + first
            unpack(bits, base_a, high_a, line, lines, codes_a)
            unpack(bits, base_b, high_b, line, lines, codes_b)
            left, right = codes_a[:lanes], codes_b[:lanes]
            count = np.int64(0)
            for i in range(left.size):
                count += np.int64(left[i] != right[i])
            if count and out[1] < 0:
                i = 0
                while left[i] == right[i]:
                    i += 1
                out[1] = row * columns + first * LINE + i
            out[0] += count


def changed_codes(
    fmt: GroupedFormat, rows: int, columns: int, a: GroupedPlanes, b: GroupedPlanes
) -> tuple[int, int | None]:
    """How many logical codes [rows, columns] differ, and the first one, flat; the planes have the same sizes."""
    out = np.array([0, _NONE], np.int64)
    grouped(fmt.code_bits, rows, columns, a.base, a.high, b.base, b.high, out)
    return int(out[0]), None if out[1] < 0 else int(out[1])
