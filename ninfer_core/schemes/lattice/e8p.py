"""The E8P codebook of QuIP#: 65,536 vectors of eight half-integers, shifted by a quarter (5.19)."""

from functools import cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ninfer_core.schemes.data import tables

LANES: Final = 8
_ORDER: Final = (0, 4, 1, 5, 2, 6, 3, 7)  # the nibble, and the sign bit, of each value
_SHIFT: Final = np.float32(0.25)
_BATCH: Final = 512  # vectors in one search: 512 x 256 x 8 numbers are 8 MiB


@cache
def patterns() -> NDArray[np.float32]:
    """The 256 patterns before signs and shift, float32[256, 8]; odd halves, the last value negative in some."""
    packed: NDArray[np.uint32] = tables("quip_e8p")["packed_abs"]
    shifts = 4 * np.array(_ORDER, np.uint32)
    nibbles = (packed[:, np.newaxis] >> shifts & np.uint32(15)).astype(np.float32)
    found: NDArray[np.float32] = (nibbles - np.float32(8)) * np.float32(0.5)
    found.flags.writeable = False
    return found


@cache
def signs() -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """For each sign byte: the factors of the eight values, float32[256, 8], and the shift, float32[256]."""
    byte = np.arange(256, dtype=np.uint8)
    parity = np.bitwise_count(byte) & np.uint8(1)
    flips = (byte ^ parity)[:, np.newaxis] >> np.array(_ORDER, np.uint8) & np.uint8(1)
    return np.where(flips, np.float32(-1), np.float32(1)), np.where(parity, -_SHIFT, _SHIFT)


def decode(indices: NDArray[np.uint16]) -> NDArray[np.float32]:
    """The vectors of indices of any shape, float32[..., 8]: every index has one, and every value is exact."""
    factors, shift = signs()
    low = indices & np.uint16(255)
    values: NDArray[np.float32] = patterns()[indices >> np.uint16(8)] * factors[low]
    values += shift[low][..., np.newaxis]
    return values


def nearest(vectors: NDArray[np.float32]) -> NDArray[np.uint16]:
    """The index of the nearest vector of the codebook for each of float32[V, 8]; of equally near ones the lowest found.

    For one pattern and one shift the best signs are those of the vector itself, but an even number of them has to be
    flipped: where it is odd, the value that loses least keeps the other sign. So 512 distances are compared instead of 65,536.
    """
    chosen = np.empty(len(vectors), np.uint16)
    for first in range(0, len(vectors), _BATCH):
        chosen[first : first + _BATCH] = _nearest(vectors[first : first + _BATCH].astype(np.float64))
    return chosen


def _nearest(vectors: NDArray[np.float64]) -> NDArray[np.uint16]:
    table = patterns().astype(np.float64)
    norms = np.square(table).sum(axis=1)
    best = np.full(len(vectors), np.inf)
    chosen = np.zeros(len(vectors), np.uint16)
    bits = np.uint8(1) << np.array(_ORDER, np.uint8)
    rows = np.arange(len(vectors))
    for parity, shift in ((0, _SHIFT), (1, -_SHIFT)):
        target = vectors - np.float64(shift)
        products = target[:, np.newaxis, :] * table  # [V, 256, 8]
        gains = np.abs(products)
        flip = products < 0
        odd = np.count_nonzero(flip, axis=2) & 1
        loss = np.where(odd, 2 * gains.min(axis=2), 0)
        # |x - c|^2 without |x|^2, which a shift changes: it is added again so that both shifts compare.
        distance = norms - 2 * (gains.sum(axis=2) - loss) + np.square(target).sum(axis=1)[:, np.newaxis]
        pattern = distance.argmin(axis=1)
        found = distance[rows, pattern]
        lane = gains[rows, pattern].argmin(axis=1)
        flips = flip[rows, pattern]
        flips[rows, lane] ^= odd[rows, pattern].astype(np.bool_)
        byte = (flips * bits).sum(axis=1).astype(np.uint16) ^ np.uint16(parity)
        closer = found < best
        best[closer] = found[closer]
        chosen[closer] = (pattern[closer].astype(np.uint16) << np.uint16(8)) | byte[closer]
    return chosen
