"""A bound recipe becomes a `.ninfer` artifact: encoded block by block, checked, digested, published whole or not at all."""

from collections.abc import Callable
from pathlib import Path

from ninfer_core.containers.output import Output, Sink
from ninfer_core.containers.publish import publish, require_free
from ninfer_core.convert.draft import Draft
from ninfer_core.convert.result import SCHEMA, Conversion, Written, refused_json
from ninfer_core.io import Progress, no_progress
from ninfer_core.recipes.plan import Plan
from ninfer_core.verify.pool import Pool
from ninfer_core.verify.totals import Totals


def convert(
    plan: Plan,
    out: Path,
    *,
    revision: int = 2,
    max_file_bytes: int | None = None,
    workers: int | None = None,
    started: Callable[[Totals], None] = lambda _: None,
    progress: Progress = no_progress,
) -> Conversion:
    """Write the artifact of `plan` to `out`, with parts beside it where revision 3 needs them.

    Faults of the source are findings and leave no file. Raises: Usage, CannotWrite (a name is taken, no space),
    CannotRead.
    """
    draft = Draft(plan, out.name, revision, max_file_bytes, Pool(workers, progress))
    require_free([out.with_name(file.name) for file in draft.blueprint.files])
    started(draft.totals)
    with Output(draft.blueprint, out) as output:
        encoded = draft.pool.run((task.run for task in draft.tasks), output)
        conversion = draft.compose(encoded, output)
        if conversion.written:
            publish(output.files)
    return conversion


__all__ = ["SCHEMA", "Conversion", "Draft", "Sink", "Written", "convert", "refused_json"]
