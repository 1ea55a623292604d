"""Checks `layout` and `values` on one block: a compiled scan says whether anything is wrong, numpy then says where.

The scan reads every word of every block; locating runs only on blocks with a fault, so it may be slow and plain.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ninfer_core.containers.directory import TensorObject
from ninfer_core.formats import BlockFormat, DirectFormat, GroupedFormat, RowFormat
from ninfer_core.kernels.processor import Processor, cpu_processor
from ninfer_core.kernels.values import GroupedPlanes
from ninfer_core.layouts import row_split
from ninfer_core.layouts.base import Block
from ninfer_core.layouts.block_scale import scale_offset, unswizzle
from ninfer_core.verify.faults import Fault
from ninfer_core.words import LARGEST_BLOCK_SCALE, LARGEST_GROUP_SCALE, LARGEST_ROW_SCALE, is_divisor

Planes = Sequence[NDArray[Any]]


def grouped_planes(fmt: GroupedFormat, planes: Planes) -> GroupedPlanes:
    """The planes of a block as the kernels take them; W8 has no high plane."""
    if len(planes) == 2:
        return GroupedPlanes(planes[0], np.empty(0, np.uint8), planes[1])
    return GroupedPlanes(planes[0], planes[1], planes[2])


def check_block(
    item: TensorObject, block: Block, planes: Planes, processor: Processor | None = None
) -> list[Fault]:
    """Every fault of the words of one block; empty when every word is legal. Scans run on `processor` where one is given."""
    kernels = processor or cpu_processor()
    match item.format:
        case GroupedFormat():
            return _grouped(item, item.format, block, grouped_planes(item.format, planes), kernels)
        case BlockFormat():
            return _nvfp4(item, block, planes, kernels)
        case RowFormat():
            return _row(item, block, planes, kernels)
        case DirectFormat():
            return []  # every word of a direct format is legal (tensor-formats 3.1)


def _grouped(
    item: TensorObject, fmt: GroupedFormat, block: Block, planes: GroupedPlanes, kernels: Processor
) -> list[Fault]:
    if kernels.scan_grouped(fmt, block.columns, planes) == 0:
        return []
    words = row_split.unpack(fmt, block.columns, planes.base, planes.high, planes.scales)
    return _Grouped(item, fmt, block, words).faults()


class _Grouped:
    """Locates the faults of one grouped block; rows, groups and columns in the results are those of the tensor."""

    def __init__(
        self, item: TensorObject, fmt: GroupedFormat, block: Block, words: row_split.GroupedWords
    ) -> None:
        self.item, self.fmt, self.block = item, fmt, block
        self.groups = -(-block.columns // fmt.group)
        self.codes, self.scales = words.codes, words.scales
        self.per_row = row_split.groups_per_row(fmt, item.shape[1])
        self.planes = {plane.name: plane.span.offset for plane in item.layout.planes(fmt, item.shape)}

    def faults(self) -> list[Fault]:
        found = (
            self._scales(),
            self._zero_scales(),
            self._range(),
            self._padding_lanes(),
            self._physical_scales(),
        )
        return [fault for fault in found if fault is not None]

    def _scales(self) -> Fault | None:
        bad = self.scales[:, : self.groups] > LARGEST_GROUP_SCALE
        if not bad.any():
            return None
        row, group = _first(bad)
        word = f"0x{self.scales[row, group]:04x}"
        where = {**self._group(row, group), "word": word}
        message = f"scale word {word} of row {where['row']}, group {where['group']} is not +0 or positive and finite"
        return Fault("values.scale_invalid", int(bad.sum()), where, "0x0000 to 0x7bff", word, message)

    def _zero_scales(self) -> Fault | None:
        logical = np.zeros((self.codes.shape[0], self.groups * self.fmt.group), np.bool_)
        logical[:, : self.block.columns] = self.codes[:, : self.block.columns] != 0
        lanes = logical.reshape(-1, self.groups, self.fmt.group)
        bad = (self.scales[:, : self.groups] == 0) & lanes.any(axis=2)
        if not bad.any():
            return None
        row, group = _first(bad)
        lane = int(lanes[row, group].argmax())
        code = int(self.codes[row, group * self.fmt.group + lane])
        where = {**self._lane(row, group * self.fmt.group + lane), "code": code}
        message = f"the scale of row {where['row']}, group {where['group']} is zero but lane {lane} holds code {code}"
        return Fault(
            "values.zero_scale_nonzero_code", int(bad.sum()), where, "code 0", f"code {code}", message
        )

    def _range(self) -> Fault | None:
        bad = self.codes[:, : self.block.columns] < self.fmt.qmin
        if not bad.any():
            return None
        row, column = _first(bad)
        where = {**self._lane(row, column), "code": int(self.codes[row, column])}
        message = (
            f"code {where['code']} in row {where['row']}, column {where['column']} is outside the legal codes"
        )
        expected = f"{self.fmt.qmin} to {self.fmt.qmax}"
        return Fault("values.code_out_of_range", int(bad.sum()), where, expected, str(where["code"]), message)

    def _padding_lanes(self) -> Fault | None:
        bad = self.codes[:, self.block.columns :] != 0
        if not bad.any():
            return None
        row, beyond = _first(bad)
        column = self.block.columns + beyond
        where = {**self._lane(row, column), "code": int(self.codes[row, column])}
        message = f"padding lane at row {where['row']}, column {where['column']} holds code {where['code']}; K is {self.item.shape[1]}"
        return Fault(
            "layout.padding_nonzero", int(bad.sum()), where, "code 0", f"code {where['code']}", message
        )

    def _physical_scales(self) -> Fault | None:
        bad = self.scales[:, self.groups :] != 0
        if not bad.any():
            return None
        row, beyond = _first(bad)
        group = self.groups + beyond
        word = f"0x{self.scales[row, group]:04x}"
        where = {**self._group(row, group), "word": word}
        message = f"group {where['group']} of row {where['row']} lies wholly past K = {self.item.shape[1]} and has scale word {word}"
        return Fault("layout.padding_nonzero", int(bad.sum()), where, "0x0000", word, message)

    def _group(self, row: int, group: int) -> dict[str, Any]:
        row, group = self.block.row + row, self.block.column // self.fmt.group + group
        return {"row": row, "group": group, "byte": self.planes["scales"] + 2 * (row * self.per_row + group)}

    def _lane(self, row: int, column: int) -> dict[str, Any]:
        row, column = self.block.row + row, self.block.column + column
        group, lane = divmod(column, self.fmt.group)
        inside = lane if self.fmt.code_bits == 8 else lane // 2
        byte = self.planes["base"] + (row * self.per_row + group) * row_split.BASE_BYTES + inside
        return {"row": row, "group": group, "lane": lane, "column": column, "byte": byte}


def _nvfp4(item: TensorObject, block: Block, planes: Planes, kernels: Processor) -> list[Fault]:
    faults = []
    scale_plane, divisor_plane = (
        plane.span.offset for plane in item.layout.planes(item.format, item.shape)[1:]
    )
    divisor = int(planes[2][0])
    if block.row == block.column == 0 and not is_divisor(divisor):
        word = f"0x{divisor:08x}"
        message = f"divisor word {word} is not finite and positive"
        where: dict[str, Any] = {"byte": divisor_plane, "word": word}
        faults.append(Fault("values.divisor_invalid", 1, where, "0x00000001 to 0x7f7fffff", word, message))
    if kernels.scan_block_scales(planes[1]):
        bad = unswizzle(planes[1], block.rows, block.columns) > LARGEST_BLOCK_SCALE
        row, group = _first(bad)
        word = f"0x{unswizzle(planes[1], block.rows, block.columns)[row, group]:02x}"
        row, group = block.row + row, block.column // 16 + group
        where = {
            "row": row,
            "group": group,
            "word": word,
            "byte": scale_plane + scale_offset(row, group, item.shape[1]),
        }
        message = f"block scale word {word} of row {row}, group {group} is negative or NaN"
        faults.append(
            Fault("values.block_scale_invalid", int(bad.sum()), where, "0x00 to 0x7e", word, message)
        )
    return faults


def _row(item: TensorObject, block: Block, planes: Planes, kernels: Processor) -> list[Fault]:
    codes, scales = planes[0].reshape(block.rows, block.columns), planes[1]
    if kernels.scan_row(codes, scales) == 0:
        return []
    scale_plane = item.layout.planes(item.format, item.shape)[1].span.offset
    k = item.shape[1]
    faults = []
    magnitudes = codes & 0x7F
    bad_scales = scales > LARGEST_ROW_SCALE
    if bad_scales.any() and block.column == 0:
        row = int(bad_scales.argmax())
        word = f"0x{scales[row]:04x}"
        where = {"row": block.row + row, "byte": scale_plane + 2 * (block.row + row), "word": word}
        message = f"scale word {word} of row {where['row']} is negative, infinite or NaN"
        faults.append(
            Fault("values.row_scale_invalid", int(bad_scales.sum()), where, "0x0000 to 0x7f7f", word, message)
        )
    for code, bad, expected, what in (
        ("values.fp8_code_invalid", magnitudes == 0x7F, "no code 0x7f or 0xff", "is NaN"),
        (
            "values.zero_row_scale_nonzero_code",
            (scales == 0)[:, None] & (magnitudes != 0),
            "0x00 or 0x80",
            "stands in a row whose scale is zero",
        ),
    ):
        if bad.any():
            row, column = _first(bad)
            word = f"0x{codes[row, column]:02x}"
            row, column = block.row + row, block.column + column
            where = {"row": row, "column": column, "byte": row * k + column, "word": word}
            message = f"code word {word} in row {row}, column {column} {what}"
            faults.append(Fault(code, int(bad.sum()), where, expected, word, message))
    return faults


def _first(mask: NDArray[np.bool_]) -> tuple[int, int]:
    row, column = divmod(int(mask.argmax()), mask.shape[1])
    return row, column
