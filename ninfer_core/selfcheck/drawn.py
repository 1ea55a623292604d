"""Drawn sources and stored words: what rounding turns on comes often. The same seed gives the same words everywhere."""

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ninfer_core.formats import GroupedFormat
from ninfer_core.kernels.values import SOURCE_DTYPES
from ninfer_core.oracles.encoding import rounded16, rounded32
from ninfer_core.words import (
    Words16,
    Words32,
    expand_bf16,
    expand_binary16,
    narrow_bf16,
    narrow_binary32,
    values_of_binary32,
)

Random = np.random.Generator
Words = NDArray[Any]
WORDS: Final[dict[str, np.dtype[Any]]] = {
    "BF16": np.dtype("u2"),
    "F16": np.dtype("u2"),
    "F32": np.dtype("u4"),
    "F64": np.dtype("u8"),
}
_LARGEST16: Final = 65504.0
_LARGEST32: Final = (2 - 2.0**-23) * 2.0**127
_SUBNORMAL, _NORMAL, _TOP = (1, 0x400), (0x400, 0x7BF0), (0x7BF0, 0x7C00)  # binary16 scales


def widened(dtype: str, words: Words) -> Words32:
    """Source words rounded to binary32, which is exact for all but F64."""
    match dtype:
        case "BF16":
            return expand_bf16(words)
        case "F16":
            return expand_binary16(words)
        case "F64":
            return narrow_binary32(words)
        case _:
            return words


def source_words(dtype: str, values: NDArray[np.float64]) -> Words:
    """The nearest finite source words."""
    match dtype:
        case "BF16":
            return narrow_bf16(rounded32(values))
        case "F16":
            sign = np.where(np.signbit(values), 0x8000, 0).astype(np.uint16)
            return rounded16(np.minimum(np.abs(values), _LARGEST16)) | sign
        case "F64":
            return np.ascontiguousarray(values).view(np.uint64)
        case _:
            return rounded32(values)


def group_scales(random: Random, count: int) -> Words16:
    """Binary16 scale words: any, subnormal ones, and those beside the largest."""
    classes = np.array([random.integers(low, high, count) for low, high in (_NORMAL, _SUBNORMAL, _TOP)])
    chosen = random.choice(3, count, p=(0.6, 0.3, 0.1))
    return classes[chosen, np.arange(count)].astype(np.uint16)


def source_rows(random: Random, fmt: GroupedFormat, dtype: str, rows: int, columns: int) -> Words:
    """Source words [rows, columns] of a grouped format: codes and half codes of some scale, a step off or not at all.

    A group in ten is zero, and in one in ten every word is drawn anew.
    """
    groups = -(-columns // fmt.group)
    shape = (rows * groups, fmt.group)
    scales = values_of_binary32(expand_binary16(group_scales(random, shape[0])))
    halves = random.integers(-2 * fmt.qmax, 2 * fmt.qmax + 1, shape)
    halves[np.arange(shape[0]), random.integers(0, fmt.group, shape[0])] = 2 * fmt.qmax
    thirds = random.choice((1.0, 1.0, 1.0 / 3.0), shape[0])
    words = source_words(dtype, halves * (scales * thirds / 2)[:, None])
    words = _nudged(random, dtype, words, _LARGEST16 * fmt.qmax)
    free = random.random(shape[0]) < 0.1
    # Free words stay below the largest scale of the narrowest format times its largest code.
    values = random.standard_normal(shape) * np.exp2(random.uniform(-30, 10, shape))
    words[free] = source_words(dtype, values)[free]
    words[random.random(shape[0]) < 0.1] = 0
    return np.ascontiguousarray(words.reshape(rows, -1)[:, :columns])


def source_fp8(random: Random, dtype: str, rows: int, columns: int) -> Words:
    """Source words [rows, columns] of FP8 rows: multiples of half the smallest step under many scales, a step off."""
    low, high = (-14.0, 6.0) if dtype == "F16" else (-120.0, 110.0)
    scales = np.exp2(random.uniform(low, high, rows)) * random.choice((1.0, 1.0 / 3.0), rows)
    steps = random.integers(-28, 29, (rows, columns)) * np.exp2(random.integers(-10, 5, (rows, columns)))
    steps[:, 0] = 448.0
    words = _nudged(random, dtype, source_words(dtype, steps * scales[:, None]), _LARGEST32)
    words[random.random(rows) < 0.05] = 0
    return words


def largest_word(dtype: str, largest: float) -> int:
    """The source word of the largest value up to `largest` that is finite in binary32."""
    limit = source_words(dtype, np.array([min(largest, _LARGEST32)]))
    fmt = SOURCE_DTYPES[dtype]
    word = int(limit[0])
    beyond = word > fmt.largest_finite or values_of_binary32(widened(dtype, limit))[0] > largest
    return word - int(beyond)


def _nudged(random: Random, dtype: str, words: Words, largest: float) -> Words:
    """Each word one up, one down or as it is: finite, of its sign, and no larger than some value."""
    sign = words.dtype.type(SOURCE_DTYPES[dtype].sign_bit)
    magnitude = (words & ~sign).astype(np.int64)
    moved = np.clip(magnitude + random.integers(-1, 2, words.shape), 0, largest_word(dtype, largest))
    nudged: Words = moved.astype(words.dtype) | (words & sign)
    return nudged


def grouped_words(
    random: Random, fmt: GroupedFormat, rows: int, columns: int
) -> tuple[NDArray[np.int8], Words16]:
    """Legal codes [rows, columns] and scales [rows, groups]; a zero scale stands over zero codes."""
    groups = -(-columns // fmt.group)
    scales = group_scales(random, rows * groups).reshape(rows, groups)
    scales[random.random(scales.shape) < 0.1] = 0
    codes = random.integers(fmt.qmin, fmt.qmax + 1, (rows, groups * fmt.group))
    codes[np.repeat(scales == 0, fmt.group, axis=1)] = 0
    return np.ascontiguousarray(codes[:, :columns].astype(np.int8)), scales


def fp8_words(
    random: Random, rows: int, columns: int, largest: int = 0x7F7F
) -> tuple[NDArray[np.uint8], Words16]:
    """Legal E4M3FN codes [rows, columns] and BF16 multipliers [rows], subnormal ones among them."""
    magnitudes = random.integers(0, 0x7F, (rows, columns))
    codes = (magnitudes | random.integers(0, 2, (rows, columns)) << 7).astype(np.uint8)
    scales = random.integers(1, largest + 1, rows).astype(np.uint16)
    scales[random.random(rows) < 0.3] = random.integers(1, 0x80)
    zero = random.random(rows) < 0.1
    scales[zero] = 0
    codes[zero] &= 0x80
    return codes, scales


def nvfp4_words(random: Random, rows: int, columns: int) -> tuple[NDArray[np.uint8], NDArray[np.uint8], int]:
    """E2M1 codes [rows, columns], E4M3FN scales [rows, columns / 16], both in natural order, and a divisor word."""
    codes = random.integers(0, 16, (rows, columns)).astype(np.uint8)
    scales = random.integers(0, 0x7F, (rows, columns // 16)).astype(np.uint8)
    divisor = int(random.integers(0x3A000000, 0x47000000))
    return codes, scales, divisor
