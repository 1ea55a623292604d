"""Kernels of the GGML types whose sub-blocks have scales of their own: Q2_K to Q6_K and IQ4_XS; see `compiled.ggml`."""

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ninfer_core.schemes.compiled.cache import inline, kernel
from ninfer_core.schemes.compiled.halves import half, settle
from ninfer_core.schemes.compiled.lanes import bytes4, bytes16, bytes32, numbers, put, signed, unsigned

Array = NDArray[Any]


@inline
def pair(byte: int, place: int) -> int:
    """Two bits of a byte, by their place from 0 to 3."""
    return np.int32(byte >> np.uint8(2 * place)) & np.int32(3)  # type: ignore[return-value]


@inline
def nibble(byte: int, place: int) -> int:
    """The low nibble of a byte at 0, the high one at 1."""
    return np.int32(byte >> np.uint8(4 * place)) & np.int32(15)  # type: ignore[return-value]


@kernel
def q2_k(blocks: Array, table: Array, out: Array) -> None:
    """(d L) q - (dmin M)."""
    steps, least = np.empty(16, np.float32), np.empty(16, np.float32)
    for i in range(len(blocks)):
        block, values = blocks[i], out[i]
        d, dmin, scales = half(block[80], block[81]), half(block[82], block[83]), bytes16(block, 0)
        put(steps, 0, d * numbers(unsigned(scales & 15)))
        put(least, 0, dmin * numbers(unsigned(scales >> 4)))
        for t in range(4):
            codes, k = bytes16(block, 16 + 16 * t), 8 * (t // 2) + t % 2
            for s in range(4):
                product = steps[k + 2 * s] * numbers(unsigned(codes >> 2 * s & 3))
                put(values, 16 * (k + 2 * s), product - least[k + 2 * s])
        settle(d + dmin, values)


@kernel
def q3_k(blocks: Array, table: Array, out: Array) -> None:
    """(d sc) (q - 4 + 4 h)."""
    steps = np.empty(16, np.float32)
    for i in range(len(blocks)):
        block, values = blocks[i], out[i]
        d = half(block[108], block[109])
        for s in range(4):
            scales = bytes4(block, 96 + 4 * (s % 2)) >> 4 * (s // 2) & 15
            scales = scales | (bytes4(block, 104) >> 2 * s & 3) << 4
            put(steps, 4 * s, d * numbers(unsigned(scales) - 32))
        for t in range(4):
            codes, high, k = bytes16(block, 32 + 16 * t), bytes16(block, 16 * (t % 2)), 8 * (t // 2) + t % 2
            high = high >> 4 * (t // 2)
            for s in range(4):
                code = codes >> 2 * s & 3 | (high >> s & 1) << 2
                put(values, 16 * (k + 2 * s), steps[k + 2 * s] * numbers(unsigned(code) - 4))
        settle(d, values)


@inline
def six_bits(block: Array, d: float, dmin: float, steps: Array, least: Array) -> None:
    """d times the scales and dmin times the mins of eight sub-blocks, out of twelve bytes behind four (S6)."""
    first, second, third = bytes4(block, 4), bytes4(block, 8), bytes4(block, 12)
    put(steps, 0, d * numbers(unsigned(first & 63)))
    put(steps, 4, d * numbers(unsigned(third & 15 | first >> 6 << 4)))
    put(least, 0, dmin * numbers(unsigned(second & 63)))
    put(least, 4, dmin * numbers(unsigned(third >> 4 | second >> 6 << 4)))


@kernel
def q4_k(blocks: Array, table: Array, out: Array) -> None:
    """(d sc) q - (dmin mn)."""
    steps, least = np.empty(8, np.float32), np.empty(8, np.float32)
    for i in range(len(blocks)):
        block, values = blocks[i], out[i]
        d, dmin = half(block[0], block[1]), half(block[2], block[3])
        six_bits(block, d, dmin, steps, least)
        for j in range(0, 8, 2):
            codes = bytes32(block, 16 + 16 * j)
            put(values, 32 * j, steps[j] * numbers(unsigned(codes & 15)) - least[j])
            put(values, 32 * j + 32, steps[j + 1] * numbers(unsigned(codes >> 4)) - least[j + 1])
        settle(d + dmin, values)


@kernel
def q5_k(blocks: Array, table: Array, out: Array) -> None:
    """As Q4_K with a fifth bit."""
    steps, least = np.empty(8, np.float32), np.empty(8, np.float32)
    for i in range(len(blocks)):
        block, values = blocks[i], out[i]
        d, dmin, fifth = half(block[0], block[1]), half(block[2], block[3]), bytes32(block, 16)
        six_bits(block, d, dmin, steps, least)
        for j in range(0, 8, 2):
            codes = bytes32(block, 48 + 16 * j)
            first, second = codes & 15 | (fifth & 1) << 4, codes >> 4 | (fifth & 2) << 3
            put(values, 32 * j, steps[j] * numbers(unsigned(first)) - least[j])
            put(values, 32 * j + 32, steps[j + 1] * numbers(unsigned(second)) - least[j + 1])
            fifth = fifth >> 2
        settle(d + dmin, values)


@kernel
def q6_k(blocks: Array, table: Array, out: Array) -> None:
    """(d sc) (q - 32)."""
    steps = np.empty(16, np.float32)
    for i in range(len(blocks)):
        block, values = blocks[i], out[i]
        d = half(block[208], block[209])
        put(steps, 0, d * numbers(signed(bytes16(block, 192))))
        for t in range(4):
            h, k = t // 2, 8 * (t // 2) + t % 2
            first, second = bytes16(block, 64 * h + 16 * (t % 2)), bytes16(block, 64 * h + 32 + 16 * (t % 2))
            high = bytes16(block, 128 + 16 * t)
            put(values, 16 * k, steps[k] * numbers(unsigned(first & 15 | (high & 3) << 4) - 32))
            code = second & 15 | (high & 12) << 2
            put(values, 16 * k + 32, steps[k + 2] * numbers(unsigned(code) - 32))
            code = first >> 4 | high & 48
            put(values, 16 * k + 64, steps[k + 4] * numbers(unsigned(code) - 32))
            code = second >> 4 | (high & 192) >> 2
            put(values, 16 * k + 96, steps[k + 6] * numbers(unsigned(code) - 32))
        settle(d, values)


@kernel
def iq4_xs(blocks: Array, levels: Array, out: Array) -> None:
    """(d ls) T[q]."""
    scaled = np.empty(16, np.float32)
    for i in range(len(blocks)):
        block, values = blocks[i], out[i]
        d = half(block[0], block[1])
        for g in range(8):
            scale = nibble(block[4 + g // 2], g % 2) | pair(block[2 + g // 4], g % 4) << 4
            step = d * np.float32(np.int32(scale) - np.int32(32))
            for k in range(16):
                scaled[k] = step * levels[k]
            codes, target = block[8 + 16 * g :], values[32 * g : 32 * g + 32]
            for j in range(16):
                target[j] = scaled[codes[j] & np.uint8(15)]
                target[j + 16] = scaled[codes[j] >> np.uint8(4)]
        settle(d, values)


KERNELS: Final = {"Q2_K": q2_k, "Q3_K": q3_k, "Q4_K": q4_k, "Q5_K": q5_k, "Q6_K": q6_k, "IQ4_XS": iq4_xs}
