"""Kernels of the GGML types that look up entries of codebooks: IQ1 to IQ3, and STQ1_0; see `compiled.ggml`.

Their table is flat: the codebook, row after row, and behind it the rows of eight signs that their sign codes mean.
"""

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ninfer_core.schemes.compiled.cache import inline, kernel
from ninfer_core.schemes.compiled.ggml_small import word32
from ninfer_core.schemes.compiled.halves import half, settle

Array = NDArray[Any]
EIGHTS_256, EIGHTS_512, EIGHTS_1024 = 8 * 256, 8 * 512, 8 * 1024  # where signs begin
FOURS_256, FOURS_512 = 4 * 256, 4 * 512


@inline
def eight(table: Array, entry: int, signs: int, step: float, target: Array) -> None:
    """An entry of eight at its place in the table, with signs and step."""
    values, sign = table[entry : entry + 8], table[signs : signs + 8]
    for k in range(target.size):
        target[k] = step * values[k] * sign[k]


@inline
def twice_four(table: Array, first: int, second: int, signs: int, step: float, target: Array) -> None:
    """Two entries of four, with eight signs and step."""
    for k in range(4):
        target[k] = step * table[first + k] * table[signs + k]
        target[k + 4] = step * table[second + k] * table[signs + 4 + k]


@inline
def word16(block: Array, start: int) -> int:
    """Two bytes of a block as an unsigned integer."""
    return np.int64(block[start]) | np.int64(block[start + 1]) << 8  # type: ignore[return-value]


@inline
def halved(d: float, scale: int, part: float) -> float:
    """d (0.5 + scale) times a power of two."""
    return d * (np.float32(0.5) + np.float32(scale)) * np.float32(part)  # type: ignore[return-value]


@kernel
def iq2_xxs(blocks: Array, table: Array, out: Array) -> None:
    """d (0.5 + s) / 4 times an entry of eight with seven signs and an even one."""
    for i in range(len(blocks)):
        block, values = blocks[i], out[i]
        d = half(block[0], block[1])
        for g in range(8):
            word = np.int64(word32(block, 6 + 8 * g))
            step = halved(d, word >> 28, 0.25)
            for l in range(4):  # noqa: E741  the specification's letter
                entry, signs = 8 * np.int64(block[2 + 8 * g + l]), EIGHTS_256 + 8 * (word >> 7 * l & 127)
                eight(table, entry, signs, step, values[32 * g + 8 * l : 32 * g + 8 * l + 8])
        settle(d, values)


