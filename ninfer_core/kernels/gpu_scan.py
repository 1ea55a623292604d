"""Value checks of stored blocks on a CUDA device: the bit masks of `scan`.

Every thread looks at its own words and only one that finds a fault writes, so a sound block costs the reading alone.
"""

from functools import reduce
from operator import or_
from typing import Any, Final

import numpy as np
from numba import cuda
from numpy.typing import NDArray

from ninfer_core.formats import GroupedFormat
from ninfer_core.kernels.gpu_batches import SPAN, Batch, upload_planes, walk, walk_rows
from ninfer_core.kernels.gpu_memory import DeviceArray, Memory
from ninfer_core.kernels.gpu_tiles import (
    LINE_OCTETS,
    OCTET,
    THREADS,
    Array,
    Scalar,
    kernel,
    unpack_octet,
)
from ninfer_core.kernels.scan import ILLEGAL_CODE, INVALID_SCALE, PADDING, ZERO_SCALE_OVER_CODE
from ninfer_core.kernels.tiles import LINE
from ninfer_core.kernels.values import GroupedPlanes
from ninfer_core.words import LARGEST_BLOCK_SCALE, LARGEST_GROUP_SCALE, LARGEST_ROW_SCALE

Words = NDArray[Any]

NAN_MAGNITUDE: Final = 0x7F  # of an E4M3FN word


@kernel
def grouped_octets(
    bits: int, group: int, rows: int, columns: int, base: Array, high: Array, scales: Array, found: Array
) -> None:
    """OR the mask of rows into found[0], uint32; one row where rows need no padding, `base` in words of 32 bits."""
    codes = cuda.local.array(OCTET, np.int32)
    octet = np.int64(cuda.blockIdx.x) * THREADS + np.int64(cuda.threadIdx.x)
    row_octets = (columns + LINE - 1) // LINE * LINE_OCTETS
    if octet < rows * row_octets:
        row = np.int64(0) if rows == 1 else np.int64(np.uint64(octet) // np.uint64(row_octets))
        place = octet - row * row_octets
        lanes = columns - place * OCTET
        scale = np.int64(scales[np.uint64(octet // (group // OCTET))])
        logical = place // (group // OCTET) * group < columns  # some lane of the group is
        mask = np.int64(0)
        if logical and scale > LARGEST_GROUP_SCALE:
            mask |= INVALID_SCALE
        if not logical and scale != 0:
            mask |= PADDING
        unpack_octet(bits, base, high, octet, codes)
        for i in range(OCTET):
            code = np.int64(codes[i])
            if i >= lanes:
                if code != 0:
                    mask |= PADDING
            else:
                if code != 0 and scale == 0:
                    mask |= ZERO_SCALE_OVER_CODE
                if bits == 8 and code == -128:
                    mask |= ILLEGAL_CODE
        if mask != 0:
            cuda.atomic.or_(found, 0, np.uint32(mask))


@kernel
def row_spans(codes: Array, scales: Array, columns: int, spans: int, found: Array) -> None:
    """OR the mask of FP8 rows into found[0]: a block of threads has one of the `spans` of a row."""
    thread = np.int64(cuda.threadIdx.x)
    block = np.int64(cuda.blockIdx.x)
    row = np.int64(np.uint64(block) // np.uint64(spans))
    first = (block - row * spans) * SPAN
    scale = np.int64(scales[np.uint64(row)])
    mask = np.int64(INVALID_SCALE if scale > LARGEST_ROW_SCALE else 0)
    end: Scalar = min(first + SPAN, columns)
    for lane in range(first + thread, end, THREADS):
        magnitude = np.int64(codes[np.uint64(row * columns + lane)]) & 0x7F
        if magnitude == NAN_MAGNITUDE:
            mask |= ILLEGAL_CODE
        if magnitude != 0 and scale == 0:
            mask |= ZERO_SCALE_OVER_CODE
    if mask != 0:
        cuda.atomic.or_(found, 0, np.uint32(mask))


@kernel
def bytes_above(data: Array, largest: int, found: Array) -> None:
    """Set found[0] to the mask of an invalid scale when some byte is above `largest`."""
    first = np.int64(cuda.blockIdx.x) * SPAN
    above: Scalar = False
    end: Scalar = min(first + SPAN, data.size)
    for place in range(first + np.int64(cuda.threadIdx.x), end, THREADS):
        above |= np.int64(data[np.uint64(place)]) > largest
    if above:
        cuda.atomic.or_(found, 0, np.uint32(INVALID_SCALE))


def _found(memory: Memory) -> DeviceArray:
    return memory.upload("found", np.zeros(1, np.uint32))


def _mask(memory: Memory, found: DeviceArray) -> int:
    mask = np.empty(1, np.uint32)
    memory.download(found, mask)
    return int(mask[0])


def scan_grouped(memory: Memory, fmt: GroupedFormat, columns: int, planes: GroupedPlanes) -> int:
    """See `cpu.scan_grouped`. Raises: DeviceFailed."""
    masks: list[int] = []

    def visit(batch: Batch) -> None:
        found, words = _found(memory), upload_planes(memory, batch.planes)
        grouped_on(memory, fmt, batch.rows, batch.columns, words, found)
        masks.append(_mask(memory, found))

    walk(memory, fmt, columns, planes, visit)
    return reduce(or_, masks, 0)


def grouped_on(
    memory: Memory,
    fmt: GroupedFormat,
    rows: int,
    columns: int,
    planes: tuple[DeviceArray, DeviceArray, DeviceArray],
    found: DeviceArray,
) -> None:
    """Start the check of planes that are on the device, base in words of 32 bits."""
    height, width = (1, rows * columns) if columns % LINE == 0 else (rows, columns)
    octets = height * -(-width // LINE) * LINE_OCTETS
    memory.launch(grouped_octets, octets, fmt.code_bits, fmt.group, height, width, *planes, found)


def scan_row(memory: Memory, codes: Words, scales: Words) -> int:
    """See `cpu.scan_row`. Raises: ValueError, DeviceFailed."""
    masks: list[int] = []

    def visit(begin: int, end: int, own: DeviceArray, words: DeviceArray, columns: int, spans: int) -> None:
        found = _found(memory)
        memory.launch_blocks(row_spans, (end - begin) * spans, own, words, columns, spans, found)
        masks.append(_mask(memory, found))

    walk_rows(memory, codes, scales, visit)
    return reduce(or_, masks, 0)


def scan_block_scales(memory: Memory, scales: Words) -> int:
    """See `cpu.scan_block_scales`. Raises: DeviceFailed."""
    flat, masks = scales.reshape(-1), list[int]()

    def run(begin: int, end: int) -> None:
        found, words = _found(memory), memory.upload("scales", flat[begin * SPAN : end * SPAN])
        memory.launch_blocks(bytes_above, end - begin, words, LARGEST_BLOCK_SCALE, found)
        masks.append(_mask(memory, found))

    memory.in_batches(-(-flat.size // SPAN), run)
    return reduce(or_, masks, 0)
