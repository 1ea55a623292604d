"""Kernels of CUDA devices that count: a block of threads in shared memory, which it adds to the totals once.

Counts are integers, so their order is free.
"""

from typing import Final

import numpy as np
from numba import cuda

from ninfer_core.kernels.gpu_tiles import OCTET, THREADS, Array, Scalar, device, kernel, unpack_octet
from ninfer_core.kernels.scan import ILLEGAL_CODE, INVALID_SCALE, PADDING, ZERO_SCALE_OVER_CODE
from ninfer_core.kernels.tiles import LINE
from ninfer_core.words import LARGEST_GROUP_SCALE

# Places of a block's counts, after those of 256 codes.
ZERO_SCALES: Final = 256
ZERO_GROUPS: Final = 257
SMALLEST: Final = 258
LARGEST: Final = 259
MASK: Final = 260
PLACES: Final = 261
NO_WORD: Final = (1 << 31) - 1  # above every scale word


@device
def clear(counts: Array, thread: int) -> None:
    """Nothing counted yet; every thread of the block has to come here."""
    for place in range(thread, PLACES, THREADS):
        counts[place] = NO_WORD if place == SMALLEST else 0
    cuda.syncthreads()


@device
def tally(counts: Array, scale: int, zero: bool) -> None:
    """Count one logical group by its scale word and whether its codes all stand for zero."""
    if scale == 0:
        cuda.atomic.add(counts, ZERO_SCALES, 1)
    else:
        cuda.atomic.min(counts, SMALLEST, np.int32(scale))
        cuda.atomic.max(counts, LARGEST, np.int32(scale))
    if zero:
        cuda.atomic.add(counts, ZERO_GROUPS, 1)


@device
def give(counts: Array, thread: int, totals: Array) -> None:
    """Add the counts of a block to the totals, int64 [PLACES]; every thread of the block has to come here."""
    cuda.syncthreads()
    for place in range(thread, PLACES, THREADS):
        count = np.int64(counts[place])
        if place == SMALLEST:
            cuda.atomic.min(totals, place, count)
        elif place == LARGEST:
            cuda.atomic.max(totals, place, count)
        elif place == MASK:
            cuda.atomic.or_(totals, place, count)
        elif count != 0:
            cuda.atomic.add(totals, place, count)


@device
def lane_mask(bits: int, scale: int, code: int, logical: bool) -> Scalar:
    """What is wrong with one lane, as bits of `scan`."""
    mask = np.int64(0)
    if code != 0:
        if not logical:
            mask |= PADDING
        elif scale == 0:
            mask |= ZERO_SCALE_OVER_CODE
        if logical and bits == 8 and code == -128:
            mask |= ILLEGAL_CODE
    return mask


@kernel
def count_groups(
    bits: int, group: int, rows: int, columns: int, base: Array, high: Array, scales: Array, totals: Array
) -> None:
    """Count and check the groups of rows, physical ones checked alone; `base` in words of 32 bits."""
    counts = cuda.shared.array(PLACES, np.int32)
    codes = cuda.local.array(OCTET, np.int64)
    thread = np.int64(cuda.threadIdx.x)
    clear(counts, thread)
    half = 1 << (bits - 1)
    row_groups = (columns + LINE - 1) // LINE * (LINE // group)
    stride = np.int64(cuda.gridDim.x) * THREADS
    for place in range(np.int64(cuda.blockIdx.x) * THREADS + thread, rows * row_groups, stride):
        start = place % row_groups * group
        scale = np.int64(scales[np.uint64(place)])
        mask, used = np.int64(0), np.int64(0)
        for octet in range(group // OCTET):
            unpack_octet(bits, base, high, place * (group // OCTET) + octet, codes)
            for i in range(OCTET):
                logical = start + octet * OCTET + i < columns
                mask |= lane_mask(bits, scale, codes[i], logical)
                if logical:
                    used |= codes[i]
                    cuda.atomic.add(counts, codes[i] + half, 1)
        if start < columns:
            tally(counts, scale, used == 0)
            if scale > LARGEST_GROUP_SCALE:
                mask |= INVALID_SCALE
        elif scale != 0:
            mask |= PADDING
        if mask != 0:
            cuda.atomic.or_(counts, MASK, np.int32(mask))
    give(counts, thread, totals)


@kernel
def count_bytes(codes: Array, columns: int, nonzero: Array, totals: Array) -> None:
    """Count E4M3FN words, flat [rows, columns], and mark the rows that hold a magnitude in `nonzero`, uint8 [rows]."""
    counts = cuda.shared.array(PLACES, np.int32)
    thread = np.int64(cuda.threadIdx.x)
    clear(counts, thread)
    stride = np.int64(cuda.gridDim.x) * THREADS
    for place in range(np.int64(cuda.blockIdx.x) * THREADS + thread, codes.size, stride):
        code = np.int64(codes[np.uint64(place)])
        cuda.atomic.add(counts, code, 1)
        if code & 0x7F != 0:
            nonzero[np.uint64(place // columns)] = 1
    give(counts, thread, totals)


@kernel
def count_blocks(codes: Array, scales: Array, totals: Array) -> None:
    """Count groups of NVFP4: a word of 64 bits and a scale each."""
    counts = cuda.shared.array(PLACES, np.int32)
    thread = np.int64(cuda.threadIdx.x)
    clear(counts, thread)
    stride = np.int64(cuda.gridDim.x) * THREADS
    for place in range(np.int64(cuda.blockIdx.x) * THREADS + thread, codes.size, stride):
        sixteen = codes[np.uint64(place)]
        for i in range(16):
            cuda.atomic.add(counts, np.int64((sixteen >> np.uint64(4 * i)) & np.uint64(15)), 1)
        tally(counts, np.int64(scales[np.uint64(place)]), sixteen & np.uint64(0x7777777777777777) == 0)
    give(counts, thread, totals)


@kernel
def count_words(words: Array, bits: int, limit: int, counts: Array) -> None:
    """Add direct words to the six counts of `statistics.float_words`; keys are those of `bits` wide words.

    `limit` is the magnitude of infinity, or -1 where words are integers.
    """
    place = np.int64(cuda.blockIdx.x) * THREADS + np.int64(cuda.threadIdx.x)
    stride = np.int64(cuda.gridDim.x) * THREADS
    most = np.int64((1 << (bits - 1)) - 1)
    positive, negative, nans, infinities = np.int64(0), np.int64(0), np.int64(0), np.int64(0)
    smallest, largest = np.int64(0x7FFFFFFFFFFFFFFF), np.int64(-0x7FFFFFFFFFFFFFFF - 1)
    for i in range(place, words.size, stride):
        raw = np.int64(words[np.uint64(i)])
        magnitude = raw & most
        key = magnitude
        if (raw >> (bits - 1)) & 1 != 0:
            key = magnitude - most - 1 if limit < 0 else -magnitude - 1
        if limit < 0 or magnitude < limit:
            positive += key == 0
            negative += key == -1 and limit >= 0
            smallest, largest = min(smallest, key), max(largest, key)
        else:
            nans += magnitude > limit
            infinities += magnitude == limit
    if positive != 0:
        cuda.atomic.add(counts, 0, positive)
    if negative != 0:
        cuda.atomic.add(counts, 1, negative)
    if nans != 0:
        cuda.atomic.add(counts, 2, nans)
    if infinities != 0:
        cuda.atomic.add(counts, 3, infinities)
    if smallest <= largest:
        cuda.atomic.min(counts, 4, smallest)
        cuda.atomic.max(counts, 5, largest)