@kernel
def iq2_xs(blocks: Array, table: Array, out: Array) -> None:
    """The same with nine bits of index and a scale for each sixteen."""
    for i in range(len(blocks)):
        block, values = blocks[i], out[i]
        d = half(block[0], block[1])
        for t in range(32):
            word = word16(block, 2 + 2 * t)
            step = halved(d, np.int64(block[66 + t // 4]) >> 4 * (t // 2 % 2) & 15, 0.25)
            eight(table, 8 * (word & 511), EIGHTS_512 + 8 * (word >> 9), step, values[8 * t : 8 * t + 8])
        settle(d, values)


@kernel
def iq2_s(blocks: Array, table: Array, out: Array) -> None:
    """The same with ten bits of index and eight signs."""
    for i in range(len(blocks)):
        block, values = blocks[i], out[i]
        d = half(block[0], block[1])
        for t in range(32):
            index = np.int64(block[2 + t]) | (np.int64(block[66 + t // 4]) >> 2 * (t % 4) & 3) << 8
            step = halved(d, np.int64(block[74 + t // 4]) >> 4 * (t // 2 % 2) & 15, 0.25)
            signs = EIGHTS_1024 + 8 * np.int64(block[34 + t])
            eight(table, 8 * index, signs, step, values[8 * t : 8 * t + 8])
        settle(d, values)


@kernel
def iq3_xxs(blocks: Array, table: Array, out: Array) -> None:
    """d (0.5 + s) / 2 times entries of four with seven signs and an even one."""
    for i in range(len(blocks)):
        block, values = blocks[i], out[i]
        d = half(block[0], block[1])
        for g in range(8):
            word = np.int64(word32(block, 66 + 4 * g))
            step = halved(d, word >> 28, 0.5)
            for l in range(4):  # noqa: E741
                first, second = 4 * np.int64(block[2 + 8 * g + 2 * l]), 4 * np.int64(block[3 + 8 * g + 2 * l])
                target = values[32 * g + 8 * l : 32 * g + 8 * l + 8]
                twice_four(table, first, second, FOURS_256 + 8 * (word >> 7 * l & 127), step, target)
        settle(d, values)


@kernel
def iq3_s(blocks: Array, table: Array, out: Array) -> None:
    """d (1 + 2 s) times entries of four with a ninth bit of index and eight signs."""
    for i in range(len(blocks)):
        block, values = blocks[i], out[i]
        d = half(block[0], block[1])
        for t in range(32):
            high = np.int64(block[66 + t // 4]) >> 2 * (t % 4)
            first = np.int64(block[2 + 2 * t]) | (high & 1) << 8
            second = np.int64(block[3 + 2 * t]) | (high >> 1 & 1) << 8
            step = d * np.float32(1 + 2 * (np.int64(block[106 + t // 8]) >> 4 * (t // 4 % 2) & 15))
            signs = FOURS_512 + 8 * np.int64(block[74 + t])
            twice_four(table, 4 * first, 4 * second, signs, step, values[8 * t : 8 * t + 8])
        settle(d, values)


@inline
def shifted(table: Array, index: int, delta: float, step: float, target: Array) -> None:
    """Step times an entry of eight with delta added to each."""
    entry = table[8 * index : 8 * index + 8]
    for k in range(target.size):
        target[k] = step * (entry[k] + delta)


@kernel
def iq1_s(blocks: Array, table: Array, out: Array) -> None:
    """d (2 s + 1) (entry + delta), with a sign of delta for each 32."""
    for i in range(len(blocks)):
        block, values = blocks[i], out[i]
        d = half(block[0], block[1])
        for g in range(8):
            word = word16(block, 34 + 2 * g)
            step = d * np.float32(2 * (word >> 12 & 7) + 1)
            delta = np.float32(-0.125) if word >> 15 else np.float32(0.125)
            for l in range(4):  # noqa: E741
                index = np.int64(block[2 + 4 * g + l]) | (word >> 3 * l & 7) << 8
                shifted(table, index, delta, step, values[32 * g + 8 * l : 32 * g + 8 * l + 8])
        settle(d, values)


@kernel
def iq1_m(blocks: Array, table: Array, out: Array) -> None:
    """The same with a scale for each sixteen, a sign of delta for each eight, and d in four words."""
    for i in range(len(blocks)):
        block, values = blocks[i], out[i]
        low = np.uint8(block[49] >> np.uint8(4) | block[51] & np.uint8(0xF0))
        high = np.uint8(block[53] >> np.uint8(4) | block[55] & np.uint8(0xF0))
        d = half(low, high)
        for t in range(32):
            code = np.int64(block[32 + t // 2]) >> 4 * (t % 2) & 15
            scale = word16(block, 48 + 2 * (t // 8)) >> 3 * (t // 2 % 4) & 7
            delta = np.float32(-0.125) if code >> 3 else np.float32(0.125)
            index, step = np.int64(block[t]) | (code & 7) << 8, d * np.float32(2 * scale + 1)
            shifted(table, index, delta, step, values[8 * t : 8 * t + 8])
        settle(d, values)


@kernel
def stq1_0(blocks: Array, lanes: Array, out: Array) -> None:
    """d times four lanes that lie sixteen apart; lanes of a code + 16 sign, flat."""
    for i in range(len(blocks)):
        block, values = blocks[i], out[i]
        d = half(block[40], block[41])
        for g in range(64):
            code = np.int64(block[g // 2]) >> 4 * (g % 2) & 15
            place = 4 * (code | (np.int64(block[32 + g // 8]) >> g % 8 & 1) << 4)
            for p in range(4):
                values[64 * (g // 16) + g % 16 + 16 * p] = d * lanes[place + p]
        settle(d, values)


KERNELS: Final = {
    "IQ2_XXS": iq2_xxs,
    "IQ2_XS": iq2_xs,
    "IQ2_S": iq2_s,
    "IQ3_XXS": iq3_xxs,
    "IQ3_S": iq3_s,
    "IQ1_S": iq1_s,
    "IQ1_M": iq1_m,
    "STQ1_0": stq1_0,
}
