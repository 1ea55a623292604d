"""One pass over one tensor: digest, layout, values, statistics and parity from the same blocks."""

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby

import numpy as np

from ninfer_core.containers.directory import TensorObject
from ninfer_core.errors import CannotRead, CutShort
from ninfer_core.formats import BlockFormat, DirectFormat, GroupedFormat, NumericFormat, RowFormat
from ninfer_core.io import CHUNK_BYTES, ByteSource, MemorySource, chunks
from ninfer_core.kernels import cpu
from ninfer_core.kernels.values import CodeStatistics, ErrorSums, WordStatistics
from ninfer_core.layouts.base import Block, Span, gaps
from ninfer_core.layouts.block_scale import unswizzle
from ninfer_core.recipes.plan import TensorPlan
from ninfer_core.verify.checks import Asked
from ninfer_core.verify.faults import Fault
from ninfer_core.verify.parity import compare_block
from ninfer_core.verify.pool import Buffers, Pool
from ninfer_core.verify.words import Planes, check_block, grouped_planes

Statistics = CodeStatistics | WordStatistics

WHOLE_BYTES = CHUNK_BYTES  # a tensor up to this size is read once and both hashed and checked from memory


@dataclass(slots=True)
class Part:
    """What one task found out about one object."""

    sha256: str | None = None
    faults: list[Fault] = field(default_factory=list)
    statistics: list[tuple[Block, Statistics]] = field(default_factory=list)
    sums: list[ErrorSums] = field(default_factory=list)
    compared: bool = True  # parity reached its end in every block of this part
    error: CutShort | CannotRead | None = None
    source_error: CutShort | CannotRead | None = None  # the artifact's own words were read all the same


