"""One visit of a grouped block to a CUDA device: checked, counted and held to its source."""

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ninfer_core.formats import GroupedFormat
from ninfer_core.kernels.gpu_batches import Batch, upload_planes, walk
from ninfer_core.kernels.gpu_counting import (
    LARGEST,
    MASK,
    NO_WORD,
    PLACES,
    SMALLEST,
    ZERO_GROUPS,
    ZERO_SCALES,
    count_groups,
)
from ninfer_core.kernels.gpu_memory import DeviceArray, Memory
from ninfer_core.kernels.gpu_parity import Sums, add_tiles, sums_of_batch
from ninfer_core.kernels.gpu_tiles import THREADS
from ninfer_core.kernels.matvec import grouped_rows
from ninfer_core.kernels.values import CodeStatistics, ErrorSums, GroupedPlanes

Words = NDArray[Any]

MOST_BLOCKS: Final = 1 << 11  # a block of threads goes on to what lies so many blocks further


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


def survey_grouped(
    memory: Memory,
    fmt: GroupedFormat,
    columns: int,
    planes: GroupedPlanes,
    acc: CodeStatistics | None,
    source: Words | None = None,
    dtype: str = "",
) -> tuple[int, ErrorSums | None]:
    """Check, count into `acc` and compare with source words of `dtype`, the planes brought to the device once.

    The mask is that of `cpu.scan_grouped`, the sums those of `cpu.error_sums_grouped`, None without a source.
    Raises: DeviceFailed.
    """
    if source is not None and source.size != grouped_rows(fmt, columns, planes) * columns:
        raise ValueError(f"{source.size} source words do not go with rows of {columns} columns")
    flat, masks, found = None if source is None else source.reshape(-1), [0], list[Sums]()

    def visit(batch: Batch) -> None:
        own = upload_planes(memory, batch.planes)
        totals, shape = totals_of_nothing(memory), (fmt.code_bits, fmt.group, batch.rows, batch.columns)
        memory.launch_blocks(count_groups, blocks_of(batch.planes.scales.size), *shape, *own, totals)
        if flat is not None:
            words = flat[batch.first : batch.first + batch.lanes]
            found.append(sums_of_batch(memory, fmt, batch, own, words, dtype))
        masks.append(take(memory, totals, batch.rows * -(-batch.columns // fmt.group), acc))

    lanes = walk(memory, fmt, columns, planes, visit)
    return int(np.bitwise_or.reduce(masks)), None if flat is None else add_tiles(lanes, found)
