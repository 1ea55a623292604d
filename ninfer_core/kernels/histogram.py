"""Histograms of packed codes of four to six bits, by bit planes: nothing is unpacked and nothing is scattered.

A step takes 8,192 codes. Bit k of all of them goes into 128 words, one bit a code; a code's count is then the number of
ones in the conjunction of its planes and of complements of the others. In which order codes lie in a plane is of no
matter as long as all planes agree: bit 4 * j + 2 * (q % 2) + q // 2 of word i is code j of the sixteen in word
i + 128 * q of the base plane. Where a loop runs to 4, the compiler is not told: it would unroll it, and take seconds more.
"""

from typing import Any, Final

import numpy as np
from numba import types
from numba.extending import intrinsic
from numpy.typing import NDArray

from ninfer_core.kernels.cache import inline, kernel
from ninfer_core.kernels.tiles import Array, scratch
from ninfer_core.kernels.values import read_only
from ninfer_core.words import Words8

STEP: Final = 8192  # codes
WORDS: Final = STEP // 64  # of a plane
BASE_WORDS: Final = STEP // 16
ROWS: Final = 6 + 12  # planes, then conjunctions of bits 0 and 1, of 2 and 3, of 4 and 5

_ONE_OF_FOUR: Final = np.uint64(0x1111111111111111)
_ONE_OF_TWO: Final = np.uint64(0x5555555555555555)
_1, _2, _3, _16, _32, _48 = (np.uint64(n) for n in (1, 2, 3, 16, 32, 48))


def _swap(upper: int, lower: int) -> tuple[np.uint64, np.uint64]:
    """How far to move, and which bits, to exchange two bits of the index of every bit of a word."""
    moved = sum(1 << i for i in range(64) if not i >> upper & 1 and i >> lower & 1)
    return np.uint64((1 << upper) - (1 << lower)), np.uint64(moved)


_BY_53, _MASK_53 = _swap(5, 3)
_BY_42, _MASK_42 = _swap(4, 2)
_BY_31, _MASK_31 = _swap(3, 1)
_BY_20, _MASK_20 = _swap(2, 0)
_BY_54, _MASK_54 = _swap(5, 4)
_BY_43, _MASK_43 = _swap(4, 3)
_BY_32, _MASK_32 = _swap(3, 2)
_BY_21, _MASK_21 = _swap(2, 1)


@intrinsic  # type: ignore[untyped-decorator]
def ones(typing: Any, word: Any) -> Any:
    """The number of ones in a 64-bit word."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.ctpop(arguments[0])

    return types.uint64(types.uint64), generate


@inline
def exchange(word: int, by: int, mask: int) -> int:
    """Exchange the bits of `mask` with those `by` places above."""
    moved = ((word >> by) ^ word) & mask
    exchanged: int = word ^ moved ^ (moved << by)
    return exchanged


@inline
def split_base(base: Array, four: int, planes: Array) -> None:
    """Bits 0 to 3 of a step; `base` is uint64 [BASE_WORDS], `four` is 4."""
    words = base.reshape((4, WORDS))
    first, second, third, fourth = words[0], words[1], words[2], words[3]
    for k in range(four):
        plane, up = planes[k], np.uint64(k)
        for i in range(plane.size):
            low = ((first[i] >> up) & _ONE_OF_FOUR) | (((third[i] >> up) & _ONE_OF_FOUR) << _1)
            plane[i] = (
                low | (((second[i] >> up) & _ONE_OF_FOUR) << _2) | (((fourth[i] >> up) & _ONE_OF_FOUR) << _3)
            )


@inline
def split_fifth(high: Array, plane: Array) -> None:
    """Bit 4 of a step of five-bit codes; `high` is uint16 [BASE_WORDS]."""
    words = high.reshape((4, WORDS))
    for i in range(plane.size):
        # Sixteen codes after sixteen become four after four.
        word = np.uint64(words[0, i]) | (np.uint64(words[2, i]) << _16)
        word |= (np.uint64(words[1, i]) << _32) | (np.uint64(words[3, i]) << _48)
        word = exchange(exchange(word, _BY_53, _MASK_53), _BY_42, _MASK_42)
        plane[i] = exchange(exchange(word, _BY_31, _MASK_31), _BY_20, _MASK_20)


@inline
def split_upper(high: Array, fifth: Array, sixth: Array) -> None:
    """Bits 4 and 5 of a step of six-bit codes; `high` is uint32 [BASE_WORDS]."""
    words = high.reshape((4, WORDS))
    for i in range(fifth.size):
        a = np.uint64(words[0, i]) | (np.uint64(words[1, i]) << _32)
        b = np.uint64(words[2, i]) | (np.uint64(words[3, i]) << _32)
        fifth[i] = gather_upper((a & _ONE_OF_TWO) | ((b & _ONE_OF_TWO) << _1))
        sixth[i] = gather_upper(((a >> _1) & _ONE_OF_TWO) | (((b >> _1) & _ONE_OF_TWO) << _1))


@inline
def gather_upper(word: int) -> int:
    """Bring a plane of every second bit into the order of the base's planes."""
    word = exchange(exchange(word, _BY_54, _MASK_54), _BY_43, _MASK_43)
    gathered: int = exchange(exchange(word, _BY_32, _MASK_32), _BY_21, _MASK_21)
    return gathered


