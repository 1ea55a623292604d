"""Matrices for consumers: the bytes of a block of each quantized format, and the same bytes read with a planted fault."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ninfer_core import matvec
from ninfer_core.formats import (
    FP8_E4M3FN_ROW_BF16S,
    NVFP4,
    QUANTIZED,
    BlockFormat,
    GroupedFormat,
    NumericFormat,
    RowFormat,
)
from ninfer_core.kernels.values import GroupedPlanes
from ninfer_core.layouts.block_scale import swizzle
from ninfer_core.layouts.row_split import groups_per_row
from ninfer_core.targets import TARGETS
from ninfer_core.words import Words16, expand_binary16, narrow_bf16
from tests import strategies

DIVISOR = 0x41234567


@dataclass(frozen=True)
class Matrix:
    """Planes of an [rows, columns] block in payload order; W8 has an empty high plane."""

    format: NumericFormat
    rows: int
    columns: int
    planes: tuple[NDArray[Any], ...]

    def weights(self) -> matvec.Values:
        """What the oracle says the planes hold."""
        match self.format:
            case GroupedFormat():
                return matvec.weights_grouped(self.format, self.columns, GroupedPlanes(*self.planes))
            case RowFormat():
                return matvec.weights_row(self.planes[0], self.planes[1])
            case _:
                return matvec.weights_nvfp4(self.planes[0], self.planes[1], DIVISOR, self.columns)

    def times(self, consumer: Any, activation: Words16) -> Words16:
        """What a consumer makes of it."""
        out = np.full(self.rows, 0x7FC0, np.uint16)
        match self.format:
            case GroupedFormat():
                consumer.matvec_grouped(
                    self.format, self.columns, GroupedPlanes(*self.planes), activation, out
                )
            case RowFormat():
                consumer.matvec_row(self.planes[0], self.planes[1], activation, out)
            case _:
                consumer.matvec_nvfp4(self.planes[0], self.planes[1], DIVISOR, activation, out)
        return out

    def refused(self, consumer: Any, read: "Matrix | None" = None, seed: int = 1) -> int:
        """Outputs refused over all activations, when the consumer reads `read` instead."""
        weights, total = self.weights(), 0
        for activation in matvec.activations(self.columns, seed):
            out = (read or self).times(consumer, activation)
            total += matvec.judge(matvec.reference(weights, activation), out).wrong
        return total


def random_matrix(fmt: NumericFormat, rows: int, columns: int, seed: int = 0) -> Matrix:
    """Legal words, codes of every value, a part of the scales subnormal."""
    random = np.random.default_rng(seed)
    match fmt:
        case GroupedFormat():
            per_row = groups_per_row(fmt, columns)
            scales = random.integers(1, 0x1000, (rows, per_row)).astype(np.uint16)
            codes = random.integers(fmt.qmin, fmt.qmax + 1, (rows, per_row, fmt.group))
            lanes = np.arange(per_row * fmt.group).reshape(per_row, fmt.group)
            codes[:, lanes >= columns], scales[:, lanes[:, 0] >= columns] = 0, 0
            packed = strategies.pack(fmt, codes.reshape(-1, fmt.group), scales.reshape(-1))
            return Matrix(fmt, rows, columns, (packed.base, packed.high, packed.scales))
        case BlockFormat():
            nibbles = random.integers(0, 256, rows * columns // 2, np.uint8)
            blocks = swizzle(random.integers(0, 0x30, (rows, columns // 16), np.uint8))
            return Matrix(fmt, rows, columns, (nibbles, blocks))
        case _:
            bytes8 = random.integers(0, 0x7F, (rows, columns), np.uint8) | np.uint8(0x80) * random.integers(
                0, 2, (rows, columns), np.uint8
            )
            row_scales = random.integers(1, 0x100, rows).astype(np.uint16)
            return Matrix(fmt, rows, columns, (bytes8, row_scales))


@cache
def target_shapes() -> tuple[tuple[NumericFormat, int, int], ...]:
    """(format, N, K) of every quantized matrix of the registered targets, each once."""
    shapes = {
        (item.format, item.shape)
        for target in TARGETS
        for item in target.objects
        if item.format in QUANTIZED and item.shape is not None and len(item.shape) == 2
    }
    return tuple(sorted(((fmt, *shape) for fmt, shape in shapes), key=lambda one: (one[0].name, *one[1:])))


def repeated(matrix: Matrix, rows: int) -> Matrix:
    """A matrix of more rows, those of this one over and over."""
    planes = [
        np.resize(
            plane.reshape(matrix.rows, -1) if plane.ndim < 2 else plane, (rows, plane.size // matrix.rows)
        )
        for plane in matrix.planes
    ]
    if isinstance(matrix.format, BlockFormat):  # the tiles of a stripe of rows lie together
        stripes = matrix.planes[1].reshape(matrix.rows // 128, -1)
        planes[1] = np.resize(stripes, (rows // 128, stripes.shape[1]))
    if isinstance(matrix.format, RowFormat):
        return Matrix(matrix.format, rows, matrix.columns, (planes[0], planes[1].reshape(-1)))
    return Matrix(matrix.format, rows, matrix.columns, tuple(plane.reshape(-1) for plane in planes))


def _with(matrix: Matrix, place: int, plane: NDArray[Any]) -> Matrix:
    planes = list(matrix.planes)
    planes[place] = plane
    return replace(matrix, planes=tuple(planes))


def swapped_nibbles(matrix: Matrix) -> Matrix:
    """The two codes of one byte in each other's place, in the first byte of every row alone."""
    codes = matrix.planes[0].copy().reshape(matrix.rows, -1)
    codes[:, 0] = codes[:, 0] >> 4 | codes[:, 0] << 4
    return _with(matrix, 0, codes.reshape(matrix.planes[0].shape))


