"""A quantized matrix times a vector of BF16 words on a GPU: a warp a row, and then a thread for its 32 sums.

The planes are read as their layouts store them. The sums are binary32 for an activation of a middling size and binary64
for others, as in `matvec`, whose arguments and exceptions are the same; here products and sums may be fused.
"""

from typing import Final

import numpy as np
from numba import cuda

from ninfer_core.formats import FP8_E4M3FN_ROW_BF16S, NVFP4, GroupedFormat
from ninfer_core.kernels import scalar
from ninfer_core.kernels.gpu_memory import DeviceArray, Memory
from ninfer_core.kernels.gpu_tiles import (
    LINE_OCTETS,
    OCTET,
    THREADS,
    Array,
    bf16_of_binary32,
    device,
    kernel,
    scale_value,
    unpack_octet,
)
from ninfer_core.kernels.matvec import (
    E2M1_VALUES,
    E4M3_VALUES,
    Vector,
    require_matrix,
)
from ninfer_core.kernels.sizes import grouped_rows, require_row_scales, require_tiles
from ninfer_core.kernels.tiles import LINE
from ninfer_core.kernels.values import GroupedPlanes
from ninfer_core.layouts.block_scale import TILE_ROWS
from ninfer_core.layouts.row_split import groups_per_row
from ninfer_core.words import BINARY32, Words8, Words16, expand_bf16, finite_value, values_of_binary32

binary32_of_binary64 = device(scalar.binary32_of_binary64)

WARP: Final = 32  # threads that share a row


