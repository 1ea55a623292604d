"""Tiles of error sums on a CUDA device: accumulators side by side, folded by halves there, and added in order here."""

from typing import Final

import numpy as np
from numba import cuda
from numpy.typing import NDArray

from ninfer_core.kernels.gpu_memory import DeviceArray, Memory
from ninfer_core.kernels.gpu_tiles import THREADS, Array, Scalar, add64, device, kernel, multiply64
from ninfer_core.kernels.tiles import QUARTERS
from ninfer_core.kernels.values import ErrorSums

Sums = NDArray[np.float64]  # [tiles, SUMS]

WARP: Final = 32  # threads of a tile, and accumulators of a sum
SUMS: Final = 4  # (x - y)^2, x^2, y^2, max |x - y|


@device
def four(a: Scalar, b: Scalar, c: Scalar, d: Scalar) -> Scalar:
    """The squares of one lane of each quarter of a line, added."""
    first = add64(multiply64(a, a), multiply64(b, b))
    return add64(first, add64(multiply64(c, c), multiply64(d, d)))


@device
def largest_of(a: Scalar, b: Scalar, c: Scalar, d: Scalar, before: Scalar) -> Scalar:
    """The largest magnitude, that of `before` included."""
    return max(abs(a), abs(b), abs(c), abs(d), before)


@device
def close(
    sums: Array, tiles: int, tile: int, lane: int, errors: Scalar, squares: Scalar, far: Scalar
) -> None:
    """Store the accumulators of a thread; those of one place lie together, tile beside tile."""
    sums[np.uint64(lane * tiles + tile)] = errors
    sums[np.uint64((WARP + lane) * tiles + tile)] = squares
    sums[np.uint64((3 * WARP + lane) * tiles + tile)] = far


@kernel
def fold_tiles(sums: Array, places: Array, tiles: int, totals: Array) -> None:
    """Add the upper half of the places of each sum to the lower until one is left, into `totals`, flat [tiles, SUMS].

    Where `places` has one for every group of every tile, the third sum is that of these.
    """
    tile = np.int64(cuda.blockIdx.x) * THREADS + np.int64(cuda.threadIdx.x)
    if tile < tiles:
        by_groups = places.size == QUARTERS * tiles
        for k in range(SUMS):
            start = k * WARP * tiles + tile
            half = WARP // 2
            if k == 2 and by_groups:
                start, half = tile, QUARTERS // 2
            folded = places if k == 2 and by_groups else sums
            while half > 0:
                for i in range(half):
                    low, high = np.uint64(start + i * tiles), np.uint64(start + (i + half) * tiles)
                    if k == 3:
                        folded[low] = max(folded[low], folded[high])
                    else:
                        folded[low] = add64(folded[low], folded[high])
                half //= 2
            totals[np.uint64(tile * SUMS + k)] = folded[np.uint64(start)]


def fold(memory: Memory, sums: DeviceArray, places: DeviceArray, tiles: int) -> Sums:
    """What each tile adds up to."""
    totals = memory.empty("totals", tiles * SUMS, np.float64)
    memory.launch(fold_tiles, tiles, sums, places, tiles, totals)
    found = np.empty((tiles, SUMS), np.float64)
    memory.download(totals, found)
    return found


def add_tiles(count: int, parts: list[Sums]) -> ErrorSums:
    """The sums of a block of `count` elements from those of its tiles, added in their order."""
    tiles = np.concatenate([np.zeros((1, SUMS)), *parts])
    error, source, value = map(float, np.add.accumulate(tiles[:, :3], axis=0)[-1])
    return ErrorSums(count, error, source, value, float(tiles[:, 3].max()))