def flushed_scales(matrix: Matrix) -> Matrix:
    """Subnormal scales taken as zero."""
    place = len(matrix.planes) - 1
    scales = matrix.planes[place]
    smallest = {2: 0x08} if scales.dtype == np.uint8 else {2: 0x80, 3: 0x400}
    return _with(
        matrix, place, np.where(scales < smallest[len(matrix.planes)], 0, scales).astype(scales.dtype)
    )


def scales_through_bf16(matrix: Matrix) -> Matrix:
    """Binary16 scales rounded to the eight bits of BF16."""
    wide = narrow_bf16(expand_binary16(matrix.planes[2])).astype(np.uint32) << np.uint32(16)
    return _with(matrix, 2, wide.view(np.float32).astype(np.float16).view(np.uint16))


def natural_order(matrix: Matrix) -> Matrix:
    """Scales of NVFP4 read as if row after row: the plane that would make that right."""
    return _with(matrix, 1, swizzle(matrix.planes[1].reshape(matrix.rows, matrix.columns // 16)))


def lost_lane(matrix: Matrix) -> Matrix:
    """The last lane of every row not read."""
    if isinstance(matrix.format, RowFormat):
        codes = matrix.planes[0].copy()
        codes[:, -1] = 0
        return _with(matrix, 0, codes)
    fmt = matrix.format
    base = matrix.planes[0].copy().reshape(matrix.rows, -1)
    byte = matrix.columns - 1 if fmt.name.startswith("W8") else (matrix.columns - 1) // 2
    base[:, byte] &= 0 if fmt.name.startswith("W8") else 0xF0 if matrix.columns % 2 else 0x0F
    return _with(matrix, 0, base.reshape(matrix.planes[0].shape))


GROUPED_FAULTS: tuple[Callable[[Matrix], Matrix], ...] = (
    swapped_nibbles,
    flushed_scales,
    scales_through_bf16,
    lost_lane,
)
FAULTS: dict[NumericFormat, tuple[Callable[[Matrix], Matrix], ...]] = {
    FP8_E4M3FN_ROW_BF16S: (flushed_scales, lost_lane, swapped_nibbles),
    NVFP4: (swapped_nibbles, flushed_scales, natural_order, lost_lane),
}
