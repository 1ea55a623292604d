"""Kernels of the GGML types of one scale to a block, of the ternary types, MXFP4 and NVFP4; see `compiled.ggml`."""

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ninfer_core.schemes.compiled.cache import inline, kernel
from ninfer_core.schemes.compiled.halves import half, settle
from ninfer_core.schemes.compiled.lanes import (
    bits16,
    bytes4,
    bytes16,
    bytes32,
    numbers,
    put,
    signed,
    unsigned,
)

Array = NDArray[Any]


@inline
def word32(block: Array, start: int) -> int:
    """Four bytes of a block as an unsigned integer."""
    return np.uint32(  # type: ignore[return-value]
        np.uint32(block[start])
        | np.uint32(block[start + 1]) << np.uint32(8)
        | np.uint32(block[start + 2]) << np.uint32(16)
        | np.uint32(block[start + 3]) << np.uint32(24)
    )


@kernel
def q4_0(blocks: Array, table: Array, out: Array) -> None:
    """d (q - 8)."""
    for i in range(len(blocks)):
        block, values = blocks[i], out[i]
        d, codes = half(block[0], block[1]), bytes16(block, 2)
        put(values, 0, d * numbers(unsigned(codes & 15) - 8))
        put(values, 16, d * numbers(unsigned(codes >> 4) - 8))
        settle(d, values)


@kernel
def q4_1(blocks: Array, table: Array, out: Array) -> None:
    """d q + m."""
    for i in range(len(blocks)):
        block, values = blocks[i], out[i]
        d, m, codes = half(block[0], block[1]), half(block[2], block[3]), bytes16(block, 4)
        put(values, 0, d * numbers(unsigned(codes & 15)) + m)
        put(values, 16, d * numbers(unsigned(codes >> 4)) + m)
        settle(d + m, values)


@kernel
def q5_0(blocks: Array, table: Array, out: Array) -> None:
    """d (q - 16)."""
    for i in range(len(blocks)):
        block, values = blocks[i], out[i]
        d, fifth, codes = half(block[0], block[1]), word32(block, 2), bytes16(block, 6)
        put(values, 0, d * numbers(unsigned(codes & 15 | bits16(fifth) << 4) - 16))
        put(values, 16, d * numbers(unsigned(codes >> 4 | bits16(fifth >> 16) << 4) - 16))
        settle(d, values)


@kernel
def q5_1(blocks: Array, table: Array, out: Array) -> None:
    """d q + m."""
    for i in range(len(blocks)):
        block, values = blocks[i], out[i]
        d, m = half(block[0], block[1]), half(block[2], block[3])
        fifth, codes = word32(block, 4), bytes16(block, 8)
        put(values, 0, d * numbers(unsigned(codes & 15 | bits16(fifth) << 4)) + m)
        put(values, 16, d * numbers(unsigned(codes >> 4 | bits16(fifth >> 16) << 4)) + m)
        settle(d + m, values)


@kernel
def q8_0(blocks: Array, table: Array, out: Array) -> None:
    """d q."""
    for i in range(len(blocks)):
        block, values = blocks[i], out[i]
        d = half(block[0], block[1])
        put(values, 0, d * numbers(signed(bytes32(block, 2))))
        settle(d, values)


@kernel
def q1_0(blocks: Array, table: Array, out: Array) -> None:
    """d where the bit is set, else -d."""
    for i in range(len(blocks)):
        block, values = blocks[i], out[i]
        d = half(block[0], block[1])
        for j in range(16):
            byte, target = block[2 + j], values[8 * j : 8 * j + 8]
            for k in range(target.size):
                target[k] = d if byte >> np.uint8(k) & np.uint8(1) else -d
        settle(d, values)


@kernel
def iq4_nl(blocks: Array, levels: Array, out: Array) -> None:
    """d T[q]."""
    scaled = np.empty(16, np.float32)
    for i in range(len(blocks)):
        block, values = blocks[i], out[i]
        d = half(block[0], block[1])
        for k in range(16):
            scaled[k] = d * levels[k]
        for j in range(16):
            values[j] = scaled[block[2 + j] & np.uint8(15)]
            values[j + 16] = scaled[block[2 + j] >> np.uint8(4)]
        settle(d, values)


@kernel
def mxfp4(blocks: Array, products: Array, out: Array) -> None:
    """Products of every exponent byte and code, [256, 16]."""
    for i in range(len(blocks)):
        block, values = blocks[i], out[i]
        row = products[block[0]]
        for j in range(16):
            values[j] = row[block[1 + j] & np.uint8(15)]
            values[j + 16] = row[block[1 + j] >> np.uint8(4)]


@kernel
def nvfp4(blocks: Array, products: Array, out: Array) -> None:
    """Products of every scale byte and code, [256, 16]."""
    for i in range(len(blocks)):
        block = blocks[i]
        for s in range(4):
            row, codes, values = (
                products[block[s]],
                block[4 + 8 * s : 12 + 8 * s],
                out[i, 16 * s : 16 * s + 16],
            )
            for j in range(8):
                values[j] = row[codes[j] & np.uint8(15)]
                values[j + 8] = row[codes[j] >> np.uint8(4)]


@kernel
def tq1_0(blocks: Array, table: Array, out: Array) -> None:
    """d (digit - 1); a digit is three times what is left of a byte, by its 256."""
    for i in range(len(blocks)):
        block, values = blocks[i], out[i]
        d = half(block[52], block[53])
        first, second, third = bytes32(block, 0), bytes16(block, 32), bytes4(block, 48)
        for k in range(5):
            put(values, 32 * k, d * numbers((unsigned(first) * 3 >> 8) - 1))
            put(values, 160 + 16 * k, d * numbers((unsigned(second) * 3 >> 8) - 1))
            if k < 4:
                put(values, 240 + 4 * k, d * numbers((unsigned(third) * 3 >> 8) - 1))
            first, second, third = first + first + first, second + second + second, third + third + third
        settle(d, values)


@kernel
def tq2_0(blocks: Array, table: Array, out: Array) -> None:
    """d (q - 1)."""
    for i in range(len(blocks)):
        block, values = blocks[i], out[i]
        d = half(block[64], block[65])
        for h in range(2):
            codes = bytes32(block, 32 * h)
            for s in range(4):
                put(values, 128 * h + 32 * s, d * numbers(unsigned(codes >> 2 * s & 3) - 1))
        settle(d, values)


KERNELS: Final = {
    "Q4_0": q4_0,
    "Q4_1": q4_1,
    "Q5_0": q5_0,
    "Q5_1": q5_1,
    "Q8_0": q8_0,
    "Q1_0": q1_0,
    "IQ4_NL": iq4_nl,
    "MXFP4": mxfp4,
    "NVFP4": nvfp4,
    "TQ1_0": tq1_0,
    "TQ2_0": tq2_0,
}
