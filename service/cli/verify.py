"""`ninfer-gate verify`: open, bind what parity needs, verify, show."""

import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from ninfer_core.opening import open_path
from ninfer_core.verify import Asked, asked, default_checks
from ninfer_core.verify import verify as run_checks
from ninfer_core.verify.against import NO_RECIPE, NO_SOURCE, Against
from ninfer_core.verify.checks import Verdict
from ninfer_core.verify.report import Report
from service.cli.binding import bound, named_files, require_there, roles
from service.cli.failures import Task, guarded
from service.cli.output import JsonTarget, json_target, no_report, not_empty
from service.cli.progress import watching

EXIT_CODES: dict[Verdict, int] = {"passed": 0, "failed": 1, "error": 2, "incomplete": 3, "cancelled": 130}
_NOTHING_KEPT = "Nothing is kept: a verification writes no file, and a part of one is no answer."


@dataclass(frozen=True, slots=True)
class Request:
    """The command line as it was given."""

    path: str
    sources: Sequence[str]
    inputs: Sequence[str]
    recipe: str | None
    checks: str | None
    json: str | None
    threads: int | None


def verify(request: Request) -> int:
    """The exit code of one verification, after its report is shown."""
    task = Task("verify", f"verifying {request.path}", _NOTHING_KEPT, no_report, _stdout(request.json))

    def work() -> int:
        not_empty("PATH", request.path)
        folders, inputs = roles(request.sources), named_files(request.inputs)
        given = [Path(request.path), *folders.values(), *inputs.values()]
        target = json_target(request.json, [*given, *_recipe_path(request)])
        return guarded(replace(task, target=target), lambda: _verify(request, folders, inputs, target))

    return guarded(task, work)


def _verify(
    request: Request, folders: dict[str, Path], inputs: dict[str, Path], target: JsonTarget | None
) -> int:
    begin = time.monotonic()
    # Also what no check will read: a slip of the pen is no reason to leave something unchecked.
    require_there([*folders.values(), *inputs.values(), *_recipe_path(request)])
    with ExitStack() as stack:
        opened = stack.enter_context(open_path(Path(request.path)))
        recipe_path = _recipe_path(request)
        with_parity = bool(folders or inputs or recipe_path)
        checks = _asked(request.checks, default_checks(opened.kind, with_parity))
        if with_parity and "parity" not in checks:
            note = "Note: --checks leaves parity out, so nothing is compared with the source."
            print(note, file=sys.stderr)
        against = None
        if "parity" in checks and not recipe_path:
            against = Against(None, reason=NO_RECIPE)
        elif "parity" in checks and not folders:
            against = Against(None, reason=NO_SOURCE)
        elif "parity" in checks and opened.kind == "ninfer":
            result = bound(stack, recipe_path[0], folders, inputs)
            against = Against(result.plan, result.findings, result.reason)
        watch = stack.enter_context(watching("verify"))
        report = run_checks(
            opened,
            checks,
            against,
            workers=request.threads,
            started=watch.started,
            progress=watch.progress,
        )
    if against is not None:
        report = replace(report, recipe=against.recipe_json)
    _show(report, request.path, time.monotonic() - begin, target)
    return EXIT_CODES[report.verdict]


def _show(report: Report, path: str, elapsed: float, target: JsonTarget | None) -> None:
    if target is not None:
        target.write(report.json_pieces())
    if target is None or not target.alone:
        from service.cli.report_view import show_report

        show_report(report, path, elapsed)


def _asked(option: str | None, default: Sequence[str]) -> Asked:
    if option is None:
        return asked(default)
    return asked([name.strip() for name in option.split(",") if name.strip()])


def _recipe_path(request: Request) -> list[Path]:
    return [] if request.recipe is None else [Path(not_empty("--recipe", request.recipe))]


def _stdout(option: str | None) -> JsonTarget | None:
    return JsonTarget(None) if option == "-" else None