@kernel
def grouped(
    bits: int,
    group: int,
    rows: int,
    columns: int,
    base: Array,
    high: Array,
    scales: Array,
    x: Array,
    sums: Array,
) -> None:
    """Sums of codes times scales times x [columns]; `base` in words of 32 bits."""
    codes = cuda.local.array(OCTET, np.int64)
    thread = np.int64(cuda.blockIdx.x) * THREADS + np.int64(cuda.threadIdx.x)
    row = thread // WARP
    if row < rows:
        row_octets = (columns + LINE - 1) // LINE * LINE_OCTETS
        total = np.float32(0)
        for octet in range(thread % WARP, (columns + OCTET - 1) // OCTET, WARP):
            place = row * row_octets + octet
            unpack_octet(bits, base, high, place, codes)
            scale = scale_value(scales[np.uint64(place * OCTET // group)])
            for i in range(min(OCTET, columns - octet * OCTET)):
                weight = np.float32(codes[i]) * scale
                total += weight * x[np.uint64(octet * OCTET + i)]
        sums[np.uint64(thread)] = total


@kernel
def rows_of_fp8(codes: Array, rows: int, columns: int, e4m3: Array, x: Array, sums: Array) -> None:
    """Sums of flat E4M3FN codes times x, not yet scaled."""
    thread = np.int64(cuda.blockIdx.x) * THREADS + np.int64(cuda.threadIdx.x)
    row = thread // WARP
    if row < rows:
        total = np.float32(0)
        for column in range(thread % WARP, columns, WARP):
            code = np.uint64(codes[np.uint64(row * columns + column)])
            total += e4m3[code] * x[np.uint64(column)]
        sums[np.uint64(thread)] = total


@kernel
def nvfp4(
    codes: Array, scales: Array, rows: int, columns: int, e2m1: Array, e4m3: Array, x: Array, sums: Array
) -> None:
    """Sums of codes times scales times x, not yet divided; a word of 64 bits is a group, scales lie in their tiles."""
    thread = np.int64(cuda.blockIdx.x) * THREADS + np.int64(cuda.threadIdx.x)
    row = thread // WARP
    if row < rows:
        # The layout's formula: 128 rows by four groups are one tile of 512 bytes.
        stripe = row // 128 * (columns // 64) * 512 + row % 32 * 16 + row % 128 // 32 * 4
        groups = columns // 16
        total = np.float32(0)
        for group in range(thread % WARP, groups, WARP):
            scale = e4m3[np.uint64(scales[np.uint64(stripe + group // 4 * 512 + group % 4)])]
            sixteen = codes[np.uint64(row * groups + group)]
            for i in range(16):
                weight = e2m1[(sixteen >> np.uint64(4 * i)) & np.uint64(15)] * scale
                total += weight * x[np.uint64(group * 16 + i)]
        sums[np.uint64(thread)] = total


@kernel
def outputs(sums: Array, factors: Array, divisor: float, out: Array) -> None:
    """The BF16 word of each row: its 32 sums added, times its binary64 factor, over a divisor."""
    row = np.int64(cuda.blockIdx.x) * THREADS + np.int64(cuda.threadIdx.x)
    if row < out.size:
        total = np.float64(0)
        for lane in range(WARP):
            total += np.float64(sums[np.uint64(row * WARP + lane)])
        value = np.float64(total * factors[np.uint64(row)] / divisor)
        out[np.uint64(row)] = np.uint16(bf16_of_binary32(binary32_of_binary64(value.view(np.int64))))


def matvec_grouped(
    memory: Memory,
    fmt: GroupedFormat,
    columns: int,
    planes: GroupedPlanes,
    activation: Words16,
    out: Words16,
) -> None:
    """See `matvec.matvec_grouped`. Raises: DeviceFailed."""
    rows, per_row = grouped_rows(fmt, columns, planes), groups_per_row(fmt, columns)
    vector, target = require_matrix(fmt, rows, columns, activation, out, "cuda")

    def run(begin: int, end: int) -> None:
        part = planes.part(fmt, begin * per_row, end * per_row)
        base = memory.upload("base", part.base).view(np.uint32)
        high, scales = memory.upload("high", part.high), memory.upload("scales", part.scales)
        x, sums = _vectors(memory, vector, end - begin)
        shape = (fmt.code_bits, fmt.group, end - begin, columns)
        memory.launch(grouped, (end - begin) * WARP, *shape, base, high, scales, x, sums)
        _finish(memory, sums, np.ones(end - begin), 1.0, target[begin:end])

    memory.in_batches(rows, run)


def matvec_row(memory: Memory, codes: Words8, scales: Words16, activation: Words16, out: Words16) -> None:
    """See `matvec.matvec_row`. Raises: DeviceFailed."""
    rows, columns = codes.shape
    require_row_scales(codes, scales)
    vector, target = require_matrix(FP8_E4M3FN_ROW_BF16S, rows, columns, activation, out, "cuda")
    factors = values_of_binary32(expand_bf16(scales))

    def run(begin: int, end: int) -> None:
        own, e4m3 = memory.upload("codes", codes[begin:end]), memory.upload("e4m3", E4M3_VALUES)
        x, sums = _vectors(memory, vector, end - begin)
        memory.launch(rows_of_fp8, (end - begin) * WARP, own, end - begin, columns, e4m3, x, sums)
        _finish(memory, sums, factors[begin:end], 1.0, target[begin:end])

    memory.in_batches(rows, run)


def matvec_nvfp4(
    memory: Memory, codes: Words8, scales: Words8, divisor: int, activation: Words16, out: Words16
) -> None:
    """See `matvec.matvec_nvfp4`. Raises: DeviceFailed."""
    rows, columns = out.size, activation.size
    require_tiles(codes, scales, rows, columns)
    vector, target = require_matrix(NVFP4, rows, columns, activation, out, "cuda")
    over = float(finite_value(BINARY32, divisor))
    nibbles, blocks = codes.reshape(-1), scales.reshape(-1)

    def run(first: int, last: int) -> None:  # stripes of 128 rows, which share tiles
        begin, end = first * TILE_ROWS, last * TILE_ROWS
        own = memory.upload("codes", nibbles[begin * columns // 2 : end * columns // 2]).view(np.uint64)
        swizzled = memory.upload("scales", blocks[begin * columns // 16 : end * columns // 16])
        e2m1, e4m3 = memory.upload("e2m1", E2M1_VALUES), memory.upload("e4m3", E4M3_VALUES)
        x, sums = _vectors(memory, vector, end - begin)
        memory.launch(nvfp4, (end - begin) * WARP, own, swizzled, end - begin, columns, e2m1, e4m3, x, sums)
        _finish(memory, sums, np.ones(end - begin), over, target[begin:end])

    memory.in_batches(rows // TILE_ROWS, run)


def _vectors(memory: Memory, vector: Vector, rows: int) -> tuple[DeviceArray, DeviceArray]:
    """The activation, and room for the sums of its type."""
    return memory.upload("x", vector), memory.empty("sums", rows * WARP, vector.dtype)


def _finish(memory: Memory, sums: DeviceArray, factors: Vector, divisor: float, out: Words16) -> None:
    words = memory.empty("out", out.size, np.uint16)
    memory.launch(outputs, out.size, sums, memory.upload("factors", factors), divisor, words)
    memory.download(words, out)
