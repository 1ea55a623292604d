"""Counts over codes, scales and direct words."""

import numpy as np

from ninfer_core.kernels.cache import inline, kernel
from ninfer_core.kernels.tiles import LANES, LINE, TILE, Array, unpack

COUNTED = 1 << 16  # direct words per step: their counts fit 32 bits
WAYS = 4  # histograms side by side, so that equal neighbours do not wait for each other


@inline
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
def count_pairs(codes: Array, bits: int, pairs: Array, histograms: Array) -> None:
    """Add two codes at a time: uint16 `codes` hold two bytes each, a pair of codes is one index of 2 * bits bits.

    `histograms` are uint32 [WAYS << (2 * bits)]; the number of codes is a multiple of 8.
    """
    mask = np.uint16((1 << bits) - 1)
    up, upper = np.uint16(8 - bits), np.uint16(mask << np.uint16(bits))
    for i in range(codes.size):
        pairs[i] = np.uint16((codes[i] & mask) | ((codes[i] >> up) & upper))
    low, size = np.uint64(0xFFFF), np.uint64(1 << (2 * bits))
    for word in pairs[: codes.size].view(np.uint64):
        histograms[word & low] += np.uint32(1)
        histograms[(word >> np.uint64(16) & low) + size] += np.uint32(1)
        histograms[(word >> np.uint64(32) & low) + np.uint64(2) * size] += np.uint32(1)
        histograms[(word >> np.uint64(48)) + np.uint64(3) * size] += np.uint32(1)


@inline
def fold_pairs(histograms: Array, bits: int, ways: Array) -> None:
    """Move counts of pairs into `ways`, int64 [WAYS * 256] by code byte, and clear them."""
    size = 1 << bits
    extend = 256 - size
    for way in range(WAYS):
        for second in range(size):
            for first in range(size):
                place = (way << (2 * bits)) | (second << bits) | first
                count = np.int64(histograms[place])
                ways[first + (extend if first >= size >> 1 else 0)] += count
                ways[second + (extend if second >= size >> 1 else 0)] += count
                histograms[place] = 0


@inline
def zero_groups(words: Array, group: int, groups: int) -> int:
    """How many groups hold zero codes only; uint64 `words` hold eight codes each."""
    zero = 0
    if group == 64:
        for i in range(0, groups * 8, 8):
            used = words[i] | words[i + 1] | words[i + 2] | words[i + 3]
            zero += used | words[i + 4] | words[i + 5] | words[i + 6] | words[i + 7] == 0
    else:
        for i in range(0, groups * 4, 4):
            zero += words[i] | words[i + 1] | words[i + 2] | words[i + 3] == 0
    return zero


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
    code_pairs = codes.view(np.uint16)
    pairs = np.empty(LANES // 2, np.uint16)
    ways = np.zeros(WAYS * 256, np.int64)
    paired = bits < 8
    histograms = np.zeros(WAYS << (2 * bits) if paired else 1, np.uint32)
    row_lines = (columns + LINE - 1) // LINE
    padding = 0
    pending = 0
    for row in range(rows):
        for first in range(0, row_lines, TILE):
            lines = min(TILE, row_lines - first)
            lanes = min(lines * LINE, columns - first * LINE)
            unpack(bits, base, high, row * row_lines + first, lines, codes)
            codes[lanes : lines * LINE] = 0
            padding += lines * LINE - lanes
            if paired:
                count_pairs(code_pairs[: lines * LINE // 2], bits, pairs, histograms)
                pending += lines * LINE
                if pending > 1 << 30:  # before a count could pass 32 bits
                    fold_pairs(histograms, bits, ways)
                    pending = 0
            else:
                count_bytes(codes[: lines * LINE].view(np.uint8), ways)
            scale = (row * row_lines + first) * (LINE // group)
            groups = (lanes + group - 1) // group
            tally_scales(scales[scale : scale + groups], tallies)
            tallies[2] += zero_groups(code_words, group, groups)
    if paired:
        fold_pairs(histograms, bits, ways)
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
