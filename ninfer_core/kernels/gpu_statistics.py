"""Counts over codes, scales and direct words on a CUDA device; grouped blocks are counted as `gpu_survey` goes over them."""

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ninfer_core.formats import GroupedFormat
from ninfer_core.kernels.gpu_batches import walk_units
from ninfer_core.kernels.gpu_counting import count_blocks, count_bytes, count_words
from ninfer_core.kernels.gpu_memory import Memory
from ninfer_core.kernels.gpu_survey import blocks_of, count_grouped, take, totals_of_nothing
from ninfer_core.kernels.sizes import require_block_scales, require_row_scales
from ninfer_core.kernels.values import SOURCE_DTYPES, CodeStatistics, GroupedPlanes, WordStatistics

Words = NDArray[Any]

STEP: Final = 1 << 26  # lanes or bytes of one launch


def statistics_grouped(
    memory: Memory, fmt: GroupedFormat, columns: int, planes: GroupedPlanes, acc: CodeStatistics
) -> None:
    """See `cpu.statistics_grouped`. Raises: DeviceFailed."""
    count_grouped(memory, fmt, columns, planes, acc)


def statistics_row(memory: Memory, codes: Words, scales: Words, acc: CodeStatistics) -> None:
    """See `cpu.statistics_row`; the few scales are counted here. Raises: DeviceFailed."""
    rows, columns = codes.shape
    require_row_scales(codes, scales)

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
    require_block_scales(codes, scales)
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
