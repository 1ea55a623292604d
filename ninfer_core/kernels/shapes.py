"""What stored words look like, for the checks that a recipe asks for: group and row shapes, extremes, repetitions."""

import numpy as np

from ninfer_core.kernels.cache import inline, kernel
from ninfer_core.kernels.tiles import LANES, LINE, TILE, Array, unpack

SMALLEST_NORMAL = 0x0400  # binary16
LARGEST_FINITE = 0x7BFF

# Bits of a row's mask.
HOLDS_LARGEST = 1
HOLDS_MAGNITUDE = 2
HOLDS_NEGATIVE_ZERO = 4


@inline
def largest_magnitude(codes: Array) -> int:
    """The largest magnitude of int8 codes, 0 of none."""
    highest, lowest = np.int8(0), np.int8(0)
    for i in range(codes.size):
        highest = max(highest, codes[i])
        lowest = min(lowest, codes[i])
    return int(max(np.int64(highest), -np.int64(lowest)))


@kernel
def grouped(
    bits: int,
    group: int,
    qmax: int,
    rows: int,
    columns: int,
    base: Array,
    high: Array,
    scales: Array,
    found: Array,
) -> None:
    """Add groups that no canonical encoder makes to `found`, int64 [count, first physical group or -1].

    Logical lanes and groups only; a group under a zero or an invalid scale is the business of `scan`.
    """
    codes = np.empty(LANES, np.int8)
    row_lines = (columns + LINE - 1) // LINE
    for row in range(rows):
        for first in range(0, row_lines, TILE):
            lines = min(TILE, row_lines - first)
            lanes = min(lines * LINE, columns - first * LINE)
            line = row * row_lines + first
            unpack(bits, base, high, line, lines, codes)
            for start in range(0, lanes, group):
                place = (line * LINE + start) // group
                scale = scales[place]
                if scale == 0 or scale > LARGEST_FINITE:
                    continue
                largest = largest_magnitude(codes[start : min(start + group, lanes)])
                wrong = largest != qmax if scale >= SMALLEST_NORMAL else largest == 0 and scale != 1
                if wrong:
                    if found[0] == 0:
                        found[1] = place
                    found[0] += 1


@kernel
def row_masks(codes: Array, masks: Array) -> None:
    """OR into `masks`, uint8 [rows], what E4M3FN codes [rows, columns] hold: 0x7e, a magnitude, a negative zero."""
    for row in range(codes.shape[0]):
        own = codes[row]
        largest, magnitudes, negative = np.uint8(0), np.uint8(0), np.uint8(0)
        for i in range(own.size):
            largest |= np.uint8((own[i] & np.uint8(0x7F)) == np.uint8(0x7E))
            magnitudes |= np.uint8(own[i] & np.uint8(0x7F))
            negative |= np.uint8(own[i] == np.uint8(0x80))
        mask = HOLDS_LARGEST * largest + HOLDS_NEGATIVE_ZERO * negative
        masks[row] |= np.uint8(mask + HOLDS_MAGNITUDE * (magnitudes != 0))


@kernel
def largest16(words: Array) -> int:
    """The largest word without its sign bit, 0 of none."""
    largest = np.uint16(0)
    for i in range(words.size):
        largest = max(largest, np.uint16(words[i] & np.uint16(0x7FFF)))
    return int(largest)


@kernel
def largest32(words: Array) -> int:
    """The largest word without its sign bit, 0 of none."""
    largest = np.uint32(0)
    for i in range(words.size):
        largest = max(largest, np.uint32(words[i] & np.uint32(0x7FFFFFFF)))
    return int(largest)


@kernel
def used_bits32(words: Array) -> int:
    """The bits that are set in some word."""
    used = np.uint32(0)
    for i in range(words.size):
        used |= words[i]
    return int(used)


@kernel
def repetitions(words: Array, low: int, start: int, seen: Array, found: Array) -> None:
    """Add words that `seen` holds already to `found`, int64 [count, index of the first or -1, that word].

    Only words in [low, low + 8 * seen.size) count; bit i of `seen`, uint8, stands for low + i, and `start` is the
    index of the first of `words`, uint32.
    """
    span = np.uint64(seen.size) * np.uint64(8)
    for i in range(words.size):
        word = np.int64(words[i])
        place = np.uint64(word - low)  # what lies below wraps to far above
        if place < span:
            byte, bit = place >> np.uint64(3), np.uint8(1) << np.uint8(place & np.uint64(7))
            if seen[byte] & bit:
                if found[0] == 0:
                    found[1], found[2] = start + i, word
                found[0] += 1
            seen[byte] |= np.uint8(bit)
