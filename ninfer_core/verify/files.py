"""Digests of whole files: a task each, and what is said of a file that could not be read to its end."""

from collections.abc import Iterable, Iterator
from functools import partial

from ninfer_core.errors import CannotRead, CutShort
from ninfer_core.file_findings import report_cut_short
from ninfer_core.findings import Findings
from ninfer_core.identity import FileDigest
from ninfer_core.io import ByteSource, sha256
from ninfer_core.verify.outcomes import Outcome, Outcomes
from ninfer_core.verify.pool import Pool
from ninfer_core.verify.task import Task


def digest_tasks(sources: Iterable[ByteSource], pool: Pool) -> Iterator[Task[[], Outcome]]:
    """One task a file."""
    for source in sources:
        yield Task(source.size, partial(_digest, source, pool))


def take_digests(
    count: int, outcomes: Outcomes, findings: Findings
) -> tuple[tuple[FileDigest, ...], list[str]]:
    """The digests of the files that could be read to their end, and why others could not be read at all."""
    digests, unread = [], []
    for _ in range(count):
        outcome = outcomes.take(FileDigest, CutShort, CannotRead)
        if isinstance(outcome, FileDigest):
            digests.append(outcome)
        elif isinstance(outcome, CutShort):
            report_cut_short(outcome, findings)
        else:
            unread.append(str(outcome))
    return tuple(digests), unread


def _digest(source: ByteSource, pool: Pool) -> Outcome:
    try:
        return FileDigest(source.name, source.size, sha256(source, progress=pool.advance))
    except (CutShort, CannotRead) as error:
        return error
