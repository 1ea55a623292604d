"""One object of a conversion: read from the source block by block, encoded, checked, written to a sink."""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ninfer_core.containers.directory import TensorObject
from ninfer_core.containers.output import Sink
from ninfer_core.errors import CutShort
from ninfer_core.formats import GroupedFormat
from ninfer_core.io import CHUNK_BYTES, chunks
from ninfer_core.kernels import cpu
from ninfer_core.kernels.values import EncodeFault, GroupedPlanes
from ninfer_core.layouts.base import Block
from ninfer_core.recipes.plan import ResourcePlan, TensorPlan
from ninfer_core.recipes.values import CastRefused
from ninfer_core.verify.faults import Fault
from ninfer_core.verify.outcomes import Encoded
from ninfer_core.verify.pool import Pool
from ninfer_core.verify.task import Task
from ninfer_core.verify.words import check_block


def resource_task(plan: ResourcePlan, offset: int, pool: Pool) -> Task[[Sink], Encoded]:
    """The task that copies a resource to `offset` of the logical payload."""
    return Task(plan.source.size, partial(_copy, plan, offset, pool))


def _copy(plan: ResourcePlan, offset: int, pool: Pool, sink: Sink) -> Encoded:
    outcome = Encoded()
    buffer = pool.buffers.get("copy", min(CHUNK_BYTES, plan.source.size))
    try:
        for piece in chunks(plan.source, 0, plan.source.size, buffer.data):
            sink.write(piece, offset)
            offset += len(piece)
            pool.advance(len(piece))
    except CutShort as error:
        outcome.cut = error
    return outcome


class TensorEncoder:
    """The tasks of one tensor, a block each; `item` is the tensor as it will lie in the artifact."""

    __slots__ = ("item", "plan", "pool")  # there may be half a million

    def __init__(self, plan: TensorPlan, item: TensorObject, pool: Pool) -> None:
        self.plan, self.item, self.pool = plan, item, pool

    def tasks(self) -> Iterator[Task[[Sink], Encoded]]:
        """One task a block, in order."""
        for block in self.item.layout.blocks(self.item.format, self.item.shape):
            source = self.plan.source_bytes(block.rows * block.columns)
            yield Task(source, partial(self._block, block))

    def _block(self, block: Block, sink: Sink) -> Encoded:
        self.pool.check()
        outcome = Encoded()
        k = self.item.layout.matrix(self.item.format, self.item.shape)[1]
        begin = block.row * k + block.column
        try:
            words = self.plan.value.read(begin, begin + block.rows * block.columns)
        except CastRefused as refusal:
            where = {"index": refusal.element, "word": f"0x{refusal.word:x}"}
            expected = "a value that can be cast"
            fault = Fault("convert.cast_refused", 1, where, expected, refusal.reason, str(refusal))
            outcome.faults.append(fault)
            return outcome
        except CutShort as error:
            outcome.cut = error
            return outcome
        planes = self._planes(block, words, outcome)
        if planes is None:
            return outcome
        # Whatever the recipe says: what our own check would fail is never published.
        outcome.faults += check_block(self.item, block, planes)
        if not outcome.faults:
            self._write(block, planes, sink)
        return outcome

    def _planes(self, block: Block, words: NDArray[Any], outcome: Encoded) -> Sequence[NDArray[Any]] | None:
        fmt = self.item.format
        if not isinstance(fmt, GroupedFormat):
            return (words,)
        planes = GroupedPlanes.empty(fmt, block.rows, block.columns)
        source = words.reshape(block.rows, block.columns)
        encoded = cpu.encode(fmt, source, self.plan.value.dtype, planes)
        if isinstance(encoded, EncodeFault):
            outcome.faults.append(_refusal(fmt, block, encoded))
            return None
        outcome.rescued, outcome.clamped = encoded.rescued, encoded.clamped
        return (planes.base, planes.high, planes.scales) if planes.high.size else (planes.base, planes.scales)

    def _write(self, block: Block, planes: Sequence[NDArray[Any]], sink: Sink) -> None:
        item = self.item
        for plane, spans in zip(planes, item.layout.spans(item.format, item.shape, block), strict=True):
            content = np.ascontiguousarray(plane).view(np.uint8).reshape(-1).data
            done = 0
            for span in spans:
                sink.write(content[done : done + span.length], item.offset + span.offset)
                done += span.length
                self.pool.advance(span.length)


def _refusal(fmt: GroupedFormat, block: Block, fault: EncodeFault) -> Fault:
    row, group = block.row + fault.row, block.column // fmt.group + fault.group
    where: dict[str, Any] = {"row": row, "group": group}
    if fault.lane is not None:
        where |= {"lane": fault.lane, "column": group * fmt.group + fault.lane}
    where["word"] = f"0x{fault.word:x}"
    if fault.kind == "source_not_finite":
        message = f"row {row}, group {group}, lane {fault.lane}: source word {where['word']} is not finite in binary32"
        return Fault("convert.source_not_finite", 1, where, "a finite value", where["word"], message)
    message = f"row {row}, group {group}: the scale, binary32 word {where['word']}, is beyond the largest binary16 value"
    return Fault("convert.scale_overflow", 1, where, "a scale of at most 65504", where["word"], message)
