"""`ninfer-gate recipe check` and `convert --dry-run`: everything that a recipe would make, and every fault of it, before any work."""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from ninfer_core.findings import Findings
from ninfer_core.verify.task import Task as SourceTask
from service.cli.binding import Bound, bound, chosen_target, named_files, roles
from service.cli.choosing import named_recipe
from service.cli.failures import Task, guarded
from service.cli.output import RECIPE_SCHEMA, JsonTarget, json_target, no_document, not_empty
from service.cli.progress import watching

_NOTHING_KEPT = "Nothing is kept."


@dataclass(frozen=True, slots=True)
class Request:
    """The command line as it was given."""

    recipe: str
    target: str | None
    checkpoints: Sequence[str]
    inputs: Sequence[str]
    json: str | None
    limit: int | None


def check(request: Request) -> int:
    """The exit code of `recipe check`, after everything is shown."""

    def failed(verdict: str, code: str, message: str) -> dict[str, Any]:
        return no_document(RECIPE_SCHEMA, verdict, code, message)

    first = JsonTarget(None) if request.json == "-" else None
    task = Task("recipe check", f"checking the recipe {request.recipe}", _NOTHING_KEPT, failed, first)

    def work() -> int:
        not_empty("FILE", request.recipe)
        folders, inputs = roles(request.checkpoints), named_files(request.inputs)
        given = [Path(request.recipe), *folders.values(), *inputs.values()]
        target = json_target(request.json, given)
        return guarded(replace(task, target=target), lambda: _check(request, folders, inputs, target))

    return guarded(task, work)


def _check(
    request: Request, folders: Mapping[str, Path], inputs: Mapping[str, Path], target: JsonTarget | None
) -> int:
    with ExitStack() as stack:
        document = named_recipe(stack, request.recipe)
        result = bound(stack, document, folders, inputs, chosen_target(request.target))
        compare_words(result)
    return show_outline(result, request.recipe, target, bool(folders or inputs), request.limit)


def compare_words(result: Bound, threads: int | None = None) -> None:
    """Compare the source tensors that two roles must share, as `convert` does; what differs joins the findings.

    The sources are still open. Raises: CannotRead.
    """
    plan = result.plan
    if plan is None:
        return
    from ninfer_core.recipes.plan import report_source_changes
    from ninfer_core.recipes.preflight import source_tasks
    from ninfer_core.verify.pool import Pool
    from ninfer_core.verify.totals import Totals

    with watching("comparing sources", compiled=False) as watch:
        pool = Pool(threads, watch.progress)
        tasks = source_tasks(plan, pool)
        watch.started(Totals(len(tasks), sum(task.bytes for task in tasks)))

        def run(task: SourceTask[[], Findings]) -> Findings:
            found = task.run()
            pool.advance(task.bytes)
            return found

        for found in pool.run(partial(run, task) for task in tasks):
            result.findings.extend(found)
    report_source_changes(plan, result.findings)


def show_outline(
    result: Bound,
    recipe: str,
    target: JsonTarget | None,
    sources: bool,
    limit: int | None = None,
    *,
    dry_run: bool = False,
    entry: str | None = None,
    max_file_bytes: int | None = None,
) -> int:
    """Print what was read or bound as JSON and for a person; the exit code.

    `sources` says whether any were given, `dry_run` that this stands for a conversion, `entry` the file of that.
    """
    from ninfer_core.convert.outline import outline, unreadable_json
    from ninfer_core.recipes.expansion import compare_checks

    findings = Findings()
    findings.extend(result.findings)
    outlined = None
    if result.recipe is not None:
        compare_checks(result.recipe, findings)
        outlined = outline(result.recipe, result.plan, entry or "artifact.ninfer", max_file_bytes, sources)
    if target is not None:
        target.write(unreadable_json(findings) if outlined is None else outlined.as_json(findings))
    if target is None or not target.alone:
        from service.cli.recipe_view import show

        show(outlined, recipe, findings, limit, dry_run)
    return 1 if findings.errors else 0
