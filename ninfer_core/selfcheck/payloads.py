"""Stored words of a block as a processor takes them: cut out of payloads, or made of logical words."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ninfer_core.formats import BlockFormat, GroupedFormat, NumericFormat
from ninfer_core.kernels.values import GroupedPlanes
from ninfer_core.layouts import canonical_layout, row_split
from ninfer_core.layouts.arrays import Bytes
from ninfer_core.layouts.base import Shape
from ninfer_core.layouts.block_scale import pack_codes, swizzle, unswizzle
from ninfer_core.words import Words8, Words16


@dataclass(frozen=True, slots=True)
class GroupedBlock:
    """A whole matrix [N, K] of a grouped format."""

    format: GroupedFormat
    rows: int
    columns: int
    planes: GroupedPlanes


@dataclass(frozen=True, slots=True)
class RowBlock:
    """FP8 rows: codes [N, K] and multipliers [N]."""

    codes: Words8
    scales: Words16


@dataclass(frozen=True, slots=True)
class TileBlock:
    """NVFP4: packed codes [N * K / 2], scales [N, K / 16] in natural order, the divisor word."""

    rows: int
    columns: int
    packed: Words8
    scales: Words8
    divisor: int

    @property
    def swizzled(self) -> Words8:
        """The scales as the layout stores them."""
        return swizzle(self.scales)


Block = GroupedBlock | RowBlock | TileBlock


def stored_bytes(block: Block) -> int:
    """Bytes of all planes."""
    match block:
        case GroupedBlock():
            return block.planes.base.nbytes + block.planes.high.nbytes + block.planes.scales.nbytes
        case RowBlock():
            return block.codes.nbytes + block.scales.nbytes
        case TileBlock():
            return block.packed.nbytes + block.scales.nbytes + 4


def block_of(fmt: NumericFormat, shape: Shape, payload: Bytes) -> Block:
    """The block that a whole payload holds."""
    rows, columns = shape
    planes: dict[str, NDArray[Any]] = {}
    for plane in canonical_layout(fmt).planes(fmt, shape):
        end = plane.span.offset + plane.span.length
        planes[plane.name] = payload[plane.span.offset : end].copy().view(plane.word)
    match fmt:
        case GroupedFormat():
            high = planes.get("high", np.empty(0, np.uint8))
            return GroupedBlock(fmt, rows, columns, GroupedPlanes(planes["base"], high, planes["scales"]))
        case BlockFormat():
            scales = unswizzle(planes["scales"], rows, columns)
            return TileBlock(rows, columns, planes["codes"], scales, int(planes["divisor"][0]))
        case _:
            return RowBlock(planes["codes"].reshape(rows, columns), planes["scales"])


def grouped_block(fmt: GroupedFormat, codes: NDArray[np.int8], scales: Words16) -> GroupedBlock:
    """Logical codes [N, K] and scales [N, groups], physical ones zero."""
    planes = row_split.pack(fmt, row_split.GroupedWords(codes, scales))
    rows, columns = codes.shape
    return GroupedBlock(fmt, rows, columns, GroupedPlanes(*planes))


def tile_block(codes: Words8, scales: Words8, divisor: int) -> TileBlock:
    """E2M1 codes [N, K] and scales [N, K / 16] in natural order."""
    rows, columns = codes.shape
    return TileBlock(rows, columns, pack_codes(codes), np.ascontiguousarray(scales), divisor)