@inline
def conjoin(low: Array, high: Array, out: Array) -> None:
    """The four conjunctions of two planes and their complements, by the number that they stand for."""
    none, first, second, both = out[0], out[1], out[2], out[3]
    for i in range(low.size):
        none[i] = ~high[i] & ~low[i]
        first[i] = ~high[i] & low[i]
    for i in range(low.size):
        second[i] = high[i] & ~low[i]
        both[i] = high[i] & low[i]


@inline
def count_step(bits: int, planes: Array, counts: Array) -> None:
    """Add the codes whose planes are set up to `counts`, int64 [1 << bits], by code word."""
    low, middle, top = planes[6:10], planes[10:14], planes[14:18]
    for pair in range((bits + 1) // 2):
        conjoin(planes[2 * pair], planes[2 * pair + 1], planes[6 + 4 * pair : 10 + 4 * pair])
    upper, four = planes[0], min(bits, 4)  # that plane is no longer needed
    for place in range(1 << (bits - 2)):
        part, above = middle[place & 3], top[place >> 2]
        for i in range(upper.size):
            upper[i] = part[i] & above[i] if bits > 4 else part[i]
        for code in range(four):
            own, count = low[code], np.uint64(0)
            for i in range(upper.size):
                count += ones(upper[i] & own[i])
            counts[4 * place + code] += np.int64(count)


@kernel
def count_steps(bits: int, base: Array, high: Array, counts: Array) -> None:
    """Add the codes of whole steps of planes of bytes to `counts`, int64 [1 << bits]."""
    planes = scratch(8 * ROWS * WORDS).view(np.uint64).reshape((ROWS, WORDS))
    words, high_step = base.view(np.uint64), STEP * (bits - 4) // 8
    sixth = planes[5]  # only codes of six bits have one
    for i in range(sixth.size):
        sixth[i] = np.uint64(0)
    for step in range(words.size // BASE_WORDS):
        above = high[step * high_step : (step + 1) * high_step]
        split_base(words[step * BASE_WORDS : (step + 1) * BASE_WORDS], min(bits, 4), planes)
        if bits == 5:
            split_fifth(above.view(np.uint16), planes[4])
        elif bits == 6:
            split_upper(above.view(np.uint32), planes[4], planes[5])
        count_step(bits, planes, counts)


def count_packed(bits: int, base: Words8, high: Words8) -> NDArray[np.int64]:
    """How often every code word comes, [1 << bits], in planes of bytes, two codes a byte of `base`."""
    counts = np.zeros(1 << bits, np.int64)
    base_step, high_step = STEP // 2, STEP * (bits - 4) // 8
    steps = base.size // base_step
    last, last_high = base[steps * base_step :], high[steps * high_step :]
    if steps:
        count_steps(bits, read_only(base[: steps * base_step]), read_only(high[: steps * high_step]), counts)
    if last.size:
        # What is missing from a whole step counts as code 0, and is taken off again.
        filled, filled_high = np.zeros(base_step, np.uint8), np.zeros(high_step, np.uint8)
        filled[: last.size], filled_high[: last_high.size] = last, last_high
        count_steps(bits, read_only(filled), read_only(filled_high), counts)
        counts[0] -= 2 * (base_step - last.size)
    return counts
