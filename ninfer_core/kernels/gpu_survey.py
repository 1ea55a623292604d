"""One visit of a grouped block to a CUDA device: checked, counted and held to its source."""

from typing import Any, Final

import numpy as np
from numba import cuda
from numpy.typing import NDArray

from ninfer_core.formats import GroupedFormat
from ninfer_core.kernels.gpu_batches import Batch, source_words, upload_planes, walk
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
from ninfer_core.kernels.gpu_encode import NONE, REFUSED, encode_on
from ninfer_core.kernels.gpu_folding import Sums, add_tiles
from ninfer_core.kernels.gpu_memory import DeviceArray, Memory
from ninfer_core.kernels.gpu_parity import sums_of_batch
from ninfer_core.kernels.gpu_tiles import THREADS, Array, kernel
from ninfer_core.kernels.sizes import grouped_rows
from ninfer_core.kernels.values import CodeStatistics, ErrorSums, GroupedPlanes

Words = NDArray[Any]
Planes = tuple[DeviceArray, DeviceArray, DeviceArray]

MOST_BLOCKS: Final = 1 << 11  # a block of threads goes on to what lies so many blocks further


def totals_of_nothing(memory: Memory) -> DeviceArray:
    """Totals before anything is counted, int64 [PLACES]."""
    nothing = np.zeros(PLACES, np.int64)
    nothing[SMALLEST] = NO_WORD
    return memory.upload("totals", nothing)


def blocks_of(items: int) -> int:
    """Blocks of threads for so many items."""
    return min(-(-items // THREADS), MOST_BLOCKS)


def take(memory: Memory, totals: DeviceArray, groups: int, acc: CodeStatistics) -> int:
    """Add what was counted over so many logical groups to `acc`; the mask."""
    counted = np.empty(PLACES, np.int64)
    memory.download(totals, counted)
    acc.histogram[:] += counted[: acc.histogram.size]
    acc.tallies[0] += groups
    acc.tallies[1:3] += counted[[ZERO_SCALES, ZERO_GROUPS]]
    if counted[SMALLEST] != NO_WORD:
        acc.tallies[3] = min(acc.tallies[3], counted[SMALLEST])
        acc.tallies[4] = max(acc.tallies[4], counted[LARGEST])
    return int(counted[MASK])


@kernel
def differ(a: Array, b: Array, found: Array) -> None:
    """Set found[0], uint32, when some word of `b` is another than that of `a`."""
    first = np.int64(cuda.blockIdx.x) * THREADS + np.int64(cuda.threadIdx.x)
    stride = np.int64(cuda.gridDim.x) * THREADS
    for place in range(first, b.size, stride):
        if a[np.uint64(place)] != b[np.uint64(place)]:
            found[0] = 1


def _count(memory: Memory, fmt: GroupedFormat, batch: Batch, planes: Planes, acc: CodeStatistics) -> int:
    """Add the batch to `acc`; its mask."""
    totals, shape = totals_of_nothing(memory), (fmt.code_bits, fmt.group, batch.rows, batch.columns)
    memory.launch_blocks(count_groups, blocks_of(batch.planes.scales.size), *shape, *planes, totals)
    return take(memory, totals, batch.rows * -(-batch.columns // fmt.group), acc)


def _is_canonical(
    memory: Memory, fmt: GroupedFormat, batch: Batch, planes: Planes, source: DeviceArray, dtype: str
) -> bool:
    """Whether the planes on the device are what the canonical encoder makes of the source there."""
    base = memory.empty("made_base", batch.planes.base.size // 4, np.uint32)
    high = memory.empty("made_high", batch.planes.high.size, np.uint8)
    made = (base, high, memory.empty("made_scales", batch.planes.scales.size, np.uint16))
    counts = memory.upload("counts", np.array([0, 0, NONE], np.uint64))
    encode_on(memory, fmt, batch.rows, batch.columns, source, dtype, made, counts)
    counted, unlike = np.empty(3, np.uint64), memory.upload("unlike", np.zeros(1, np.uint32))
    memory.download(counts, counted)
    if int(counted[REFUSED]) != NONE:
        return False
    sizes = (batch.planes.base.size // 4, batch.planes.high.size, batch.planes.scales.size)
    for mine, stored, size in zip(made, planes, sizes, strict=True):
        memory.launch_blocks(differ, blocks_of(size), mine, stored, unlike)
    hit = np.empty(1, np.uint32)
    memory.download(unlike, hit)
    return not hit[0]


def _require_source(
    fmt: GroupedFormat, columns: int, planes: GroupedPlanes, source: Words, dtype: str
) -> Words:
    if source.size != grouped_rows(fmt, columns, planes) * columns:
        raise ValueError(f"{source.size} source words do not go with rows of {columns} columns")
    return source_words(source, dtype)


def survey_grouped(
    memory: Memory,
    fmt: GroupedFormat,
    columns: int,
    planes: GroupedPlanes,
    source: Words,
    dtype: str,
    acc: CodeStatistics,
) -> tuple[int, ErrorSums | None]:
    """Check and count a block, and hold it to its source; planes and source are brought to the device once.

    The mask is that of `cpu.scan_grouped`, counts are added to `acc`, sums are those of `cpu.parity_grouped`.
    Raises: DeviceFailed.
    """
    flat, masks, found = _require_source(fmt, columns, planes, source, dtype), [0], list[Sums | None]()

    def visit(batch: Batch) -> None:
        own, words = upload_planes(memory, batch.planes), memory.upload("source", batch.words(flat))
        same = _is_canonical(memory, fmt, batch, own, words, dtype)
        sums = sums_of_batch(memory, fmt, batch, own, words, dtype) if same else None
        masks.append(_count(memory, fmt, batch, own, acc))
        found.append(sums)

    lanes = walk(memory, fmt, columns, planes, visit)
    return int(np.bitwise_or.reduce(masks)), _all(lanes, found)


def parity_grouped(
    memory: Memory, fmt: GroupedFormat, columns: int, planes: GroupedPlanes, source: Words, dtype: str
) -> ErrorSums | None:
    """See `cpu.parity_grouped`. Raises: DeviceFailed."""
    flat, found = _require_source(fmt, columns, planes, source, dtype), list[Sums | None]()

    def visit(batch: Batch) -> None:
        if None not in found:
            own, words = upload_planes(memory, batch.planes), memory.upload("source", batch.words(flat))
            same = _is_canonical(memory, fmt, batch, own, words, dtype)
            found.append(sums_of_batch(memory, fmt, batch, own, words, dtype) if same else None)

    return _all(walk(memory, fmt, columns, planes, visit), found)


def _all(lanes: int, parts: list[Sums | None]) -> ErrorSums | None:
    known = [part for part in parts if part is not None]
    return add_tiles(lanes, known) if len(known) == len(parts) else None


def count_grouped(
    memory: Memory, fmt: GroupedFormat, columns: int, planes: GroupedPlanes, acc: CodeStatistics
) -> None:
    """Count a block; what it checks on the way is not asked for. Raises: DeviceFailed."""

    def visit(batch: Batch) -> None:
        _count(memory, fmt, batch, upload_planes(memory, batch.planes), acc)

    walk(memory, fmt, columns, planes, visit)
