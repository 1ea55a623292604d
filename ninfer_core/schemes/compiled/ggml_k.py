"""Kernels of the GGML types whose sub-blocks have scales of their own: Q2_K to Q6_K and IQ4_XS; see `compiled.ggml`."""

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ninfer_core.schemes.compiled.cache import inline, kernel
from ninfer_core.schemes.compiled.halves import half, settle

Array = NDArray[Any]


@inline
def pair(byte: int, place: int) -> int:
    """Two bits of a byte, by their place from 0 to 3."""
    return np.int32(byte >> np.uint8(2 * place)) & np.int32(3)  # type: ignore[return-value]


@inline
def bit(byte: int, place: int) -> int:
    """One bit of a byte."""
    return np.int32(byte >> np.uint8(place)) & np.int32(1)  # type: ignore[return-value]


@inline
def nibble(byte: int, place: int) -> int:
    """The low nibble of a byte at 0, the high one at 1."""
    return np.int32(byte >> np.uint8(4 * place)) & np.int32(15)  # type: ignore[return-value]


@kernel
def q2_k(blocks: Array, table: Array, out: Array) -> None:
    """(d L) q - (dmin M)."""
    for i in range(len(blocks)):
        block, values = blocks[i], out[i]
        d, dmin = half(block[80], block[81]), half(block[82], block[83])
        for g in range(8):
            first, second = block[2 * g], block[2 * g + 1]
            step, other = d * np.float32(nibble(first, 0)), d * np.float32(nibble(second, 0))
            least, last = dmin * np.float32(nibble(first, 1)), dmin * np.float32(nibble(second, 1))
            codes, target = block[16 + 32 * (g // 4) :], values[32 * g : 32 * g + 32]
            for m in range(target.size):
                product = (step if m < 16 else other) * np.float32(pair(codes[m], g % 4))
                target[m] = product - (least if m < 16 else last)
        settle(d + dmin, values)


@inline
def six(scales: Array, k: int) -> float:
    """The signed scale of sub-block k out of twelve bytes."""
    scale = nibble(scales[k % 8], k // 8) | pair(scales[8 + k % 4], k // 4) << 4
    return np.float32(np.int32(scale) - np.int32(32))  # type: ignore[return-value]


@kernel
def q3_k(blocks: Array, table: Array, out: Array) -> None:
    """(d sc) (q - 4 + 4 h)."""
    for i in range(len(blocks)):
        block, values = blocks[i], out[i]
        d, scales = half(block[108], block[109]), block[96:108]
        for g in range(8):
            step, other = d * six(scales, 2 * g), d * six(scales, 2 * g + 1)
            codes, target = block[32 + 32 * (g // 4) :], values[32 * g : 32 * g + 32]
            for m in range(target.size):
                code = pair(codes[m], g % 4) + np.int32(bit(block[m], g) << np.int32(2)) - np.int32(4)
                target[m] = (step if m < 16 else other) * np.float32(np.int32(code))
        settle(d, values)


@inline
def six_bits(scales: Array, j: int) -> tuple[float, float]:
    """Scale and min of sub-block j out of twelve bytes (S6)."""
    if j < 4:
        return np.float32(scales[j] & np.uint8(63)), np.float32(scales[j + 4] & np.uint8(63))  # type: ignore[return-value]
    scale = nibble(scales[j + 4], 0) | pair(scales[j - 4], 3) << 4
    least = nibble(scales[j + 4], 1) | pair(scales[j], 3) << 4
    return np.float32(scale), np.float32(least)  # type: ignore[return-value]


@kernel
def q4_k(blocks: Array, table: Array, out: Array) -> None:
    """(d sc) q - (dmin mn)."""
    for i in range(len(blocks)):
        block, values = blocks[i], out[i]
        d, dmin = half(block[0], block[1]), half(block[2], block[3])
        for j in range(0, 8, 2):
            scale, least = six_bits(block[4:16], j)
            other, last = six_bits(block[4:16], j + 1)
            scale, least, other, last = d * scale, dmin * least, d * other, dmin * last
            codes = block[16 + 16 * j : 48 + 16 * j]
            first, second = values[32 * j : 32 * j + 32], values[32 * j + 32 : 32 * j + 64]
            for m in range(codes.size):
                first[m] = scale * np.float32(nibble(codes[m], 0)) - least
                second[m] = other * np.float32(nibble(codes[m], 1)) - last
        settle(d + dmin, values)


@kernel
def q5_k(blocks: Array, table: Array, out: Array) -> None:
    """As Q4_K with a fifth bit."""
    for i in range(len(blocks)):
        block, values = blocks[i], out[i]
        d, dmin, fifth = half(block[0], block[1]), half(block[2], block[3]), block[16:48]
        for j in range(0, 8, 2):
            scale, least = six_bits(block[4:16], j)
            other, last = six_bits(block[4:16], j + 1)
            scale, least, other, last = d * scale, dmin * least, d * other, dmin * last
            codes, place, next_place = block[48 + 16 * j : 80 + 16 * j], np.uint8(1 << j), np.uint8(2 << j)
            first, second = values[32 * j : 32 * j + 32], values[32 * j + 32 : 32 * j + 64]
            for m in range(codes.size):
                # A choice of two bytes stays among bytes; a shifted bit would be widened first.
                high = np.uint8(16) if fifth[m] & place else np.uint8(0)
                first[m] = scale * np.float32(np.int32(codes[m] & np.uint8(15) | high)) - least
                high = np.uint8(16) if fifth[m] & next_place else np.uint8(0)
                second[m] = other * np.float32(np.int32(codes[m] >> np.uint8(4) | high)) - last
        settle(d + dmin, values)


@kernel
def q6_k(blocks: Array, table: Array, out: Array) -> None:
    """(d sc) (q - 32)."""
    for i in range(len(blocks)):
        block, values = blocks[i], out[i]
        d = half(block[208], block[209])
        for g in range(8):
            step = d * np.float32(np.int8(block[192 + 2 * g]))
            other = d * np.float32(np.int8(block[193 + 2 * g]))
            ql, qh = block[64 * (g // 4) + 32 * (g % 2) :], block[128 + 32 * (g // 4) :]
            target = values[32 * g : 32 * g + 32]
            for m in range(target.size):
                code = nibble(ql[m], g // 2 % 2) | np.int32(pair(qh[m], g % 4) << np.int32(4))
                target[m] = (step if m < 16 else other) * np.float32(np.int32(code) - np.int32(32))
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
