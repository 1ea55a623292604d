"""D2: draft head and output head made of one BF16 matrix, row by row through the stored id map."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ninfer_core.containers.directory import TensorObject
from ninfer_core.findings import Findings
from ninfer_core.formats import GroupedFormat
from ninfer_core.io import ByteSource, read
from ninfer_core.kernels import cpu
from ninfer_core.kernels.values import GroupedPlanes
from ninfer_core.layouts import row_split
from ninfer_core.layouts.base import Block
from ninfer_core.verify.faults import MAX_SAMPLES
from ninfer_core.verify.pool import Pool
from ninfer_core.verify.tensor import read_planes
from ninfer_core.verify.words import grouped_planes
from ninfer_core.words import LARGEST_GROUP_SCALE, expand_binary16

_SMALLEST_NORMAL = 0x0400


@dataclass(slots=True)
class _Apart:
    """Rows of the draft head that differ, and the first element of the first."""

    rows: int = 0
    last: int = -1  # a row that is wider than a block comes in several of them
    elements: int = 0
    few: list[int] = field(default_factory=list)
    where: dict[str, object] = field(default_factory=dict)
    expected: str = ""
    found: str = ""


@dataclass(frozen=True, slots=True)
class Heads:
    """Row i of `draft` against row ids[i] of `head`; K is the same, and there is an id for every row.

    Memory is bounded by the blocks of the draft head; rows of the output head are gathered for each.
    """

    draft: TensorObject
    draft_format: GroupedFormat
    head: TensorObject
    head_format: GroupedFormat
    ids: TensorObject
    payload: ByteSource
    pool: Pool

    def check(self) -> Findings:
        """One finding for all rows that differ; ids outside of the head are the business of C8. Raises: CutShort, CannotRead."""
        apart = _Apart()
        for block in self.draft.layout.blocks(self.draft.format, self.draft.shape):
            self.pool.check()
            self._block(block, apart)
        findings = Findings()
        if apart.rows:
            findings.add(
                "relations.draft_row_differs",
                f"{apart.rows:,} of {self.draft.shape[0]:,} rows of {self.draft.name} ({apart.elements:,} elements) are "
                f"not the rows of {self.head.name} whose ids they carry; the first is row {apart.few[0]}",
                object=self.draft.name,
                where={**apart.where, "rows": apart.few},
                expected=apart.expected,
                found=apart.found,
                count=apart.rows,
                ordinal=self.draft.ordinal,
            )
        return findings

    def _block(self, block: Block, apart: _Apart) -> None:
        text = read(self.payload, self.ids.offset + 4 * block.row, 4 * block.rows)
        ids: NDArray[np.int32] = np.frombuffer(text, "<i4")
        known = (ids >= 0) & (ids < self.head.shape[0])
        planes = read_planes(self.draft, block, self.payload, self.draft.offset, self.pool.buffers)
        draft = grouped_planes(self.draft_format, planes)
        head = self._gather(np.where(known, ids, 0), block)
        counts = cpu.rows_apart(self.draft_format, draft, self.head_format, head, block.columns)
        counts[~known] = 0
        places = np.flatnonzero(counts)
        if not places.size:
            return
        rows = [block.row + int(place) for place in places]
        if not apart.rows:
            self._locate(block, int(places[0]), int(ids[places[0]]), draft, head, apart)
        apart.rows += len(rows) - (rows[0] == apart.last)
        apart.last = rows[-1]
        apart.elements += int(counts.sum())
        apart.few = list(dict.fromkeys((*apart.few, *rows)))[:MAX_SAMPLES]

    def _gather(self, rows: NDArray[np.int32], block: Block) -> GroupedPlanes:
        fmt, shape = self.head_format, self.head.shape
        per_row = row_split.groups_per_row(fmt, shape[1])
        first, count = block.column // fmt.group, row_split.groups_per_row(fmt, block.columns)
        gathered = []
        for plane in self.head.layout.planes(fmt, shape):
            size = plane.span.length // (shape[0] * per_row)
            content = self.pool.buffers.get(f"head {plane.name}", rows.size * count * size)
            view, start = content.data, self.head.offset + plane.span.offset + first * size
            for place, row in enumerate(rows.tolist()):
                part = view[place * count * size : (place + 1) * count * size]
                self.payload.read_into(part, start + row * per_row * size)
            gathered.append(content.view(plane.word))
        return grouped_planes(fmt, gathered)

    def _locate(
        self, block: Block, place: int, token: int, draft: GroupedPlanes, head: GroupedPlanes, apart: _Apart
    ) -> None:
        values, reach = _row(self.draft_format, block, place, draft)
        head_values, head_reach = _row(self.head_format, block, place, head)
        most = reach + head_reach
        column = int((np.abs(values - head_values) > most).argmax())
        ours, theirs, allowed = float(values[column]), float(head_values[column]), float(most[column])
        apart.where |= {
            "row": block.row + place,
            "id": token,
            "head": self.head.name,
            "column": block.column + column,
            "draft": ours,
            "head_value": theirs,
            "allowed": allowed,
        }
        apart.expected = f"{theirs:.9g}, at most {allowed:.9g} off"
        apart.found = f"{ours:.9g}"


def _row(
    fmt: GroupedFormat, block: Block, place: int, planes: GroupedPlanes
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Values of one row of a block and how far its source may lie from each: the plain counterpart of the kernel."""
    groups = row_split.groups_per_row(fmt, block.columns)
    mine = planes.part(fmt, place * groups, (place + 1) * groups)
    words = row_split.unpack(fmt, block.columns, mine.base, mine.high, mine.scales)
    codes = words.codes[0].astype(np.float64)
    codes[block.columns :] = 0
    stored = words.scales[0]
    used = codes.reshape(groups, fmt.group).any(axis=1)
    illegal = (stored > LARGEST_GROUP_SCALE) | ((stored == 0) & used)
    scales = expand_binary16(np.where(illegal, np.uint16(0), stored)).view(np.float32).astype(np.float64)
    clamp = np.where((stored > 0) & (stored < _SMALLEST_NORMAL), cpu.clamp_reach(fmt), 0.0)
    reach = np.where(illegal, np.inf, scales * cpu.ROUNDING + clamp)
    lanes = slice(0, block.columns)
    return (codes * np.repeat(scales, fmt.group))[lanes], np.repeat(reach, fmt.group)[lanes]
