"""Groups and rows on which encoders go wrong: scales on a tie and beside it, rescues, clamps, the smallest and the largest words.

They are built from format and source type, not drawn in the hope that one of each comes along.
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from ninfer_core.formats import GroupedFormat
from ninfer_core.kernels.values import SOURCE_DTYPES
from ninfer_core.oracles.encoding import rounded16, rounded32
from ninfer_core.selfcheck.drawn import WORDS, Random, Words, largest_word, source_words, widened
from ninfer_core.words import (
    Words32,
    expand_bf16,
    expand_binary16,
    expand_e4m3fn,
    narrow_bf16,
    values_of_binary32,
)

Values = NDArray[np.float64]
_SMALL: Final = 24  # scale words from 0 on, the ties between all of which are asked for
_SCALES: Final = (0x3FE, 0x3FF, 0x400, 0x401, 0x7BFD, 0x7BFE)  # where subnormal words end, and the largest
_OVERFLOW: Final = 65520.0  # half way from the largest binary16 number to what would follow
_COLUMNS: Final = 128
_MULTIPLIERS: Final = (0x21, 0x7A00)  # BF16 words, from the first that has a reciprocal
_MULTIPLIERS_OF_F16: Final = (0x2F80, 0x4310)  # those that occur over binary16 words
_ENDS: Final = np.array(
    [0x7E, 0x7F, 0x80, 0x81, 0x3F7F, 0x3F80]
)  # where subnormal words end, and a power of two
_LARGEST_CODE: Final = 448.0
_WIDTH: Final = 96  # lanes of a row
_WITHIN_BINARY32: Final = 1 << 29  # steps of a binary64 word in one of a binary32 word


def edge_groups(random: Random, fmt: GroupedFormat, dtype: str, more: int) -> Words:
    """Source words [rows, 128]; of each kind of scale `more` at places that are drawn.

    The largest magnitude of each is such that its scale falls on a tie or a source word beside it, or among the
    smallest scales, under which a code can lie far beyond the clamp. The others are codes and half codes.
    """
    drawn = (random.integers(low, high, more) for low, high in ((_SMALL, 0x400), (0x400, 0x7BFE)))
    words = np.concatenate([np.arange(_SMALL), np.array(_SCALES), *drawn]).astype(np.uint16)
    ties = (_scale_values(words) + _scale_values(words + np.uint16(1))) / 2
    few = np.exp2(-24) * random.uniform(0, _SMALL, 4 * _SMALL + more)
    most, own = _most(fmt, dtype), SOURCE_DTYPES[dtype]
    extremes = (1, 2, 3, (1 << own.fraction_bits) - 1, 1 << own.fraction_bits, most - 1, most)
    largest = _beside(dtype, np.concatenate([ties, few]) * fmt.qmax, most, extremes)
    raw = values_of_binary32(rounded32(values_of_binary32(widened(dtype, largest)) / fmt.qmax))
    steps = _scale_values(np.maximum(rounded16(raw), 1)) / 2
    halves = random.integers(-2 * fmt.qmax - 2, 2 * fmt.qmax + 3, (largest.size, fmt.group))
    groups = _under(random, dtype, largest, halves * steps[:, None])
    whole = _COLUMNS // fmt.group
    return np.ascontiguousarray(groups[: groups.shape[0] // whole * whole].reshape(-1, _COLUMNS))


def edge_rows(random: Random, dtype: str, more: int) -> Words:
    """Source words [rows, columns] of FP8 rows, with the same intent; lanes lie on ties between codes and beside them.

    The last row is zero, and some of its zeros are negative.
    """
    first, last = _MULTIPLIERS_OF_F16 if dtype == "F16" else _MULTIPLIERS
    drawn = random.integers(first, last, 2 * _SMALL + more)
    words = np.concatenate([first + np.arange(_SMALL), _ENDS[(first < _ENDS) & (last > _ENDS)], drawn])
    here, above = (_multiplier_values(words.astype(np.uint16) + np.uint16(step)) for step in (0, 1))
    values = np.concatenate([here, (here + above) / 2]) * _LARGEST_CODE
    largest = _beside(dtype, values, largest_word(dtype, np.inf))
    amax = values_of_binary32(widened(dtype, largest))
    steps = _multiplier_values(narrow_bf16(rounded32(amax / _LARGEST_CODE)))
    codes = values_of_binary32(expand_e4m3fn(np.arange(0x7F, dtype=np.uint8)))
    shape = (largest.size, _WIDTH)
    lanes = random.choice((codes[:-1] + codes[1:]) / 2, shape) * random.choice((-1.0, 1.0), shape)
    lanes[:, ::5] = random.choice((0.0, -0.0), lanes[:, ::5].shape)
    rows = _under(random, dtype, largest, lanes * steps[:, None])
    zeros = source_words(dtype, random.choice((0.0, -0.0), (1, _WIDTH)))
    return np.concatenate([rows, zeros])


def _multiplier_values(words: NDArray[np.uint16]) -> Values:
    return values_of_binary32(expand_bf16(words))


def _scale_values(words: NDArray[np.uint16]) -> Values:
    return values_of_binary32(expand_binary16(words))


def _most(fmt: GroupedFormat, dtype: str) -> int:
    """The largest source word under which no scale is beyond binary16."""
    limit: Words32 = rounded32(np.array([_OVERFLOW * fmt.qmax])) - np.uint32(1)
    return largest_word(dtype, float(values_of_binary32(limit)[0]))


def _beside(dtype: str, values: Values, most: int, others: tuple[int, ...] = ()) -> Words:
    """The source words nearest to values and those a step beside them, up to a largest one, and other words."""
    words = source_words(dtype, values).astype(np.int64)
    steps = (0, 1, -1) if dtype != "F64" else (0, 1, -1, _WITHIN_BINARY32, -_WITHIN_BINARY32)
    every = np.concatenate([*(words + step for step in steps), np.array(others, np.int64)])
    found: Words = np.clip(every, 1, most).astype(WORDS[dtype])
    return found


def _under(random: Random, dtype: str, largest: Words, others: Values) -> Words:
    """Rows that hold the largest magnitude once with each sign and the other values, none of them larger."""
    sign = largest.dtype.type(SOURCE_DTYPES[dtype].sign_bit)
    words = source_words(dtype, others)
    magnitudes = np.minimum(words & ~sign, largest[:, None])
    words = magnitudes | (words & sign)
    rows = np.arange(largest.size)
    first, second = random.permuted(np.tile(np.arange(others.shape[1]), (largest.size, 1)), axis=1)[:, :2].T
    words[rows, first] = largest
    words[rows, second] = largest | sign
    found: Words = words
    return found
