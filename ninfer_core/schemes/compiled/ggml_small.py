"""Kernels of the GGML types of one scale to a block, of the ternary types, MXFP4 and NVFP4; see `compiled.ggml`."""

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ninfer_core.schemes.compiled.cache import inline, kernel
from ninfer_core.schemes.compiled.halves import half, settle

Array = NDArray[Any]


@inline
def low(byte: int, less: int) -> float:
    """The low nibble of a byte, minus an integer, as a number."""
    return np.float32(np.int32(byte & np.uint8(15)) - np.int32(less))  # type: ignore[return-value]


@inline
def high(byte: int, less: int) -> float:
    """The high nibble of a byte, minus an integer, as a number."""
    return np.float32(np.int32(byte >> np.uint8(4)) - np.int32(less))  # type: ignore[return-value]


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
        d = half(block[0], block[1])
        codes, upper = block[2:], values[16:]
        for j in range(codes.size):
            values[j] = d * low(codes[j], 8)
            upper[j] = d * high(codes[j], 8)
        settle(d, values)


@kernel
def q4_1(blocks: Array, table: Array, out: Array) -> None:
    """d q + m."""
    for i in range(len(blocks)):
        block, values = blocks[i], out[i]
        d, m = half(block[0], block[1]), half(block[2], block[3])
        codes, upper = block[4:], values[16:]
        for j in range(codes.size):
            values[j] = d * low(codes[j], 0) + m
            upper[j] = d * high(codes[j], 0) + m
        settle(d + m, values)


@inline
def five(nibble: float, bits: int, place: int) -> float:
    """A nibble with a fifth bit, as a number."""
    fifth = np.int32(np.uint32(bits) >> np.uint32(place)) & np.int32(1)
    return nibble + np.float32(fifth << np.int32(4))  # type: ignore[return-value]


@kernel
def q5_0(blocks: Array, table: Array, out: Array) -> None:
    """d (q - 16)."""
    for i in range(len(blocks)):
        block, values = blocks[i], out[i]
        d, bits = half(block[0], block[1]), word32(block, 2)
        codes, upper = block[6:], values[16:]
        for j in range(codes.size):
            values[j] = d * five(low(codes[j], 16), bits, j)
            upper[j] = d * five(high(codes[j], 16), bits, j + 16)
        settle(d, values)


@kernel
def q5_1(blocks: Array, table: Array, out: Array) -> None:
    """d q + m."""
    for i in range(len(blocks)):
        block, values = blocks[i], out[i]
        d, m, bits = half(block[0], block[1]), half(block[2], block[3]), word32(block, 4)
        codes, upper = block[8:], values[16:]
        for j in range(codes.size):
            values[j] = d * five(low(codes[j], 0), bits, j) + m
            upper[j] = d * five(high(codes[j], 0), bits, j + 16) + m
        settle(d + m, values)


@kernel
def q8_0(blocks: Array, table: Array, out: Array) -> None:
    """d q."""
    for i in range(len(blocks)):
        block, values = blocks[i], out[i]
        d = half(block[0], block[1])
        codes = block[2:]
        for j in range(codes.size):
            values[j] = d * np.float32(np.int8(codes[j]))
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


@inline
def ternary(byte: int, power: int) -> float:
    """The digit of a byte at a power of three, minus one: three times what is left, by its thirds of 256."""
    rest = np.uint8(byte * power)
    digit = np.int8(rest >= np.uint8(86)) + np.int8(rest >= np.uint8(171))
    return np.float32(np.int32(digit) - np.int32(1))  # type: ignore[return-value]


@kernel
def tq1_0(blocks: Array, table: Array, out: Array) -> None:
    """d (digit - 1)."""
    for i in range(len(blocks)):
        block, values = blocks[i], out[i]
        d = half(block[52], block[53])
        power = np.uint8(1)
        for k in range(5):
            first, second = values[32 * k : 32 * k + 32], values[160 + 16 * k : 176 + 16 * k]
            for j in range(first.size):
                first[j] = d * ternary(block[j], power)
            for j in range(second.size):
                second[j] = d * ternary(block[32 + j], power)
            if k < 4:
                for j in range(4):
                    values[240 + 4 * k + j] = d * ternary(block[48 + j], power)
            power = np.uint8(power * np.uint8(3))
        settle(d, values)


@kernel
def tq2_0(blocks: Array, table: Array, out: Array) -> None:
    """d (q - 1)."""
    for i in range(len(blocks)):
        block, values = blocks[i], out[i]
        d = half(block[64], block[65])
        for g in range(8):
            codes, target = block[32 * (g // 4) :], values[32 * g : 32 * g + 32]
            for m in range(target.size):
                code = np.int32(codes[m] >> np.uint8(2 * (g % 4))) & np.int32(3)
                target[m] = d * np.float32(code - np.int32(1))
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