class TensorPass:
    """The tasks of one tensor; every task yields a `Part`, to be merged in task order."""

    def __init__(
        self, item: TensorObject, payload: ByteSource, asked: Asked, plan: TensorPlan | None, pool: Pool
    ) -> None:
        self.item, self.payload, self.asked, self.pool = item, payload, asked, pool
        self.plan = plan if "parity" in asked else None
        self.reads_words = self.plan is not None or any(
            check in asked for check in ("layout", "values", "statistics")
        )

    def tasks(self) -> Iterator[Callable[[], Part]]:
        """One task for a small tensor; a digest and one task a block for a large one."""
        if self.item.bytes <= WHOLE_BYTES:
            yield self._whole
            return
        yield self._digest
        if self.reads_words:
            yield self._gaps
            for block in self.item.layout.blocks(self.item.format, self.item.shape):
                yield lambda block=block: self._block(block)  # type: ignore[misc]

    def _whole(self) -> Part:
        part = Part()
        content = self.pool.buffers.get("whole", self.item.bytes)
        try:
            self.payload.read_into(content.data, self.item.offset)
        except (CutShort, CannotRead) as error:
            part.error = error
            return part
        part.sha256 = hashlib.sha256(content.data).hexdigest()
        self.pool.advance(self.item.bytes)
        if self.reads_words:
            source = MemorySource(self.payload.name, content.data)
            self._check_gaps(source, 0, part)
            for block in self.item.layout.blocks(self.item.format, self.item.shape):
                self._check(block, source, 0, part)
        return part

    def _digest(self) -> Part:
        digest = hashlib.sha256()
        buffer = self.pool.buffers.get("digest", CHUNK_BYTES)
        try:
            for piece in chunks(self.payload, self.item.offset, self.item.bytes, buffer.data):
                digest.update(piece)
                self.pool.advance(len(piece))
        except (CutShort, CannotRead) as error:
            return Part(error=error)
        return Part(sha256=digest.hexdigest())

    def _gaps(self) -> Part:
        part = Part()
        try:
            self._check_gaps(self.payload, self.item.offset, part)
        except (CutShort, CannotRead) as error:
            part.error = error
        return part

    def _block(self, block: Block) -> Part:
        part = Part()
        try:
            self._check(block, self.payload, self.item.offset, part)
        except (CutShort, CannotRead) as error:
            part.error = error
        return part

    def _check_gaps(self, source: ByteSource, start: int, part: Part) -> None:
        if "layout" not in self.asked:
            return
        for gap in gaps(self.item.layout, self.item.format, self.item.shape):
            content = self.pool.buffers.get("gap", gap.length)
            source.read_into(content.data, start + gap.offset)
            if content.any():
                byte = gap.offset + int((content != 0).argmax())
                value = f"0x{content[byte - gap.offset]:02x}"
                message = f"byte {byte:,} of the tensor lies between two planes and is {value}"
                count = int(np.count_nonzero(content))
                part.faults.append(Fault("layout.gap_nonzero", count, {"byte": byte}, "0x00", value, message))

    def _check(self, block: Block, source: ByteSource, start: int, part: Part) -> None:
        self.pool.check()
        item = self.item
        planes = read_planes(item, block, source, start, self.pool.buffers)
        if "layout" in self.asked or "values" in self.asked:
            part.faults += [
                fault
                for fault in check_block(item, block, planes)
                if fault.code.partition(".")[0] in self.asked
            ]
        if "statistics" in self.asked:
            part.statistics.append((block, _statistics(item.format, block, planes)))
        if self.plan is not None:
            self._compare(block, planes, self.plan, part)
        self.pool.advance(block.rows * block.columns * item.bytes // max(1, _elements(item)))

    def _compare(self, block: Block, planes: Planes, plan: TensorPlan, part: Part) -> None:
        try:
            comparison = compare_block(self.item, block, planes, plan)
        except (CutShort, CannotRead) as error:
            part.source_error = error
            return
        part.faults += comparison.faults
        part.compared &= comparison.complete
        if comparison.sums is not None:
            part.sums.append(comparison.sums)


def read_planes(item: TensorObject, block: Block, source: ByteSource, start: int, buffers: Buffers) -> Planes:
    """The words of one block, plane by plane, in reused buffers of the calling thread. Raises: CutShort, CannotRead."""
    planes = []
    spans = item.layout.spans(item.format, item.shape, block)
    for plane, parts in zip(item.layout.planes(item.format, item.shape), spans, strict=True):
        content = buffers.get(plane.name, sum(part.length for part in parts))
        _fill(content.data, parts, source, start)
        planes.append(content.view(plane.word))
    return planes


def _fill(buffer: memoryview, parts: Sequence[Span], source: ByteSource, start: int) -> None:
    done = 0
    for part in parts:
        source.read_into(buffer[done : done + part.length], start + part.offset)
        done += part.length


def _elements(item: TensorObject) -> int:
    n, k = item.layout.matrix(item.format, item.shape)
    return n * k


def _statistics(fmt: NumericFormat, block: Block, planes: Planes) -> Statistics:
    match fmt:
        case DirectFormat():
            return cpu.statistics_direct(planes[0], fmt.name)
        case GroupedFormat():
            codes = CodeStatistics.empty(fmt)
            cpu.statistics_grouped(fmt, block.columns, grouped_planes(fmt, planes), codes)
        case BlockFormat():
            codes = CodeStatistics.empty(fmt)
            cpu.statistics_nvfp4(planes[0], unswizzle(planes[1], block.rows, block.columns), codes)
        case RowFormat():
            codes = CodeStatistics.empty(fmt)
            cpu.statistics_row(planes[0].reshape(block.rows, block.columns), planes[1], codes)
    return codes


def merge_statistics(item: TensorObject, parts: Sequence[tuple[Block, Statistics]]) -> Statistics | None:
    """The statistics of a whole tensor; blocks in order."""
    merged: Statistics | None = None
    for _, row in groupby(parts, key=lambda part: part[0].row):
        one: Statistics | None = None
        for block, statistics in row:
            if one is not None and isinstance(item.format, RowFormat):
                one = _same_row(one, statistics)
            else:
                one = statistics if one is None else _merge(one, statistics)
            del block
        if one is not None:
            merged = one if merged is None else _merge(merged, one)
    return merged


def _merge(left: Statistics, right: Statistics) -> Statistics:
    if isinstance(left, CodeStatistics) and isinstance(right, CodeStatistics):
        return left.merge(right)
    if isinstance(left, WordStatistics) and isinstance(right, WordStatistics):
        return left.merge(right)
    raise TypeError("statistics of two kinds belong to two tensors")


def _same_row(left: Statistics, right: Statistics) -> Statistics:
    # A row of the FP8 format is one group, however many column runs it was read in.
    if not (isinstance(left, CodeStatistics) and isinstance(right, CodeStatistics)):
        raise TypeError("a row of codes has code statistics")
    merged = left.merge(right)
    merged.tallies[0] = left.tallies[0]
    merged.tallies[1] = left.tallies[1]
    merged.tallies[2] = min(left.tallies[2], right.tallies[2])
    return merged
