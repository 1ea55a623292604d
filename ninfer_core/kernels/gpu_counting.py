"""Counts that a block of threads of a CUDA device forms in shared memory and adds to the totals once.

Counts are integers, so their order is free.
"""

from typing import Final

import numpy as np
from numba import cuda

from ninfer_core.kernels.gpu_memory import DeviceArray, Memory
from ninfer_core.kernels.gpu_tiles import THREADS, Array, device
from ninfer_core.kernels.values import CodeStatistics

# Places of a block's counts, after those of 256 codes.
ZERO_SCALES: Final = 256
ZERO_GROUPS: Final = 257
SMALLEST: Final = 258
LARGEST: Final = 259
MASK: Final = 260
PLACES: Final = 261
NO_WORD: Final = (1 << 31) - 1  # above every scale word
MOST_BLOCKS: Final = 1 << 11  # a block goes on to what lies so many blocks further


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


def totals_of_nothing(memory: Memory) -> DeviceArray:
    """Totals before anything is counted, int64 [PLACES]."""
    nothing = np.zeros(PLACES, np.int64)
    nothing[SMALLEST] = NO_WORD
    return memory.upload("totals", nothing)


def blocks_of(items: int) -> int:
    """Blocks of threads for so many items."""
    return min(-(-items // THREADS), MOST_BLOCKS)


def take(memory: Memory, totals: DeviceArray, groups: int, acc: CodeStatistics | None) -> int:
    """Add what was counted over so many logical groups to `acc`; the mask."""
    counted = np.empty(PLACES, np.int64)
    memory.download(totals, counted)
    if acc is not None:
        acc.histogram[:] += counted[: acc.histogram.size]
        acc.tallies[0] += groups
        acc.tallies[1:3] += counted[[ZERO_SCALES, ZERO_GROUPS]]
        if counted[SMALLEST] != NO_WORD:
            acc.tallies[3] = min(acc.tallies[3], counted[SMALLEST])
            acc.tallies[4] = max(acc.tallies[4], counted[LARGEST])
    return int(counted[MASK])
