"""Blocks of codes that lie one after another in bytes, low bits first, or as indices into a table of sixteen.

Zero points and scales are arguments in binary32: differences of small integers are exact there.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ninfer_core.schemes.compiled.cache import kernel
from ninfer_core.schemes.compiled.spread import over_items, stored

Values = NDArray[np.float32]
Bytes = NDArray[np.uint8]


def affine(packed: Bytes, zeros: Values, scales: Values, bits: int, inputs: int) -> Values:
    """(code - zero) x scale [N, inputs] of packed codes [N, blocks, bytes] of 2, 4 or 8 bits.

    zeros and scales [N, blocks]; what the last block holds beyond the inputs is left out.
    """
    run = {2: _twos, 4: _fours, 8: _eights}[bits]
    packed, zeros, scales = stored(packed), stored(zeros), stored(scales)
    out = np.empty((len(packed), inputs), np.float32)
    over_items(len(packed), inputs, lambda first, last: run(packed, zeros, scales, out, first, last))
    return out


def pairs(packed: Bytes, table: Values, scales: Values, size: int, count: int) -> Values:
    """table[byte] x scale, two values for each byte of packed [bytes]: table [256, 2], a scale for each `size` values.

    `size` is even; the second value of the last byte is left out where `count` is odd.
    """
    packed, table, scales = stored(packed), stored(table), stored(scales)
    out = np.empty(count, np.float32)
    over_items(len(scales), size, lambda first, last: _pairs(packed, table, scales, size, out, first, last))
    return out


@kernel
def _fours(packed: Any, zeros: Any, scales: Any, out: Any, first: int, last: int) -> None:
    size = 2 * packed.shape[2]
    for n in range(first, last):
        for block in range(packed.shape[1]):
            codes, zero, scale = packed[n, block], zeros[n, block], scales[n, block]
            values = out[n, size * block : size * (block + 1)]
            for i in range(values.size // 2):
                byte = codes[i]
                values[2 * i] = (np.float32(byte & np.uint8(15)) - zero) * scale
                values[2 * i + 1] = (np.float32(byte >> np.uint8(4)) - zero) * scale
            if values.size % 2:
                i = values.size - 1
                values[i] = (np.float32(codes[i // 2] & np.uint8(15)) - zero) * scale


@kernel
def _twos(packed: Any, zeros: Any, scales: Any, out: Any, first: int, last: int) -> None:
    size = 4 * packed.shape[2]
    for n in range(first, last):
        for block in range(packed.shape[1]):
            codes, zero, scale = packed[n, block], zeros[n, block], scales[n, block]
            values = out[n, size * block : size * (block + 1)]
            for i in range(values.size // 4):
                byte = codes[i]
                values[4 * i] = (np.float32(byte & np.uint8(3)) - zero) * scale
                values[4 * i + 1] = (np.float32(byte >> np.uint8(2) & np.uint8(3)) - zero) * scale
                values[4 * i + 2] = (np.float32(byte >> np.uint8(4) & np.uint8(3)) - zero) * scale
                values[4 * i + 3] = (np.float32(byte >> np.uint8(6)) - zero) * scale
            for i in range(values.size // 4 * 4, values.size):
                code = codes[i // 4] >> np.uint8(2 * (i % 4)) & np.uint8(3)
                values[i] = (np.float32(code) - zero) * scale


@kernel
def _eights(packed: Any, zeros: Any, scales: Any, out: Any, first: int, last: int) -> None:
    size = packed.shape[2]
    for n in range(first, last):
        for block in range(packed.shape[1]):
            codes, zero, scale = packed[n, block], zeros[n, block], scales[n, block]
            values = out[n, size * block : size * (block + 1)]
            for i in range(values.size):
                values[i] = (np.float32(codes[i]) - zero) * scale


@kernel
def _pairs(packed: Any, table: Any, scales: Any, size: int, out: Any, first: int, last: int) -> None:
    for block in range(first, last):
        scale, values = scales[block], out[size * block : size * (block + 1)]
        codes = packed[size // 2 * block : size // 2 * (block + 1)]
        for i in range(values.size // 2):
            pair = table[codes[i]]
            values[2 * i] = pair[0] * scale
            values[2 * i + 1] = pair[1] * scale
        if values.size % 2:
            values[values.size - 1] = table[codes[values.size // 2]][0] * scale
