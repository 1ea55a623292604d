"""One object of a conversion: read from the source block by block, encoded, checked, written to a sink."""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ninfer_core.containers.directory import TensorObject
from ninfer_core.containers.output import Sink
from ninfer_core.derive import Derivation, Refused
from ninfer_core.errors import CutShort
from ninfer_core.io import CHUNK_BYTES, chunks
from ninfer_core.layouts.base import Block
from ninfer_core.recipes.bundles import Bundle
from ninfer_core.recipes.plan import ResourcePlan, TensorPlan
from ninfer_core.verify.faults import Fault
from ninfer_core.verify.outcomes import Encoded
from ninfer_core.verify.parity import source_faults
from ninfer_core.verify.pool import Pool
from ninfer_core.verify.recorded import recorded
from ninfer_core.verify.restrictions import check_block as check_restrictions
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

    __slots__ = ("derivation", "item", "plan", "pool")  # there may be half a million

    def __init__(self, plan: TensorPlan, item: TensorObject, pool: Pool) -> None:
        self.plan, self.item, self.pool = plan, item, pool
        self.derivation = Derivation(plan, pool.processor)

    def tasks(self) -> Iterator[Task[[Sink], Encoded]]:
        """One task a block, in order."""
        for block in self.item.layout.blocks(self.item.format, self.item.shape):
            source = self.plan.source_bytes(block.rows * block.columns)
            yield Task(source, partial(self._recorded, block))

    def _recorded(self, block: Block, sink: Sink) -> Encoded:
        return recorded(self.pool, self._block, block, sink)

    def _block(self, block: Block, sink: Sink) -> Encoded:
        self.pool.check()
        outcome = Encoded()
        try:
            derived = self.derivation.block(block)
        except CutShort as error:
            outcome.cut = error
            return outcome
        if isinstance(derived, Refused):
            if derived.here:
                outcome.faults.append(_refusal(derived))
            return outcome
        outcome.rescued, outcome.clamped = derived.rescued, derived.clamped
        # Whatever the recipe says: what our own check would fail is never published. Nor is what breaks its own demands.
        faults = check_block(self.item, block, derived.planes, self.pool.processor)
        outcome.faults += source_faults(faults) if isinstance(self.plan.value, Bundle) else faults
        outcome.faults += check_restrictions(self.item, block, derived.planes, self.plan.claims)
        if all(fault.severity == "advisory" for fault in outcome.faults):
            self._write(block, derived.planes, sink)
        return outcome

    def _write(self, block: Block, planes: Sequence[NDArray[Any]], sink: Sink) -> None:
        item = self.item
        for plane, spans in zip(planes, item.layout.spans(item.format, item.shape, block), strict=True):
            content = np.ascontiguousarray(plane).view(np.uint8).reshape(-1).data
            done = 0
            for span in spans:
                sink.write(content[done : done + span.length], item.offset + span.offset)
                done += span.length
                self.pool.advance(span.length)


def _refusal(refused: Refused) -> Fault:
    where = refused.where
    word = where["word"]
    place = ", ".join(f"{key} {where[key]}" for key in ("row", "group", "lane", "column") if key in where)
    match refused.kind:
        case "cast_refused":
            message = f"element {where['index']}: source word {word} {refused.reason}"
            expected, found = "a value that can be cast", refused.reason
        case "source_not_finite":
            message = f"{place}: source word {word} is not finite in binary32"
            expected, found = "a finite value", word
        case "scale_overflow":
            message = f"{place}: the scale, binary32 word {word}, is beyond the largest binary16 value"
            expected, found = "a scale of at most 65504", word
        case "scale_underflow":
            message = f"{place}: the scale, binary32 word {word}, is at most 2^-128, and its reciprocal is not finite"
            expected, found = "a scale above 2^-128", word
    return Fault(f"convert.{refused.kind}", 1, where, expected, found, message)
