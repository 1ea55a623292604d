"""One pass over one tensor: digest, layout, values, statistics and parity from the same blocks."""

import hashlib
from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np

from ninfer_core.containers.directory import TensorObject
from ninfer_core.derive import Derivation, Source
from ninfer_core.errors import CannotRead, CutShort
from ninfer_core.io import CHUNK_BYTES, ByteSource, MemorySource, chunks
from ninfer_core.layouts.base import Block, Span, elements, gaps
from ninfer_core.recipes.joints import joints
from ninfer_core.recipes.plan import TensorPlan
from ninfer_core.recipes.restrictions import Restriction
from ninfer_core.verify.checks import WORD_CHECKS, Asked
from ninfer_core.verify.faults import Fault
from ninfer_core.verify.outcomes import Part
from ninfer_core.verify.parity import compare_block, gap_faults, survey_block
from ninfer_core.verify.pool import Buffers, Pool
from ninfer_core.verify.recorded import recorded
from ninfer_core.verify.restrictions import check_block as check_restrictions
from ninfer_core.verify.sample import Sample, blocks_of, matrix_of, plan_rows
from ninfer_core.verify.statistics import block_statistics
from ninfer_core.verify.task import Task
from ninfer_core.verify.whole import object_tasks
from ninfer_core.verify.words import Planes, check_block

WHOLE_BYTES = CHUNK_BYTES  # a tensor up to this size is read once and both hashed and checked from memory


