"""Stored blocks as binary32 or BF16 words on a CUDA device: the values of `reconstruct`, for legal words.

A widened binary16 scale is a normal number, and its product with a code is exact. Words of FP8 rows come out of a table
that every block of threads makes with integers, those of NVFP4 out of one that the host makes for the divisor. Where rows
need no padding a block of threads gathers its words in shared memory, so that it writes them side by side.
"""

from typing import Any, Final

import numpy as np
from numba import cuda
from numpy.typing import NDArray

from ninfer_core.formats import GroupedFormat
from ninfer_core.kernels.cpu import nvfp4_table
from ninfer_core.kernels.gpu_batches import SPAN, Batch, upload_planes, walk, walk_rows
from ninfer_core.kernels.gpu_memory import DeviceArray, Memory
from ninfer_core.kernels.gpu_tiles import (
    LINE_OCTETS,
    OCTET,
    THREADS,
    Array,
    Scalar,
    bf16_of_binary32,
    device,
    kernel,
    multiply32,
    product_of_row,
    scale_value,
    unpack_octet,
    word32,
)
from ninfer_core.kernels.sizes import grouped_rows, require_block_scales, writable
from ninfer_core.kernels.tiles import LINE
from ninfer_core.kernels.values import GroupedPlanes
from ninfer_core.words import narrow_bf16

Words = NDArray[Any]

STAGED: Final = THREADS * OCTET


@device
def output_word(word: Scalar, wide: bool) -> Scalar:
    """A binary32 word as it is, or the BF16 word nearest to it."""
    return np.uint32(word) if wide else np.uint32(bf16_of_binary32(np.int64(word)))


