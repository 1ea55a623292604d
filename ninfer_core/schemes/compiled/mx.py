"""Blocks of four- and six-bit floats under one scale each: MX formats and NVFP4.

Tables and scales are arguments, in binary32: what a code and a scale word mean is decided in one place, outside.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ninfer_core.schemes.compiled.cache import kernel
from ninfer_core.schemes.compiled.spread import over_items, stored

Values = NDArray[np.float32]
Bytes = NDArray[np.uint8]


def four_bits(packed: Bytes, scales: Values, table: Values) -> Values:
    """[blocks, 2 n] values of packed [blocks, n] bytes, the first in the low nibble; scales [blocks], table [16]."""
    return _blocks(_four_bits, packed, scales, table, 2 * packed.shape[1])


def six_bits(packed: Bytes, scales: Values, table: Values) -> Values:
    """[blocks, 4 n] values of packed [blocks, 3 n] bytes, low bits first; scales [blocks], table [64]."""
    return _blocks(_six_bits, packed, scales, table, packed.shape[1] // 3 * 4)


def _blocks(run: Any, packed: Bytes, scales: Values, table: Values, values_each: int) -> Values:
    packed, scales, table = stored(packed), stored(scales), stored(table)
    out = np.empty((packed.shape[0], values_each), np.float32)
    over_items(packed.shape[0], values_each, lambda first, last: run(packed, scales, table, out, first, last))
    return out


@kernel
def _four_bits(packed: Any, scales: Any, table: Any, out: Any, first: int, last: int) -> None:
    for block in range(first, last):
        scale = scales[block]
        for place in range(packed.shape[1]):
            byte = packed[block, place]
            out[block, 2 * place] = table[byte & 15] * scale
            out[block, 2 * place + 1] = table[byte >> 4] * scale


@kernel
def _six_bits(packed: Any, scales: Any, table: Any, out: Any, first: int, last: int) -> None:
    for block in range(first, last):
        scale = scales[block]
        for group in range(packed.shape[1] // 3):
            low, middle, high = (
                np.uint32(packed[block, 3 * group]),
                np.uint32(packed[block, 3 * group + 1]),
                np.uint32(packed[block, 3 * group + 2]),
            )
            word = low | middle << np.uint32(8) | high << np.uint32(16)
            for place in range(4):
                code = word >> np.uint32(6 * place) & np.uint32(63)
                out[block, 4 * group + place] = table[code] * scale
