"""Value checks of stored blocks: bit masks of what is wrong, 0 when nothing is (spec, value checking)."""

import numpy as np

from ninfer_core.kernels.cache import inline, kernel
from ninfer_core.kernels.tiles import LINE, Array, unpack

# Bits of the masks.
INVALID_SCALE = 1
ZERO_SCALE_OVER_CODE = 2
ILLEGAL_CODE = 4
PADDING = 8

BLOCK = 4096  # bytes looked at before a hit is acted on
GROUPS = 128  # groups per step: 4,096 bytes of the base plane


@inline
def holds_byte(data: Array, mask: int, wanted: int) -> bool:
    """True when some byte, under `mask`, equals `wanted`."""
    m, w = np.uint8(mask), np.uint8(wanted)
    for start in range(0, data.size, BLOCK):
        block = data[start : start + BLOCK]
        hit = np.uint8(0)
        for i in range(block.size):
            hit = np.uint8(hit | np.uint8((block[i] & m) == w))  # `|=` would widen to 64 bits
        if hit != 0:
            return True
    return False


@kernel
def any_nonzero(data: Array) -> bool:
    """True when some byte is not zero."""
    for start in range(0, data.size, BLOCK):
        block = data[start : start + BLOCK]
        hit = np.uint8(0)
        for i in range(block.size):
            hit = np.uint8(hit | block[i])
        if hit != 0:
            return True
    return False


@kernel
def largest_byte(data: Array) -> int:
    """The largest byte, 0 of none."""
    largest = np.uint8(0)
    for i in range(data.size):
        largest = max(largest, data[i])
    return int(largest)


@kernel
def same_bytes(a: Array, b: Array) -> bool:
    """True when two byte arrays of one size are equal."""
    for start in range(0, a.size, BLOCK):
        left, right = a[start : start + BLOCK], b[start : start + BLOCK]
        hit = np.uint8(0)
        for i in range(left.size):
            hit = np.uint8(hit | np.uint8(left[i] ^ right[i]))
        if hit != 0:
            return False
    return True


@inline
def zero_scale_over_code(
    base: Array, high: Array, scales: Array, first: int, groups: int, high_words: int
) -> bool:
    """True when one of the groups has a zero scale and a code that is not zero; planes as 64-bit words."""
    hit = np.uint64(0)
    for i in range(first, first + groups):
        if scales[i] == 0:
            hit |= base[4 * i] | base[4 * i + 1] | base[4 * i + 2] | base[4 * i + 3]
            if high_words == 1:
                hit |= high[i]
            elif high_words == 2:
                hit |= high[2 * i] | high[2 * i + 1]
    return bool(hit != 0)


@inline
def scan_full_groups(
    bits: int, base: Array, high: Array, scales: Array, first: int, groups: int, high_words: int
) -> int:
    """The mask of groups that are logical in every lane."""
    base_words, high_view = base.view(np.uint64), high.view(np.uint64)
    found = 0
    for start in range(first, first + groups, GROUPS):
        count = min(GROUPS, first + groups - start)
        largest, smallest = np.uint16(0), np.uint16(0xFFFF)
        for i in range(start, start + count):
            largest = max(largest, scales[i])
            smallest = min(smallest, scales[i])
        if largest > 0x7BFF:
            found |= INVALID_SCALE
        if (
            smallest == 0
            and found & ZERO_SCALE_OVER_CODE == 0
            and zero_scale_over_code(base_words, high_view, scales, start, count, high_words)
        ):
            found |= ZERO_SCALE_OVER_CODE
    if bits == 8 and holds_byte(base[first * 32 : (first + groups) * 32], 0xFF, 0x80):
        found |= ILLEGAL_CODE
    return found


@inline
def scan_tail(bits: int, group: int, columns: int, codes: Array, scales: Array) -> int:
    """The mask of the last 128 lanes of a row, of which the first `columns` are logical."""
    found = 0
    for i in range(128 // group):
        any_code, illegal, beyond = False, False, False
        for lane in range(i * group, (i + 1) * group):
            code = codes[lane]
            if lane < columns:
                any_code |= code != 0
                illegal |= bits == 8 and code == -128
            else:
                beyond |= code != 0
        if i * group < columns:
            if scales[i] > 0x7BFF:
                found |= INVALID_SCALE
            if scales[i] == 0 and any_code:
                found |= ZERO_SCALE_OVER_CODE
            if illegal:
                found |= ILLEGAL_CODE
        else:
            beyond |= scales[i] != 0
        if beyond:
            found |= PADDING
    return found


@kernel
def scan_grouped(
    bits: int, group: int, rows: int, columns: int, base: Array, high: Array, scales: Array, high_words: int
) -> int:
    """The mask of a block of rows."""
    full, tail = columns // 128 * (128 // group), columns % 128
    physical = full + (128 // group if tail else 0)
    codes = np.empty(128, np.int8)
    found = 0
    for row in range(rows):
        first = row * physical
        found |= scan_full_groups(bits, base, high, scales, first, full, high_words)
        if tail > 0:
            unpack(bits, base, high, (first + full) * group // LINE, 1, codes)
            found |= scan_tail(bits, group, tail, codes, scales[first + full : first + physical])
    return found


@kernel
def scan_row(codes: Array, scales: Array) -> int:
    """The mask of FP8 rows: codes [rows, columns], scales [rows]."""
    rows, columns = codes.shape
    found = 0
    for row in range(rows):
        if scales[row] > 0x7F7F:
            found |= INVALID_SCALE
        if scales[row] == 0 and found & ZERO_SCALE_OVER_CODE == 0:
            magnitudes = np.uint8(0)
            for i in range(columns):
                magnitudes |= codes[row, i]
            if magnitudes & np.uint8(0x7F) != 0:
                found |= ZERO_SCALE_OVER_CODE
    if holds_byte(codes.reshape(rows * columns), 0x7F, 0x7F):
        found |= ILLEGAL_CODE
    return found
