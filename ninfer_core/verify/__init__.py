"""Verification: checks over one artifact, one pass, one report."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from ninfer_core.io import FileSet, Progress, no_progress
from ninfer_core.verify.checks import CHECKS, MEANINGS, Asked, asked
from ninfer_core.verify.totals import Totals

if TYPE_CHECKING:
    from ninfer_core.kernels.processor import Processor
    from ninfer_core.opening import ArtifactKind, Opened
    from ninfer_core.verify.against import Against
    from ninfer_core.verify.report import Report
    from ninfer_core.verify.reuse import Known
    from ninfer_core.verify.task import Prepared


def default_checks(
    kind: "ArtifactKind", *, target: bool = False, recipe: bool = False, source: bool = False
) -> tuple[str, ...]:
    """What a person means who asks for no check in particular: all that was given is asked about.

    Also where it can say nothing of this kind: then it stays unchecked, and nobody takes it for a pass.
    """
    wanted = {"structure", "statistics"}
    wanted |= {"relations"} if kind == "safetensors" else {"layout", "values"}
    wanted |= {"inventory"} if target else set()
    wanted |= {"restrictions", "relations"} if recipe else set()
    wanted |= {"source", "parity"} if source else set()
    return tuple(name for name in CHECKS if name in wanted)


def prepare(
    kind: "ArtifactKind",
    files: FileSet,
    entry: str,
    checks: Asked,
    against: "Against | None" = None,
    *,
    known: "Known | None" = None,
    digests: bool = False,
    workers: int | None = None,
    progress: Progress = no_progress,
    processor: "Processor | None" = None,
) -> "Prepared":
    """Read the directory of an artifact of any kind and plan its verification; `entry` names its first file.

    `progress` hears bytes as they are done; `workers` are the threads of the pool, should it run the tasks. Kernels
    run on `processor`, on this machine's own without one. What is `known` is not read again. Where no check reads an object, files are digested with `digests` only.
    Raises: CannotRead when the entry cannot be opened.
    """
    # Engines load the compiler, which listing and inspecting must not pay for.
    from ninfer_core.verify.pool import Pool

    pool = Pool(workers, progress, processor)
    if kind == "safetensors":
        from ninfer_core.verify.safetensors import prepare_safetensors

        return prepare_safetensors(files, entry, checks, pool)
    from ninfer_core.verify.ninfer import prepare_ninfer
    from ninfer_core.verify.reuse import Known

    return prepare_ninfer(files, entry, checks, against, pool, known or Known(digests=digests))


def verify(
    opened: "Opened",
    checks: Asked,
    against: "Against | None" = None,
    *,
    digests: bool = False,
    workers: int | None = None,
    started: Callable[[Totals], None] = lambda _: None,
    progress: Progress = no_progress,
    processor: "Processor | None" = None,
) -> "Report":
    """Verify an opened artifact of any kind, all in this process; `started` hears what is ahead.

    Raises: CannotRead when the entry cannot be opened, KeyboardInterrupt after stopping every thread.
    """
    prepared = prepare(
        opened.kind,
        opened.files,
        opened.entry,
        checks,
        against,
        digests=digests,
        workers=workers,
        progress=progress,
        processor=processor,
    )
    started(prepared.totals)
    return prepared.conclude(prepared.pool.run(task.run for task in prepared.tasks))


__all__ = ["CHECKS", "MEANINGS", "Asked", "Totals", "asked", "default_checks", "prepare", "verify"]
