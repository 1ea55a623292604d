"""Comparison of two artifacts: what is the same, what changed, and by how much."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from ninfer_core.errors import Usage
from ninfer_core.io import FileSet, Progress, no_progress
from ninfer_core.verify.totals import Totals

if TYPE_CHECKING:
    from ninfer_core.compare.comparison import Comparison
    from ninfer_core.compare.engine import Prepared
    from ninfer_core.opening import Opened

SCHEMA = "ninfer-gate/comparison/1"
NOT_COMPARED = (
    "only .ninfer artifacts are compared; of a safetensors file `verify` compares what was made of it"
)


def prepare(
    a: tuple[FileSet, str],
    b: tuple[FileSet, str],
    *,
    workers: int | None = None,
    progress: Progress = no_progress,
) -> "Prepared":
    """Read both directories and plan the comparison; each artifact is its files and the name of its entry.

    `progress` hears bytes as they are done; `workers` are the threads of the pool, should it run the tasks.
    Raises: CannotRead when an entry cannot be opened.
    """
    # The engine loads the compiler, which listing must not pay for.
    from ninfer_core.compare.engine import Prepared
    from ninfer_core.verify.pool import Pool

    return Prepared(a, b, Pool(workers, progress))


def compare(
    a: "Opened",
    b: "Opened",
    *,
    workers: int | None = None,
    started: Callable[[Totals], None] = lambda _: None,
    progress: Progress = no_progress,
) -> "Comparison":
    """Compare two opened artifacts, all in this process; `started` hears what is ahead.

    Raises: Usage for anything but `.ninfer` artifacts, CannotRead, KeyboardInterrupt after stopping every thread.
    """
    if a.kind != "ninfer" or b.kind != "ninfer":
        raise Usage(NOT_COMPARED)
    prepared = prepare((a.files, a.entry), (b.files, b.entry), workers=workers, progress=progress)
    started(prepared.totals)
    return prepared.conclude(prepared.pool.run(task.run for task in prepared.tasks))


__all__ = ["NOT_COMPARED", "SCHEMA", "compare", "prepare"]
