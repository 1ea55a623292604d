"""Error sums on a CUDA device, in the order of PARITY_SUMS_V1: the same digits as those of `parity`.

A warp has a tile and each of its threads one accumulator of each sum; then one thread folds a tile by halves. No product
is fused with a sum. Tiles are added by the caller, in their order.
"""

from typing import Any

import numpy as np
from numba import cuda
from numpy.typing import NDArray

from ninfer_core.formats import GroupedFormat
from ninfer_core.kernels.gpu_batches import MOST_TILES, Batch, source_words, upload_planes, walk, walk_units
from ninfer_core.kernels.gpu_folding import SUMS, WARP, Sums, add_tiles, close, fold, four, largest_of
from ninfer_core.kernels.gpu_memory import DeviceArray, Memory
from ninfer_core.kernels.gpu_tiles import (
    THREADS,
    Array,
    Scalar,
    add64,
    code_at,
    device,
    kernel,
    multiply64,
    scale_value,
    source_word,
    value32,
)
from ninfer_core.kernels.sizes import grouped_rows
from ninfer_core.kernels.tiles import KINDS, LANES, LINE, QUARTERS, TILE
from ninfer_core.kernels.values import ErrorSums, GroupedPlanes

Words = NDArray[Any]


@device
def word_at(kind: int, words: Array, lane: int) -> Scalar:
    """The value of a direct word in binary64."""
    return np.float64(value32(source_word(kind, words[np.uint64(lane)])))


