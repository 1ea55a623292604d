"""Counts over codes, scales and direct words."""

import numpy as np
from numpy.typing import NDArray

from ninfer_core.kernels.cache import inline, kernel
from ninfer_core.kernels.tiles import LINE, Array, unpack
from ninfer_core.words import Words8

COUNTED = 1 << 16  # direct words per step: their counts fit 32 bits
WAYS = 4  # histograms side by side, so that equal neighbours do not wait for each other


@kernel
def count_bytes(data: Array, ways: Array) -> None:
    """Add every byte to the histograms `ways`, int64 [WAYS * 256]; one load serves eight of them."""
    whole = data.size // 8 * 8
    for word in data[:whole].view(np.uint64):
        ways[word & np.uint64(255)] += 1
        ways[(word >> np.uint64(8) & np.uint64(255)) + np.uint64(256)] += 1
        ways[(word >> np.uint64(16) & np.uint64(255)) + np.uint64(512)] += 1
        ways[(word >> np.uint64(24) & np.uint64(255)) + np.uint64(768)] += 1
        ways[word >> np.uint64(32) & np.uint64(255)] += 1
        ways[(word >> np.uint64(40) & np.uint64(255)) + np.uint64(256)] += 1
        ways[(word >> np.uint64(48) & np.uint64(255)) + np.uint64(512)] += 1
        ways[(word >> np.uint64(56)) + np.uint64(768)] += 1
    for i in range(whole, data.size):
        ways[np.uint64(data[i])] += 1


def byte_counts(data: Words8) -> NDArray[np.int64]:
    """How often every byte comes, [256]."""
    ways = np.zeros(WAYS * 256, np.int64)
    count_bytes(data, ways)
    counts: NDArray[np.int64] = ways.reshape(WAYS, 256).sum(axis=0)
    return counts


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


@inline
def tally_scales(scales: Array, tallies: Array) -> None:
    """Add consecutive groups but for their zero codes; no branches, so that it vectorises."""
    zeros, smallest, largest = np.uint32(0), np.uint16(0xFFFF), np.uint16(0)
    for i in range(scales.size):
        zeros += np.uint32(scales[i] == 0)
        # Zero wraps to the largest word, so that the smallest of word - 1 is never that of a zero.
        smallest = min(smallest, np.uint16(scales[i] - np.uint16(1)))
        largest = max(largest, scales[i])
    tallies[0] += scales.size
    tallies[1] += zeros
    if zeros < scales.size:
        tallies[3] = min(tallies[3], np.int64(smallest) + 1)
        tallies[4] = max(tallies[4], np.int64(largest))


@inline
def zero_groups(base: Array, high: Array, high_words: int, first: int, groups: int) -> int:
    """How many of some groups hold zero codes only; planes as 64-bit words, `high_words` of them a group."""
    zero = 0
    for i in range(first, first + groups):
        used = base[4 * i] | base[4 * i + 1] | base[4 * i + 2] | base[4 * i + 3]
        if high_words == 1:
            used |= high[i]
        elif high_words == 2:
            used |= high[2 * i] | high[2 * i + 1]
        zero += used == 0
    return zero


@inline
def correct_tail(group: int, tail: int, codes: Array, histogram: Array, tallies: Array) -> None:
    """Take the padding of a row's last line off the histogram, and count its groups of zeros; `tail` lanes are logical."""
    half = histogram.size >> 1
    for lane in range(tail, LINE):
        histogram[np.int64(codes[lane]) + half] -= 1
    for start in range(0, tail, group):
        used = np.int8(0)
        for lane in range(start, min(start + group, tail)):
            used |= codes[lane]
        tallies[2] += used == 0


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
    """Add the logical groups of a block of rows; take the padding, counted already, off the histogram again."""
    codes = np.empty(LINE, np.int8)
    base_words, high_view, high_words = (
        base.view(np.uint64),
        high.view(np.uint64),
        (bits - 4 if bits < 8 else 0),
    )
    full, tail, per_line = columns // LINE, columns % LINE, LINE // group
    row_lines, row_groups = full + (tail > 0), (columns + group - 1) // group
    for row in range(rows):
        first = row * row_lines * per_line
        tally_scales(scales[first : first + row_groups], tallies)
        tallies[2] += zero_groups(base_words, high_view, high_words, first, full * per_line)
        if tail > 0:
            unpack(bits, base, high, row * row_lines + full, 1, codes)
            correct_tail(group, tail, codes, histogram, tallies)


@kernel
def rows_of_fp8(codes: Array, scales: Array, tallies: Array) -> None:
    """Add FP8 rows but for their histogram: codes [rows, columns], scales [rows]."""
    rows, columns = codes.shape
    for row in range(rows):
        magnitudes = np.uint8(0)
        for i in range(columns):
            magnitudes |= codes[row, i]
        tally_scale(np.int64(scales[row]), magnitudes & np.uint8(0x7F) == 0, tallies)


@kernel
def nvfp4(codes: Array, scales: Array, tallies: Array) -> None:
    """Add NVFP4 groups but for their histogram: codes u64 [groups], sixteen nibbles each, scales u8 [groups] in natural order."""
    for i in range(scales.size):
        zero = codes[i] & np.uint64(0x7777777777777777) == 0
        tally_scale(np.int64(scales[i]), zero, tallies)


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
