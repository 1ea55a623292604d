"""Counts over codes, scales and direct words on a CUDA device; grouped blocks are counted as `gpu_survey` goes over them."""

from typing import Any, Final

import numpy as np
from numba import cuda
from numpy.typing import NDArray

from ninfer_core.formats import GroupedFormat
from ninfer_core.kernels.gpu_batches import walk_units
from ninfer_core.kernels.gpu_counting import PLACES, blocks_of, clear, give, take, tally, totals_of_nothing
from ninfer_core.kernels.gpu_memory import Memory
from ninfer_core.kernels.gpu_survey import survey_grouped
from ninfer_core.kernels.gpu_tiles import THREADS, Array, kernel
from ninfer_core.kernels.values import SOURCE_DTYPES, CodeStatistics, GroupedPlanes, WordStatistics

Words = NDArray[Any]

STEP: Final = 1 << 26  # lanes or bytes of one launch


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


def statistics_grouped(
    memory: Memory, fmt: GroupedFormat, columns: int, planes: GroupedPlanes, acc: CodeStatistics
) -> None:
    """See `cpu.statistics_grouped`. Raises: DeviceFailed."""
    survey_grouped(memory, fmt, columns, planes, acc)


def statistics_row(memory: Memory, codes: Words, scales: Words, acc: CodeStatistics) -> None:
    """See `cpu.statistics_row`; the few scales are counted here. Raises: DeviceFailed."""
    rows, columns = codes.shape

    def visit(begin: int, end: int) -> None:
        words, totals = memory.upload("codes", codes[begin:end]), totals_of_nothing(memory)
        marks = memory.upload("marks", np.zeros(end - begin, np.uint8))
        memory.launch_blocks(count_bytes, blocks_of(words.size), words, columns, marks, totals)
        marked = np.empty(end - begin, np.uint8)
        memory.download(marks, marked)
        take(memory, totals, 0, acc)
        own = scales[begin:end]
        some = own[own != 0]
        zeros = int(np.count_nonzero(marked == 0))
        acc.tallies[:3] += np.array([own.size, own.size - some.size, zeros])
        if some.size:
            acc.tallies[3] = min(acc.tallies[3], some.min())
            acc.tallies[4] = max(acc.tallies[4], some.max())

    walk_units(memory, rows, max(1, STEP // max(1, columns)), visit)


def statistics_nvfp4(memory: Memory, codes: Words, scales: Words, acc: CodeStatistics) -> None:
    """See `cpu.statistics_nvfp4`. Raises: DeviceFailed."""
    groups, words = np.ascontiguousarray(codes).reshape(-1).view(np.uint64), scales.reshape(-1)

    def visit(begin: int, end: int) -> None:
        own, blocks = memory.upload("codes", groups[begin:end]), memory.upload("scales", words[begin:end])
        totals = totals_of_nothing(memory)
        memory.launch_blocks(count_blocks, blocks_of(own.size), own, blocks, totals)
        take(memory, totals, end - begin, acc)

    walk_units(memory, groups.size, STEP // 16, visit)


def statistics_direct(memory: Memory, words: Words, dtype: str) -> WordStatistics:
    """See `cpu.statistics_direct`. Raises: DeviceFailed."""
    flat = words.reshape(-1)
    bits = 8 * flat.itemsize
    limit = -1 if dtype == "I32" else SOURCE_DTYPES["F32" if dtype == "FP32" else dtype].exponent_mask
    counts = np.zeros(6, np.int64)
    counts[4], counts[5] = np.iinfo(np.int64).max, np.iinfo(np.int64).min

    def visit(begin: int, end: int) -> None:
        own, totals = (
            memory.upload("words", flat[begin:end].view(f"i{bits // 8}")),
            memory.upload("counts", counts),
        )
        memory.launch_blocks(count_words, blocks_of(own.size), own, bits, limit, totals)
        memory.download(totals, counts)

    walk_units(memory, flat.size, STEP, visit)
    return WordStatistics.of_counts(dtype, flat.size, counts)
