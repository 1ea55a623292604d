"""`ninfer-gate convert`: bind the recipe, write the artifact, say what was written or why it was refused."""

import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ninfer_core.containers.publish import require_free
from ninfer_core.containers.writer import DEFAULT_MAX_FILE_BYTES
from ninfer_core.findings import Findings
from ninfer_core.recipes import Plan
from ninfer_core.verify.report import finding_json, versions
from service.cli.binding import bound, named_files, roles
from service.cli.failures import Task, guarded
from service.cli.output import CONVERSION_SCHEMA, JsonTarget, json_target, new_file, no_document
from service.cli.progress import watching

_NOTHING_KEPT = "Nothing is kept: no file was published, and no partial one is left."


@dataclass(frozen=True, slots=True)
class Request:
    """The command line as it was given."""

    checkpoints: Sequence[str]
    inputs: Sequence[str]
    recipe: str
    out: str
    revision: int
    max_file_bytes: int | None
    json: str | None
    threads: int | None


def convert(request: Request) -> int:
    """The exit code of one conversion, after its outcome is shown."""

    def failed(verdict: str, code: str, message: str) -> dict[str, Any]:
        return no_document(CONVERSION_SCHEMA, verdict, code, message)

    first = JsonTarget(None) if request.json == "-" else None
    task = Task("convert", f"converting to {request.out}", _NOTHING_KEPT, failed, first)

    def work() -> int:
        folders, inputs = roles(request.checkpoints), named_files(request.inputs)
        given = [Path(request.recipe), Path(request.out), *folders.values(), *inputs.values()]
        target = json_target(request.json, given)
        return guarded(replace(task, target=target), lambda: _convert(request, folders, inputs, target))

    return guarded(task, work)


def _convert(
    request: Request, folders: dict[str, Path], inputs: dict[str, Path], target: JsonTarget | None
) -> int:
    begin = time.monotonic()
    out = new_file(request.out)
    require_free([out])  # before any source is read
    with ExitStack() as stack:
        result = bound(stack, Path(request.recipe), folders, inputs)
        if result.plan is None:
            return _refused(result.findings, request.out, begin, target)
        return _write(stack, request, result.plan, out, begin, target)


def _write(
    stack: ExitStack, request: Request, plan: Plan, out: Path, begin: float, target: JsonTarget | None
) -> int:
    from ninfer_core.convert import convert as write

    watch = stack.enter_context(watching("convert"))
    conversion = write(
        plan,
        out,
        revision=request.revision,
        max_file_bytes=request.max_file_bytes or DEFAULT_MAX_FILE_BYTES,
        workers=request.threads,
        started=watch.started,
        progress=watch.progress,
    )
    stack.close()  # the bar is gone before the outcome is printed
    if target is not None:
        target.write(conversion.as_json())
    if target is None or not target.alone:
        from service.cli.conversion_view import show_conversion

        show_conversion(conversion, plan.recipe, request.out, time.monotonic() - begin)
    return 0 if conversion.written else 1


def _refused(findings: Findings, out: str, begin: float, target: JsonTarget | None) -> int:
    if target is not None:
        target.write(
            {
                "schema": CONVERSION_SCHEMA,
                "verdict": "refused",
                "artifact": None,
                "recipe": None,
                "objects": [],
                "unused_sources": {},
                "findings": [finding_json(finding) for finding in findings],
                "versions": versions(),
            }
        )
    if target is None or not target.alone:
        from service.cli.conversion_view import show_refusal

        show_refusal(findings.items, out, time.monotonic() - begin)
    return 1