@kernel
def grouped_octets(
    bits: int,
    group: int,
    rows: int,
    columns: int,
    base: Array,
    high: Array,
    scales: Array,
    wide: bool,
    out: Array,
) -> None:
    """Logical lanes of rows into `out`, flat; one row where rows need no padding, `base` in words of 32 bits."""
    staged = cuda.shared.array(STAGED, np.uint32)
    codes = cuda.local.array(OCTET, np.int32)
    thread = np.int64(cuda.threadIdx.x)
    begin = np.int64(cuda.blockIdx.x) * THREADS
    octet = begin + thread
    row_octets = (columns + LINE - 1) // LINE * LINE_OCTETS
    inside = octet < rows * row_octets
    if inside:
        unpack_octet(bits, base, high, octet, codes)
        scale = scale_value(scales[np.uint64(octet // (group // OCTET))])
        for i in range(OCTET):
            word = word32(multiply32(np.float32(codes[i]), scale))
            staged[thread * OCTET + i] = output_word(word, wide)
    if rows > 1:
        if inside:
            row = np.int64(np.uint64(octet) // np.uint64(row_octets))
            first = (octet - row * row_octets) * OCTET
            lanes: Scalar = min(columns - first, OCTET)
            for i in range(lanes):
                out[np.uint64(row * columns + first + i)] = staged[thread * OCTET + i]
    else:
        cuda.syncthreads()
        for i in range(OCTET):
            lane = thread + i * THREADS
            if begin * OCTET + lane < columns:
                out[np.uint64(begin * OCTET + lane)] = staged[lane]


@kernel
def row_spans(codes: Array, scales: Array, columns: int, spans: int, wide: bool, out: Array) -> None:
    """FP8 rows into `out`, flat: a block of threads has one of the `spans` of a row."""
    table = cuda.shared.array(256, np.uint32)
    thread = np.int64(cuda.threadIdx.x)
    block = np.int64(cuda.blockIdx.x)
    row = np.int64(np.uint64(block) // np.uint64(spans))
    first = (block - row * spans) * SPAN
    scale = np.int64(scales[np.uint64(row)])
    for code in range(thread, 256, THREADS):
        table[code] = output_word(product_of_row(np.int64(code), scale), wide)
    cuda.syncthreads()
    end: Scalar = min(first + SPAN, columns)
    for lane in range(first + thread, end, THREADS):
        place = np.uint64(row * columns + lane)
        out[place] = table[codes[place]]


@kernel
def block_octets(codes: Array, scales: Array, magnitudes: Array, sign_shift: int, out: Array) -> None:
    """NVFP4 codes, in words of 32 bits, and scales in natural order into `out`, flat.

    magnitudes [256 * 8] holds the output word of every nonnegative code under every scale word.
    """
    staged = cuda.shared.array(STAGED, np.uint32)
    thread = np.int64(cuda.threadIdx.x)
    begin = np.int64(cuda.blockIdx.x) * THREADS
    octet = begin + thread
    if octet < codes.size:
        eight = np.int64(codes[np.uint64(octet)])
        row = np.int64(scales[np.uint64(octet >> 1)]) * 8
        for i in range(OCTET):
            code = (eight >> (4 * i)) & 15
            word = np.int64(magnitudes[np.uint64(row + (code & 7))]) | ((code >> 3) << sign_shift)
            staged[thread * OCTET + i] = np.uint32(word)
    cuda.syncthreads()
    for i in range(OCTET):
        lane = thread + i * THREADS
        if begin * OCTET + lane < codes.size * OCTET:
            out[np.uint64(begin * OCTET + lane)] = staged[lane]


def reconstruct_grouped(
    memory: Memory, fmt: GroupedFormat, columns: int, planes: GroupedPlanes, out: Words
) -> None:
    """See `cpu.reconstruct_grouped`. Raises: DeviceFailed."""
    flat = output_words(out, grouped_rows(fmt, columns, planes) * columns)

    def visit(batch: Batch) -> None:
        target = memory.empty("out", batch.lanes, flat.dtype)
        grouped_on(memory, fmt, batch.rows, batch.columns, upload_planes(memory, batch.planes), target)
        memory.download(target, flat[batch.first : batch.first + batch.lanes])

    walk(memory, fmt, columns, planes, visit)


def grouped_on(
    memory: Memory,
    fmt: GroupedFormat,
    rows: int,
    columns: int,
    planes: tuple[DeviceArray, DeviceArray, DeviceArray],
    out: DeviceArray,
) -> None:
    """Start the reconstruction of planes that are on the device, base in words of 32 bits."""
    height, width = (1, rows * columns) if columns % LINE == 0 else (rows, columns)
    octets = height * -(-width // LINE) * LINE_OCTETS
    shape = (fmt.code_bits, fmt.group, height, width)
    memory.launch(grouped_octets, octets, *shape, *planes, out.dtype.itemsize == 4, out)


def reconstruct_row(memory: Memory, codes: Words, scales: Words, out: Words) -> None:
    """See `cpu.reconstruct_row`. Raises: ValueError, DeviceFailed."""
    flat = output_words(out, codes.size)

    def visit(begin: int, end: int, own: DeviceArray, words: DeviceArray, columns: int, spans: int) -> None:
        target = memory.empty("out", (end - begin) * columns, flat.dtype)
        shape = (columns, spans, flat.dtype.itemsize == 4)
        memory.launch_blocks(row_spans, (end - begin) * spans, own, words, *shape, target)
        memory.download(target, flat[begin * columns : end * columns])

    walk_rows(memory, codes, scales, visit)


def reconstruct_nvfp4(memory: Memory, codes: Words, scales: Words, divisor: int, out: Words) -> None:
    """See `cpu.reconstruct_nvfp4`. Raises: ValueError, for an invalid divisor; DeviceFailed."""
    flat, words, blocks = output_words(out, codes.size * 2), codes.reshape(-1), scales.reshape(-1)
    require_block_scales(words, blocks)
    wide = flat.dtype.itemsize == 4
    magnitudes = nvfp4_table(int(divisor)) if wide else narrow_bf16(nvfp4_table(int(divisor)))

    def run(begin: int, end: int) -> None:
        target = memory.empty("out", (end - begin) * 16, flat.dtype)
        packed = memory.upload("base", words[begin * 8 : end * 8]).view(np.uint32)
        planes = packed, memory.upload("scales", blocks[begin:end]), memory.upload("table", magnitudes)
        memory.launch(block_octets, (end - begin) * 2, *planes, 31 if wide else 15, target)
        memory.download(target, flat[begin * 16 : end * 16])

    memory.in_batches(blocks.size, run)


def output_words(out: Words, size: int) -> Words:
    """The output, flat. Raises: ValueError."""
    if out.dtype not in (np.uint32, np.uint16):
        raise ValueError(f"the output holds binary32 or BF16 words, not {out.dtype}")
    return writable(out, size)
