"""`ninfer-gate diff`: open two artifacts, compare them object by object, show."""

import time
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ninfer_core.compare import SCHEMA, compare
from ninfer_core.opening import open_path
from service.cli.failures import Task, guarded
from service.cli.output import JsonTarget, json_target, no_document, not_empty
from service.cli.progress import watching

EXIT_CODES = {"identical": 0, "different": 1, "incomplete": 2}
_NOTHING_KEPT = "Nothing is kept: a comparison writes no file, and a part of one is no answer."


@dataclass(frozen=True, slots=True)
class Request:
    """The command line as it was given."""

    a: str
    b: str
    json: str | None
    worst: int
    everything: bool
    threads: int | None


def diff(request: Request) -> int:
    """The exit code of one comparison, after it is shown."""

    def failed(verdict: str, code: str, message: str) -> dict[str, Any]:
        return no_document(SCHEMA, verdict, code, message)

    stdout = JsonTarget(None) if request.json == "-" else None
    doing = f"comparing {request.a} with {request.b}"
    task = Task("diff", doing, _NOTHING_KEPT, failed, stdout)

    def work() -> int:
        a, b = Path(not_empty("A", request.a)), Path(not_empty("B", request.b))
        target = json_target(request.json, [a, b])
        return guarded(replace(task, target=target), lambda: _diff(request, a, b, target))

    return guarded(task, work)


def _diff(request: Request, a: Path, b: Path, target: JsonTarget | None) -> int:
    begin = time.monotonic()
    with ExitStack() as stack:
        left, right = stack.enter_context(open_path(a)), stack.enter_context(open_path(b))
        watch = stack.enter_context(watching("diff"))
        comparison = compare(
            left, right, workers=request.threads, started=watch.started, progress=watch.progress
        )
    if target is not None:
        target.write(comparison.json_pieces())
    if target is None or not target.alone:
        from service.cli.diff_view import show_comparison

        shown = None if request.everything else request.worst
        show_comparison(comparison, (request.a, request.b), time.monotonic() - begin, shown)
    return EXIT_CODES[comparison.verdict]
