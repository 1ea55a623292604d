"""A bound recipe becomes a `.ninfer` artifact: encoded block by block, checked, digested, published whole or not at all."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import cast

from ninfer_core.containers.output import Output, Sink
from ninfer_core.containers.publish import NewFile, publish, require_free
from ninfer_core.convert.draft import Draft, without_sink
from ninfer_core.convert.result import SCHEMA, Conversion, Written, refused_json
from ninfer_core.errors import CannotRead, CutShort
from ninfer_core.findings import Findings
from ninfer_core.identity import FileDigest
from ninfer_core.io import ByteSource, Progress, no_progress
from ninfer_core.kernels.processor import Processor
from ninfer_core.recipes.plan import Plan
from ninfer_core.verify.files import digest_tasks
from ninfer_core.verify.outcomes import Encoded, Outcome, Outcomes
from ninfer_core.verify.pool import Pool
from ninfer_core.verify.totals import Totals


@dataclass(frozen=True, slots=True)
class Record:
    """What is published beside the artifact: `make` is given the digests of `files`, taken in the same pass, in order."""

    path: Path
    files: Sequence[ByteSource]
    make: Callable[[Conversion, Sequence[FileDigest]], bytes]


def convert(
    plan: Plan,
    out: Path,
    *,
    revision: int = 2,
    max_file_bytes: int | None = None,
    record: Record | None = None,
    told: Findings | None = None,
    workers: int | None = None,
    started: Callable[[Totals], None] = lambda _: None,
    progress: Progress = no_progress,
    processor: Processor | None = None,
) -> Conversion:
    """Write the artifact of `plan` to `out`, with parts beside it where revision 3 needs them, and the record.

    All of them appear, or none. Faults of the source are findings and leave no file; `told` is what binding found, which
    begins the findings of the conversion. Kernels run on `processor`, on this machine's own without one. Raises: Usage, CannotWrite (a name is taken, no space), CannotRead, CutShort.
    """
    pool = Pool(workers, progress, processor)
    draft = Draft(plan, out.name, revision, max_file_bytes, pool, told)
    beside = [] if record is None else [record.path]
    require_free([*(out.with_name(file.name) for file in draft.blueprint.files), *beside])
    hashing = [] if record is None else list(digest_tasks(record.files, pool))
    started(Totals(draft.totals.objects, draft.totals.bytes + sum(task.bytes for task in hashing)))
    with Output(draft.blueprint, out) as output:
        work: list[Callable[[Sink], Outcome]] = [partial(without_sink, task.run) for task in hashing]
        done = pool.run([*work, *(task.run for task in draft.tasks)], output)
        digests = _digests(done[: len(hashing)])
        conversion = draft.compose(cast(Iterable[Encoded | Findings], done[len(hashing) :]), output)
        if conversion.written:
            _publish(output, record, conversion, digests)
    return conversion


def _publish(
    output: Output, record: Record | None, conversion: Conversion, digests: Sequence[FileDigest]
) -> None:
    if record is None:
        publish(output.files)
        return
    content = record.make(conversion, digests)
    file = NewFile(record.path, len(content))
    try:
        file.write(content, 0)
        publish([*output.files, file])
    finally:
        file.close()


def _digests(outcomes: Sequence[Outcome]) -> list[FileDigest]:
    for outcome in outcomes:
        if isinstance(outcome, CutShort | CannotRead):
            raise outcome
    done = Outcomes(outcomes)
    return [done.take(FileDigest) for _ in outcomes]


__all__ = ["SCHEMA", "Conversion", "Draft", "Record", "Sink", "Written", "convert", "refused_json"]
