"""Streams of codes down the columns of a matrix, as GPTQ has them, and AWQ's interleaved rows.

Zero points and scales are arguments in binary32: differences of small integers are exact there.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ninfer_core.schemes.compiled.cache import kernel
from ninfer_core.schemes.compiled.spread import over_items, stored

Values = NDArray[np.float32]
Words = NDArray[np.uint32]


def columns(words: Words, zeros: Values, scales: Values, groups: NDArray[np.int64], bits: int) -> Values:
    """[K, N] values of words [K*bits/32, N]; zeros and scales [groups, N], the group of each row in `groups` [K]."""
    words, zeros, scales, index = stored(words), stored(zeros), stored(scales), stored(groups)
    out = np.empty((len(groups), words.shape[1]), np.float32)
    over_items(
        len(groups),
        words.shape[1],
        lambda first, last: _columns(words, zeros, scales, index, bits, out, first, last),
    )
    return out


def interleaved(words: Words, zeros: Values, scales: Values, size: int) -> Values:
    """[K, N] values of AWQ's words [K, N/8]; zeros and scales [K/size, N]."""
    words, zeros, scales = stored(words), stored(zeros), stored(scales)
    out = np.empty((len(words), 8 * words.shape[1]), np.float32)
    over_items(
        len(words),
        out.shape[1],
        lambda first, last: _interleaved(words, zeros, scales, size, out, first, last),
    )
    return out


@kernel
def _columns(
    words: Any, zeros: Any, scales: Any, groups: Any, bits: int, out: Any, first: int, last: int
) -> None:
    mask = np.uint32((1 << bits) - 1)
    for left in range(0, words.shape[1], 1024):  # zeros and scales of so many columns stay near
        right = min(left + 1024, words.shape[1])
        for k in range(first, last):
            word, place = k * bits >> 5, k * bits & 31
            shift = np.uint32(place)
            row, values = words[word, left:right], out[k, left:right]
            zero, scale = zeros[groups[k], left:right], scales[groups[k], left:right]
            if place + bits <= 32:
                for n in range(values.size):
                    code = row[n] >> shift & mask
                    values[n] = (np.float32(np.int32(code)) - zero[n]) * scale[n]
            else:
                following, rest = words[word + 1, left:right], np.uint32(32 - place)
                for n in range(values.size):
                    code = (row[n] >> shift | following[n] << rest) & mask
                    values[n] = (np.float32(np.int32(code)) - zero[n]) * scale[n]


@kernel
def _interleaved(words: Any, zeros: Any, scales: Any, size: int, out: Any, first: int, last: int) -> None:
    # Nibbles m and m + 4 of a word are neighbouring columns, and lie 16 bits apart: a pair of 16-bit numbers.
    pairs = np.empty(4 * words.shape[1], np.uint32)
    codes = pairs.view(np.uint16)
    for k in range(first, last):
        row, values, zero, scale = words[k], out[k], zeros[k // size], scales[k // size]
        for c in range(row.size):
            for m in range(4):
                pairs[4 * c + m] = row[c] >> np.uint32(4 * m) & np.uint32(0x000F000F)
        for n in range(values.size):
            values[n] = (np.float32(codes[n]) - zero[n]) * scale[n]
