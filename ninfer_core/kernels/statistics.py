"""Counts over codes, scales and direct words."""

import numpy as np

from ninfer_core.kernels.cache import inline, kernel
from ninfer_core.kernels.tiles import LANES, LINE, TILE, Array, unpack

COUNTED = 1 << 16  # direct words per step: their counts fit 32 bits
WAYS = 4  # histograms side by side, so that equal neighbours do not wait for each other


@inline
def count_bytes(data: Array, ways: Array) -> None:
    """Add every byte to the histograms `ways`, int64 [WAYS * 256]."""
    whole = data.size // WAYS * WAYS
    for i in range(0, whole, WAYS):
        ways[np.uint64(data[i])] += 1
        ways[np.uint64(data[i + 1]) + np.uint64(256)] += 1
        ways[np.uint64(data[i + 2]) + np.uint64(512)] += 1
        ways[np.uint64(data[i + 3]) + np.uint64(768)] += 1
    for i in range(whole, data.size):
        ways[np.uint64(data[i])] += 1


@inline
def tally_scale(scale: int, all_zero: bool, tallies: Array) -> None:
    """Add one group to [groups, zero scales, zero groups, smallest scale, largest scale]."""
    tallies[0] += 1
    if scale == 0:
        tallies[1] += 1
    else:
        tallies[3] = min(tallies[3], scale)
        tallies[4] = max(tallies[4], scale)
    tallies[2] += all_zero


@kernel
def grouped(
    bits: int,
    group: int,
    rows: int,
    columns: int,
    base: Array,
    high: Array,
    scales: Array,
    histogram: Array,
    tallies: Array,
) -> None:
    """Add the logical lanes and groups of a block of rows."""
    codes = np.empty(LANES, np.int8)
    code_words = codes.view(np.uint64)
    ways = np.zeros(WAYS * 256, np.int64)
    row_lines = (columns + LINE - 1) // LINE
    padding = 0
    for row in range(rows):
        for first in range(0, row_lines, TILE):
            lines = min(TILE, row_lines - first)
            lanes = min(lines * LINE, columns - first * LINE)
            unpack(bits, base, high, row * row_lines + first, lines, codes)
            codes[lanes : lines * LINE] = 0
            padding += lines * LINE - lanes
            count_bytes(codes[: lines * LINE].view(np.uint8), ways)
            scale = (row * row_lines + first) * (LINE // group)
            for i in range((lanes + group - 1) // group):
                used = np.uint64(0)
                for word in range(i * (group // 8), (i + 1) * (group // 8)):
                    used |= code_words[word]
                tally_scale(np.int64(scales[scale + i]), used == 0, tallies)
    half = 1 << (bits - 1)
    for code in range(-half, half):
        total = 0
        for way in range(WAYS):
            total += ways[way * 256 + (code & 0xFF)]
        histogram[code + half] += total
    histogram[half] -= padding


@kernel
def rows_of_fp8(codes: Array, scales: Array, histogram: Array, tallies: Array) -> None:
    """Add FP8 rows: codes [rows, columns], scales [rows]."""
    rows, columns = codes.shape
    ways = np.zeros(WAYS * 256, np.int64)
    for row in range(rows):
        magnitudes = np.uint8(0)
        for i in range(columns):
            magnitudes |= codes[row, i]
        tally_scale(np.int64(scales[row]), magnitudes & np.uint8(0x7F) == 0, tallies)
    count_bytes(codes.reshape(rows * columns), ways)
    for way in range(WAYS):
        for word in range(256):
            histogram[word] += ways[way * 256 + word]


@kernel
def nvfp4(codes: Array, scales: Array, histogram: Array, tallies: Array) -> None:
    """Add NVFP4 groups: codes u64 [groups], sixteen nibbles each, scales u8 [groups] in natural order."""
    ways = np.zeros(WAYS * 256, np.int64)
    for i in range(scales.size):
        zero = codes[i] & np.uint64(0x7777777777777777) == 0
        tally_scale(np.int64(scales[i]), zero, tallies)
    count_bytes(codes.view(np.uint8), ways)
    for way in range(WAYS):
        for byte in range(256):
            histogram[byte & 15] += ways[way * 256 + byte]
            histogram[byte >> 4] += ways[way * 256 + byte]


@kernel
def float_words(words: Array, shift: int, infinity: int, counts: Array) -> None:
    """Add floating-point words of 16 or 32 bits to [+0, -0, NaN, infinities, smallest, largest].

    A word is moved up by `shift` to 32 bits, and so is the word of `infinity`. The extremes are keys of finite words:
    the word itself, or -1 - magnitude where the sign is set.
    """
    up, limit, most = np.int32(shift), np.int32(infinity), np.int32(0x7FFFFFFF)
    for start in range(0, words.size, COUNTED):
        part = words[start : start + COUNTED]
        zeros, negative, nans, infinities = np.int32(0), np.int32(0), np.int32(0), np.int32(0)
        low, top = most, np.int32(-most - 1)
        for i in range(part.size):
            word = np.int32(np.int32(part[i]) << up)
            magnitude = np.int32(word & most)
            key = np.int32(word ^ np.int32(np.int32(word >> np.int32(31)) & most))
            zeros = np.int32(zeros + np.int32(magnitude == 0))
            negative = np.int32(negative + np.int32(key == -1))
            nans = np.int32(nans + np.int32(magnitude > limit))
            infinities = np.int32(infinities + np.int32(magnitude == limit))
            low = np.int32(min(low, key if magnitude < limit else most))
            top = np.int32(max(top, key if magnitude < limit else np.int32(-most - 1)))
        counts[0] += zeros - negative
        counts[1] += negative
        counts[2] += nans
        counts[3] += infinities
        if nans + infinities < part.size:
            counts[4] = min(counts[4], low)
            counts[5] = max(counts[5], top)


@kernel
def binary64_words(words: Array, counts: Array) -> None:
    """Add binary64 words to the same six, keys of 64 bits."""
    most, limit = np.int64(0x7FFFFFFFFFFFFFFF), np.int64(0x7FF0000000000000)
    for i in range(words.size):
        word = np.int64(words[i])
        magnitude = word & most
        key = word ^ ((word >> 63) & most)
        if magnitude < limit:
            counts[0] += key == 0
            counts[1] += key == -1
            counts[4] = min(counts[4], key)
            counts[5] = max(counts[5], key)
        else:
            counts[2] += magnitude > limit
            counts[3] += magnitude == limit


@kernel
def integer_words(words: Array, counts: Array) -> None:
    """Add int32 words to the same six; there are no negative zeros, NaN or infinities."""
    zeros = 0
    smallest: Array = counts[4]
    largest: Array = counts[5]
    for i in range(words.size):
        number = np.int64(words[i])
        zeros += number == 0
        smallest = min(smallest, number)
        largest = max(largest, number)
    counts[0] += zeros
    counts[4] = smallest
    counts[5] = largest