@device
def weight_at(bits: int, group: int, base: Array, high: Array, scales: Array, lane: int) -> Scalar:
    """The value of a physical lane in binary64: a product that is exact."""
    scale = np.float64(scale_value(scales[np.uint64(lane // group)]))
    return multiply64(np.float64(code_at(bits, base, high, lane)), scale)


@kernel
def grouped_tiles(
    kind: int,
    source: Array,
    rows: int,
    columns: int,
    bits: int,
    group: int,
    base: Array,
    high: Array,
    scales: Array,
    sums: Array,
) -> None:
    """Accumulators of each tile of source words [rows, columns] against planes, but for the squares of these."""
    x, d = cuda.local.array(4, np.float64), cuda.local.array(4, np.float64)
    thread = np.int64(cuda.blockIdx.x) * THREADS + np.int64(cuda.threadIdx.x)
    tile, lane = thread // WARP, thread % WARP
    row_lines = (columns + LINE - 1) // LINE
    row_tiles = (row_lines + TILE - 1) // TILE
    if tile < rows * row_tiles:
        row = tile // row_tiles
        first = (tile - row * row_tiles) * TILE
        errors, squares, far = np.float64(0), np.float64(0), np.float64(0)
        last: Any = min(first + TILE, row_lines)
        for line in range(first, last):
            for quarter in range(4):
                column = line * LINE + quarter * 32 + lane
                x[quarter], d[quarter] = 0.0, 0.0
                if column < columns:
                    value = word_at(kind, source, row * columns + column)
                    stored = weight_at(bits, group, base, high, scales, row * row_lines * LINE + column)
                    x[quarter], d[quarter] = value, add64(value, -stored)
            errors = add64(errors, four(d[0], d[1], d[2], d[3]))
            squares = add64(squares, four(x[0], x[1], x[2], x[3]))
            far = largest_of(d[0], d[1], d[2], d[3], far)
        close(sums, rows * row_tiles, tile, lane, errors, squares, far)


@kernel
def word_tiles(kind_x: int, source: Array, kind_y: int, stored: Array, tiles: int, sums: Array) -> None:
    """Accumulators of each tile of two flat arrays of direct words."""
    x, y = cuda.local.array(4, np.float64), cuda.local.array(4, np.float64)
    d = cuda.local.array(4, np.float64)
    thread = np.int64(cuda.blockIdx.x) * THREADS + np.int64(cuda.threadIdx.x)
    tile, lane = thread // WARP, thread % WARP
    if tile < tiles:
        errors, squares, values, far = np.float64(0), np.float64(0), np.float64(0), np.float64(0)
        for line in range(TILE):
            for quarter in range(4):
                place = tile * LANES + line * LINE + quarter * 32 + lane
                x[quarter], y[quarter], d[quarter] = 0.0, 0.0, 0.0
                if place < source.size:
                    x[quarter], y[quarter] = word_at(kind_x, source, place), word_at(kind_y, stored, place)
                    d[quarter] = add64(x[quarter], -y[quarter])
            errors = add64(errors, four(d[0], d[1], d[2], d[3]))
            squares = add64(squares, four(x[0], x[1], x[2], x[3]))
            values = add64(values, four(y[0], y[1], y[2], y[3]))
            far = largest_of(d[0], d[1], d[2], d[3], far)
        close(sums, tiles, tile, lane, errors, squares, far)
        sums[np.uint64((2 * WARP + lane) * tiles + tile)] = values


@kernel
def group_squares(
    rows: int, columns: int, bits: int, group: int, base: Array, high: Array, scales: Array, places: Array
) -> None:
    """The sum of the squared values of each group, by place in its tile; zero for a place without a logical group."""
    thread = np.int64(cuda.blockIdx.x) * THREADS + np.int64(cuda.threadIdx.x)
    row_lines = (columns + LINE - 1) // LINE
    row_tiles = (row_lines + TILE - 1) // TILE
    tiles = rows * row_tiles
    if thread < tiles * QUARTERS:
        tile, place = thread // QUARTERS, thread % QUARTERS
        row = tile // row_tiles
        column = (tile - row * row_tiles) * LANES + place * group
        value = np.float64(0)
        if place * group < LANES and column < columns:
            squares = np.int64(0)
            end: Any = min(column + group, columns)
            for lane in range(column, end):
                code = np.int64(code_at(bits, base, high, row * row_lines * LINE + lane))
                squares += code * code
            scale = np.float64(scale_value(scales[np.uint64((row * row_lines * LINE + column) // group)]))
            value = multiply64(np.float64(squares), multiply64(scale, scale))
        places[np.uint64(place * tiles + tile)] = value


def sums_of_batch(
    memory: Memory,
    fmt: GroupedFormat,
    batch: Batch,
    planes: tuple[DeviceArray, DeviceArray, DeviceArray],
    source: DeviceArray,
    dtype: str,
) -> Sums:
    """What the tiles of a batch add up to, its planes and its source on the device already."""
    tiles, shape = batch.tiles, (batch.rows, batch.columns, fmt.code_bits, fmt.group)
    sums = memory.empty("sums", tiles * SUMS * WARP, np.float64)
    places = memory.empty("places", tiles * QUARTERS, np.float64)
    memory.launch(grouped_tiles, tiles * WARP, KINDS[dtype], source, *shape, *planes, sums)
    memory.launch(group_squares, tiles * QUARTERS, *shape, *planes, places)
    return fold(memory, sums, places, tiles)


def error_sums_grouped(
    memory: Memory, fmt: GroupedFormat, columns: int, planes: GroupedPlanes, source: Words, dtype: str
) -> ErrorSums:
    """See `cpu.error_sums_grouped`. Raises: DeviceFailed."""
    if source.size != grouped_rows(fmt, columns, planes) * columns:
        raise ValueError(f"{source.size} source words do not go with rows of {columns} columns")
    flat, found = source_words(source, dtype), list[Sums]()

    def visit(batch: Batch) -> None:
        own, words = upload_planes(memory, batch.planes), memory.upload("source", batch.words(flat))
        found.append(sums_of_batch(memory, fmt, batch, own, words, dtype))

    return add_tiles(walk(memory, fmt, columns, planes, visit), found)


def error_sums_words(
    memory: Memory, source: Words, stored: Words, dtype: str, stored_dtype: str | None = None
) -> ErrorSums:
    """See `cpu.error_sums_words`. Raises: DeviceFailed."""
    if source.size != stored.size:
        raise ValueError(f"{source.size} words of {dtype} do not go with {stored.size}")
    x, y = source_words(source, dtype), source_words(stored, stored_dtype or dtype)
    found = list[Sums]()
    kind, stored_kind = KINDS[dtype], KINDS[stored_dtype or dtype]

    def visit(first: int, last: int) -> None:
        tiles, part = last - first, slice(first * LANES, last * LANES)
        left, right = memory.upload("source", x[part]), memory.upload("stored", y[part])
        sums = memory.empty("sums", tiles * SUMS * WARP, np.float64)
        memory.launch(word_tiles, tiles * WARP, kind, left, stored_kind, right, tiles, sums)
        found.append(fold(memory, sums, memory.empty("places", 1, np.float64), tiles))

    walk_units(memory, -(-x.size // LANES), MOST_TILES, visit)
    return add_tiles(x.size, found)
