"""The objects of two artifacts, matched by name, and the task that compares a pair.

A pair is one task whatever its size: only who has read both payloads knows whether their words must be compared at
all, and tasks know nothing of one another. It is read in blocks and can be stopped after each.
"""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field

from ninfer_core.compare.outcomes import Changes, Compared
from ninfer_core.compare.words import Side, SideUnread, blocks, compare_block
from ninfer_core.containers.directory import (
    Artifact,
    ArtifactObject,
    BrokenObject,
    ResourceObject,
    TensorObject,
)
from ninfer_core.errors import CannotRead, CutShort
from ninfer_core.io import CHUNK_BYTES, ByteSource, MemorySource, chunks
from ninfer_core.kernels.values import ErrorSums
from ninfer_core.layouts.base import Block
from ninfer_core.verify.outcomes import Unread
from ninfer_core.verify.pool import Buffers, Pool
from ninfer_core.verify.task import Task

WHOLE_BYTES = CHUNK_BYTES  # payloads up to this size are read once, and hashed and compared from memory


@dataclass(frozen=True, slots=True)
class Pair:
    """Two objects of one name, or one that the other side has not; entries too broken for a name are alone."""

    name: str
    a: ArtifactObject | None
    b: ArtifactObject | None

    @property
    def tensors(self) -> tuple[TensorObject, TensorObject] | None:
        """Both tensors, where there are two of one shape: then words or values can be compared."""
        if isinstance(self.a, TensorObject) and isinstance(self.b, TensorObject):
            return (self.a, self.b) if self.a.shape == self.b.shape else None
        return None

    @property
    def unreadable(self) -> bool:
        """Whether a side is there whose bytes cannot be read, so that nothing can be said."""
        return isinstance(self.a, BrokenObject) or isinstance(self.b, BrokenObject)


def pairs(a: Artifact | None, b: Artifact | None) -> Iterator[Pair]:
    """Objects in the order of A's directory, then those that only B has in the order of B's.

    Of several objects with one name only the first is matched: the others are broken entries and stand alone.
    """
    there = {} if b is None else _by_name(b)
    matched: set[int] = set()
    taken: set[str] = set()
    for item in () if a is None else a.objects:
        other = None
        if item.name is not None and item.name not in taken:
            taken.add(item.name)
            other = there.get(item.name)
        if other is not None:
            matched.add(other.ordinal)
        yield Pair(_label(item), item, other)
    for item in () if b is None else b.objects:
        if item.ordinal not in matched:
            yield Pair(_label(item), None, item)


def _by_name(artifact: Artifact) -> dict[str, ArtifactObject]:
    found: dict[str, ArtifactObject] = {}
    for item in artifact.objects:
        if item.name is not None:
            found.setdefault(item.name, item)
    return found


def _label(item: ArtifactObject) -> str:
    return item.label if isinstance(item, BrokenObject) else item.name


@dataclass(frozen=True, slots=True)
class Payloads:
    """Where the payloads of both artifacts are, and what every pair of a pass shares."""

    a: ByteSource | None
    b: ByteSource | None
    pool: Pool
    a_buffers: Buffers = field(default_factory=Buffers)
    b_buffers: Buffers = field(default_factory=Buffers)


class PairPass:
    """The task of one pair."""

    __slots__ = ("pair", "payloads")  # there may be half a million

    def __init__(self, pair: Pair, payloads: Payloads) -> None:
        self.pair, self.payloads = pair, payloads

    def task(self) -> Task[[], Compared]:
        """It reads each payload once to hash it, and large ones of one shape again if they differ."""
        return Task(self._bytes, self.run)

    @property
    def _bytes(self) -> int:
        held = sum(item.bytes for item in self._readable)
        return held if self._small or self.pair.tensors is None else 2 * held

    @property
    def _readable(self) -> tuple[TensorObject | ResourceObject, ...]:
        both = (self.pair.a, self.pair.b)
        return tuple(item for item in both if isinstance(item, TensorObject | ResourceObject))

    @property
    def _small(self) -> bool:
        return all(item.bytes <= WHOLE_BYTES for item in self._readable)

    def run(self) -> Compared:
        """What is there to say of the pair. Raises: Stopped, and what the pool's progress raises."""
        result, payloads = Compared(), self.payloads
        if self.pair.unreadable:
            return result
        a, b = payloads.a, payloads.b
        a_start = b_start = 0
        if self.pair.a is not None and a is not None:
            a_start, a, result.a, result.a_error = self._hashed(self.pair.a, a, payloads.a_buffers)
        if self.pair.b is not None and b is not None:
            b_start, b, result.b, result.b_error = self._hashed(self.pair.b, b, payloads.b_buffers)
        tensors = self.pair.tensors
        if tensors is None:
            return result
        if result.a is None or result.b is None or self._same(result):
            payloads.pool.advance(0 if self._small else sum(item.bytes for item in tensors))
        elif a is not None and b is not None:
            sides = (
                Side(tensors[0], a, a_start, payloads.a_buffers),
                Side(tensors[1], b, b_start, payloads.b_buffers),
            )
            self._compare(*sides, result)
        return result

    def _same(self, result: Compared) -> bool:
        a, b = self.pair.tensors or (None, None)
        return a is not None and b is not None and result.a == result.b and a.format == b.format

    def _hashed(
        self, item: ArtifactObject, source: ByteSource, buffers: Buffers
    ) -> tuple[int, ByteSource, str | None, Unread | None]:
        """Where the payload begins, in which source, its digest, and why there is none; small ones are in memory."""
        if item.offset is None or item.bytes is None:
            raise ValueError("an entry without a place is not read")
        pool = self.payloads.pool
        try:
            if self._small:
                content = buffers.get("whole", item.bytes)
                source.read_into(content.data, item.offset)
                pool.advance(item.bytes)
                in_memory = MemorySource(source.name, content.data)
                return 0, in_memory, hashlib.sha256(content.data).hexdigest(), None
            digest = hashlib.sha256()
            buffer = buffers.get("digest", CHUNK_BYTES)
            for piece in chunks(source, item.offset, item.bytes, buffer.data):
                digest.update(piece)
                pool.advance(len(piece))
        except (CutShort, CannotRead) as error:
            return item.offset, source, None, error
        return item.offset, source, digest.hexdigest(), None

    def _compare(self, a: Side, b: Side, result: Compared) -> None:
        changes: Changes | None = None
        sums: list[ErrorSums] = []
        elements = a.item.layout.matrix(a.item.format, a.item.shape)
        share = 0 if self._small else a.item.bytes + b.item.bytes
        for block in blocks(a.item, b.item):
            try:
                found = compare_block(a, b, block, with_values=not result.no_values)
            except SideUnread as unread:  # both were read to their end a moment ago
                if unread.side is a:
                    result.a_error = unread.error
                else:
                    result.b_error = unread.error
                return
            if found.changes is not None:
                changes = found.changes if changes is None else changes.plus(found.changes)
            result.no_values = result.no_values or found.no_values
            if found.sums is not None:
                sums.append(found.sums)
            self.payloads.pool.advance(_share(block, share, elements))
        result.changes = changes
        result.sums = None if result.no_values else ErrorSums.merge(sums)


def _share(block: Block, size: int, matrix: tuple[int, int]) -> int:
    return block.rows * block.columns * size // max(1, matrix[0] * matrix[1])
