"""One pass over a grouped block on a CUDA device: checked, counted and held to its source, brought there once."""

from typing import Any

import numpy as np
from numba import cuda
from numpy.typing import NDArray

from ninfer_core.formats import GroupedFormat
from ninfer_core.kernels.gpu_batches import Batch, upload_planes, walk
from ninfer_core.kernels.gpu_counting import (
    MASK,
    PLACES,
    blocks_of,
    clear,
    give,
    take,
    tally,
    totals_of_nothing,
)
from ninfer_core.kernels.gpu_memory import Memory
from ninfer_core.kernels.gpu_parity import Sums, add_tiles, sums_of_batch
from ninfer_core.kernels.gpu_tiles import OCTET, THREADS, Array, Scalar, device, kernel, unpack_octet
from ninfer_core.kernels.matvec import grouped_rows
from ninfer_core.kernels.scan import ILLEGAL_CODE, INVALID_SCALE, PADDING, ZERO_SCALE_OVER_CODE
from ninfer_core.kernels.tiles import LINE
from ninfer_core.kernels.values import CodeStatistics, ErrorSums, GroupedPlanes
from ninfer_core.words import LARGEST_GROUP_SCALE

Words = NDArray[Any]


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
