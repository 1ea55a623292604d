"""Digests of whole files, and of large objects in the same reading: a task a file, and what is said of one cut short."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from ninfer_core.errors import CannotRead, CutShort, OutOfStep
from ninfer_core.file_findings import report_cut_short
from ninfer_core.findings import Findings
from ninfer_core.identity import FileDigest
from ninfer_core.io import CHUNK_BYTES, ByteSource, chunks, sha256
from ninfer_core.verify.held import Held, HeldByFile, nothing
from ninfer_core.verify.outcomes import Digested, Outcome, Outcomes, Unread
from ninfer_core.verify.pool import Pool
from ninfer_core.verify.task import Task


@dataclass(frozen=True, slots=True)
class Taken:
    """Digests of the files that could be read to their end, why others could not be read at all, and of objects."""

    files: tuple[FileDigest, ...]
    unread: tuple[str, ...]
    objects: Mapping[int, str | Unread]  # by ordinal; an error where the object could not be read to its end


def digest_tasks(
    sources: Sequence[ByteSource], pool: Pool, held: HeldByFile | None = None
) -> Iterator[Task[[], Outcome]]:
    """One task a file; `held` are the objects of each that are digested with it, in the order of their bytes."""
    for source, objects in zip(sources, held or nothing(len(sources)), strict=True):
        work = partial(_digest_both, source, objects, pool) if objects else partial(_digest, source, pool)
        yield Task(source.size, work)


def take_digests(count: int, outcomes: Outcomes, findings: Findings, held: HeldByFile | None = None) -> Taken:
    """What the tasks of `count` files yielded. Raises: OutOfStep."""
    files: list[FileDigest] = []
    unread: list[str] = []
    found: dict[int, str | Unread] = {}
    for objects in held or nothing(count):
        outcome = outcomes.take(Digested) if objects else outcomes.take(FileDigest, CutShort, CannotRead)
        if isinstance(outcome, Digested):
            if len(outcome.objects) != len(objects):
                raise OutOfStep(f"expected {len(objects)} digests, got {len(outcome.objects)}")
            found |= {one.ordinal: digest for one, digest in zip(objects, outcome.objects, strict=True)}
            outcome = outcome.file
        if isinstance(outcome, FileDigest):
            files.append(outcome)
        elif isinstance(outcome, CutShort):
            report_cut_short(outcome, findings)
        else:
            unread.append(str(outcome))
    return Taken(tuple(files), tuple(unread), found)


def file_digest(outcome: Outcome) -> FileDigest | None:
    """The digest of a whole file, where the outcome has one."""
    found = outcome.file if isinstance(outcome, Digested) else outcome
    return found if isinstance(found, FileDigest) else None


def _digest(source: ByteSource, pool: Pool) -> FileDigest | Unread:
    try:
        return FileDigest(source.name, source.size, sha256(source, progress=pool.advance))
    except (CutShort, CannotRead) as error:
        return error


def _digest_both(source: ByteSource, objects: Sequence[Held], pool: Pool) -> Digested:
    from ninfer_core.verify.hashing import hashing  # brings in the compiler

    found: list[str | Unread] = []
    with hashing(pool.workers) as digests:
        try:
            for piece, begins, ends in _pieces(source, objects, pool):
                if begins:
                    digests.begin()
                digests.update(piece)
                if ends:
                    found.append(digests.end())
            file: FileDigest | Unread = FileDigest(source.name, source.size, digests.hexdigest())
        except (CutShort, CannotRead) as error:
            file = error
    # Those behind the place where the file ended are read for themselves: each says where it ends.
    found += (_digest_one(source, one, pool) for one in objects[len(found) :])
    return Digested(file, tuple(found))


def _pieces(
    source: ByteSource, objects: Sequence[Held], pool: Pool
) -> Iterator[tuple[memoryview, bool, bool]]:
    """The file piece by piece, and whether an object begins or ends with the piece; none is partly in an object."""
    waiting = iter(objects)
    one = next(waiting, None)
    at = 0
    buffer = pool.buffers.get("digest", min(CHUNK_BYTES, source.size))
    for content in chunks(source, 0, source.size, buffer.data):
        while content:
            inside = one is not None and at >= one.begin
            length = len(content)
            if one is not None:
                length = min(length, (one.end if inside else one.begin) - at)
            at += length
            ends = one is not None and at == one.end
            yield content[:length], one is not None and at - length == one.begin, ends
            pool.advance(2 * length if inside else length)
            content = content[length:]
            if ends:
                one = next(waiting, None)


def _digest_one(source: ByteSource, one: Held, pool: Pool) -> str | Unread:
    try:
        return sha256(source, one.begin, one.end - one.begin, lambda _: pool.check())
    except (CutShort, CannotRead) as error:
        return error