class TensorPass:
    """The tasks of one tensor; every task yields a `Part`, to be merged in task order."""

    # There may be half a million.
    __slots__ = (
        "asked",
        "claims",
        "derivation",
        "digested",
        "item",
        "payload",
        "plan",
        "pool",
        "reads_words",
        "rows",
    )

    def __init__(
        self,
        item: TensorObject,
        payload: ByteSource,
        asked: Asked,
        plan: TensorPlan | None,
        claims: tuple[Restriction, ...],
        sample: Sample | None,
        pool: Pool,
        *,
        digested: bool = False,
    ) -> None:
        """`claims` are what the recipe demands of the words; with `sample` only some rows are compared with `plan`.

        What is `digested` elsewhere is not hashed again.
        """
        self.item, self.payload, self.asked, self.pool = item, payload, asked, pool
        self.claims, self.digested = claims, digested
        self.plan = plan if "parity" in asked else None
        self.rows: tuple[range, ...] | None = None  # those that are compared; None for all
        if self.plan is not None and sample is not None:
            self.rows = sampled_rows(item, self.plan, sample)
        self.derivation = None if self.plan is None else Derivation(self.plan, pool.processor)
        compares_all = self.plan is not None and self.rows is None
        self.reads_words = compares_all or bool(claims) or bool(asked.checks & WORD_CHECKS)

    def tasks(self) -> Iterator[Task[[], Part]]:
        """One task for a small tensor; a digest and one task a block for a large one; then what else there is."""
        yield from self._own_tasks()
        yield from object_tasks(self.item, self.payload, self.claims, self.pool)
        if self.plan is not None:
            for block in self._sampled_blocks:
                source = self.plan.source_bytes(block.rows * block.columns)
                yield Task(self._share(block) + source, partial(recorded, self.pool, self._sampled, block))

    @property
    def bytes_ahead(self) -> int:
        """Those of words that its tasks will look at, digests aside."""
        looked_at = self.item.bytes if self.reads_words else 0
        return looked_at + sum(map(self._share, self._sampled_blocks))

    @property
    def _sampled_blocks(self) -> Iterator[Block]:
        yield from () if self.rows is None else blocks_of(self.item, self.rows)

    def _own_tasks(self) -> Iterator[Task[[], Part]]:
        item = self.item
        if self.digested and not self.reads_words:
            return
        if item.bytes <= WHOLE_BYTES:
            source = 0 if self._compared is None else self._compared.source_bytes(elements(item.shape))
            whole = partial(recorded, self.pool, self._whole) if self.reads_words else self._whole
            yield Task(item.bytes + source, whole)
            return
        if not self.digested:
            yield Task(item.bytes, self._digest)
        if self.reads_words:
            yield Task(sum(gap.length for gap in gaps(item.layout, item.format, item.shape)), self._gaps)
            for block in item.layout.blocks(item.format, item.shape):
                compared = self._compared
                source = 0 if compared is None else compared.source_bytes(block.rows * block.columns)
                yield Task(self._share(block) + source, partial(recorded, self.pool, self._block, block))

    @property
    def _compared(self) -> TensorPlan | None:
        """The plan where every block is compared with it."""
        return self.plan if self.rows is None else None

    def _sampled(self, block: Block) -> Part:
        self.pool.check()
        part = Part()
        try:
            planes = read_planes(self.item, block, self.payload, self.item.offset, self.pool.buffers)
        except (CutShort, CannotRead) as error:
            part.error = error
            return part
        self._compare(block, planes, part)
        self.pool.advance(self._share(block))
        return part

    def _whole(self) -> Part:
        part = Part()
        content = self.pool.buffers.get("whole", self.item.bytes)
        try:
            self.payload.read_into(content.data, self.item.offset)
        except (CutShort, CannotRead) as error:
            part.error = error
            return part
        if not self.digested:
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
        compared = self._compared
        if "layout" not in self.asked and compared is None:
            return
        for gap in gaps(self.item.layout, self.item.format, self.item.shape):
            content = self.pool.buffers.get("gap", gap.length)
            source.read_into(content.data, start + gap.offset)
            if content.any():
                byte = gap.offset + int((content != 0).argmax())
                value = f"0x{content[byte - gap.offset]:02x}"
                message = f"byte {byte:,} of the tensor lies between two planes and is {value}"
                count = int(np.count_nonzero(content))
                where = {"byte": byte}
                if "layout" in self.asked:
                    part.faults.append(Fault("layout.gap_nonzero", count, where, "0x00", value, message))
                if compared is not None:
                    part.faults += gap_faults(compared, gap.offset, content)

    def _check(self, block: Block, source: ByteSource, start: int, part: Part) -> None:
        self.pool.check()
        item = self.item
        planes = read_planes(item, block, source, start, self.pool.buffers)
        derived_from = self._source_of_survey(block)
        surveyed = None
        if derived_from is not None:
            surveyed = survey_block(item, block, planes, derived_from, self.pool.processor)
        if surveyed is not None:
            part.statistics.append((block, surveyed[0]))
            part.sums.append(surveyed[1])
            self._check_claims(block, planes, part)
        else:
            self._check_by_steps(block, planes, derived_from, part)
        self.pool.advance(self._share(block))

    def _check_claims(self, block: Block, planes: Planes, part: Part) -> None:
        if self.claims:
            part.faults += check_restrictions(self.item, block, planes, self.claims)

    def _check_by_steps(self, block: Block, planes: Planes, tried: Source | None, part: Part) -> None:
        item = self.item
        if "layout" in self.asked or "values" in self.asked:
            part.faults += [
                fault
                for fault in check_block(item, block, planes, self.pool.processor)
                if fault.code.partition(".")[0] in self.asked
            ]
        if "statistics" in self.asked:
            statistics = block_statistics(item.format, block, planes, self.pool.processor)
            part.statistics.append((block, statistics))
        self._check_claims(block, planes, part)
        if self._compared is not None:
            self._compare(block, planes, part, tried)

    def _source_of_survey(self, block: Block) -> Source | None:
        """What a block is held to in one visit, where all that a visit answers is asked of it."""
        if self.derivation is None or self._compared is None or "statistics" not in self.asked:
            return None
        try:
            return self.derivation.grouped_source(block)
        except (CutShort, CannotRead):
            return None  # the comparison says so

    def _share(self, block: Block) -> int:
        """Bytes of the tensor that a block stands for; of all blocks together exactly those of the tensor."""
        count = max(1, elements(self.item.shape))
        width = self.item.shape[-1] if block.row else 0
        before = block.row * width + block.rows * block.column
        after = before + block.rows * block.columns
        return after * self.item.bytes // count - before * self.item.bytes // count

    def _compare(self, block: Block, planes: Planes, part: Part, tried: Source | None = None) -> None:
        if self.derivation is None:
            return
        try:
            comparison = compare_block(self.item, block, planes, self.derivation, tried)
        except (CutShort, CannotRead) as error:
            part.source_error = error
            return
        part.faults += comparison.faults
        part.compared &= comparison.complete
        if comparison.sums is not None:
            part.sums.append(comparison.sums)


def sampled_rows(item: TensorObject, plan: TensorPlan, sample: Sample) -> tuple[range, ...] | None:
    """The rows that a sample compares; None where that is every row, as where a bound is about the whole tensor.

    So it is where nobody can say at which rows pieces meet: no sample would hold both sides of every joint.
    """
    bound = None if plan.producer is None else plan.producer.bound
    if bound is not None and (bound.nmse is not None or bound.min_sqnr_db is not None):
        return None
    meeting = joints(plan.tree)
    if meeting is None:
        return None
    rows = plan_rows(item, sample, meeting)
    return None if sum(map(len, rows)) == matrix_of(item)[0] else rows


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
