"""Conversions of words, the only ones there are: each is an operation that a recipe names."""

from collections.abc import Callable
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ninfer_core.recipes.scalars import reciprocal
from ninfer_core.recipes.values import CastRefused, Words
from ninfer_core.words import expand_bf16, expand_binary16, narrow_bf16

_BINARY32_INFINITY: Final = 0x7F800000


def widen_bf16(words: Words, first: int) -> Words:
    """BF16 to binary32 words, exact."""
    return expand_bf16(words.astype(np.uint16, copy=False))


def cast_f32(words: Words, first: int) -> Words:
    """Binary32 to BF16 words, nearest even; infinities stay. Raises: CastRefused."""
    wide = words.astype(np.uint32, copy=False)
    magnitude = wide & np.uint32(0x7FFFFFFF)
    _refuse(magnitude > _BINARY32_INFINITY, words, first, "F32", "is NaN")
    narrow = narrow_bf16(wide)
    overflow = (narrow & np.uint16(0x7FFF) == 0x7F80) & (magnitude < _BINARY32_INFINITY)
    _refuse(overflow, words, first, "F32", "is finite and would become infinite")
    return narrow


def cast_f16(words: Words, first: int) -> Words:
    """Binary16 to BF16 words, nearest even; infinities stay, nothing finite overflows. Raises: CastRefused."""
    wide = words.astype(np.uint16, copy=False)
    _refuse(wide & np.uint16(0x7FFF) > 0x7C00, words, first, "F16", "is NaN")
    return narrow_bf16(expand_binary16(wide))


def cast_i64(words: Words, first: int) -> Words:
    """64-bit to 32-bit two's complement words. Raises: CastRefused."""
    values = words.astype(np.uint64, copy=False).view(np.int64)
    _refuse((values < -(2**31)) | (values >= 2**31), words, first, "I64", "does not fit 32 bits")
    return values.astype(np.int32).view(np.uint32)


CONVERSIONS: Final[dict[str, Callable[[Words, int], Words]]] = {
    "F32": cast_f32,
    "F16": cast_f16,
    "I64": cast_i64,
}


def _refuse(mask: NDArray[np.bool_], words: Words, first: int, dtype: str, reason: str) -> None:
    place = int(mask.argmax()) if mask.size else 0
    if mask.size and mask[place]:
        raise CastRefused(first + place, int(words[place]), dtype, reason)


def reciprocals(words: Words, first: int) -> Words:
    """Binary32 reciprocals, nearest even, of words that have one (`scalars.reciprocal`)."""
    return np.array([reciprocal(word)[0] for word in words.tolist()], np.uint32)
