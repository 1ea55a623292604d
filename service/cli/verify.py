"""`ninfer-gate verify`: open, bind what parity needs, verify, show."""

import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from ninfer_core.errors import Usage
from ninfer_core.opening import Opened, open_path
from ninfer_core.verify import Asked, asked, default_checks
from ninfer_core.verify import verify as run_checks
from ninfer_core.verify.against import NO_RECIPE, NO_REGISTERED, NO_SOURCE, Against
from ninfer_core.verify.checks import LISTING_CHECKS, Verdict
from ninfer_core.verify.expected import read_digest, require_digest
from ninfer_core.verify.report import Report
from ninfer_core.verify.sample import Sample
from service.cli.binding import bound, named_files, require_there, roles
from service.cli.choosing import recipe, targets
from service.cli.failures import Task, guarded
from service.cli.output import JsonTarget, json_target, no_report, not_empty
from service.cli.progress import watching

EXIT_CODES: dict[Verdict, int] = {"passed": 0, "failed": 1, "error": 2, "incomplete": 3, "cancelled": 130}
_NOTHING_KEPT = "Nothing is kept: a verification writes no file, and a part of one is no answer."


@dataclass(frozen=True, slots=True)
class Request:
    """The command line as it was given."""

    path: str
    sources: Sequence[str] = ()
    inputs: Sequence[str] = ()
    recipe: str | None = None
    target: str | None = None
    canonical: bool = False
    sample: str | None = None
    seed: int | None = None
    expect: str | None = None
    checks: str | None = None
    json: str | None = None
    threads: int | None = None


def verify(request: Request) -> int:
    """The exit code of one verification, after its report is shown."""
    task = Task("verify", f"verifying {request.path}", _NOTHING_KEPT, no_report, _stdout(request.json))

    def work() -> int:
        not_empty("PATH", request.path)
        folders, inputs = roles(request.sources), named_files(request.inputs)
        given = [Path(request.path), *folders.values(), *inputs.values()]
        target = json_target(request.json, [*given, *_documents(request)])
        return guarded(replace(task, target=target), lambda: _verify(request, folders, inputs, target))

    return guarded(task, work)


def _verify(
    request: Request, folders: dict[str, Path], inputs: dict[str, Path], target: JsonTarget | None
) -> int:
    begin = time.monotonic()
    # Also what no check will read: a slip of the pen is no reason to leave something unchecked.
    require_there([*folders.values(), *inputs.values()])
    expected = None if request.expect is None else read_digest(request.expect)
    with ExitStack() as stack:
        opened = stack.enter_context(open_path(Path(request.path)))
        with_source = bool(folders or inputs)
        default = default_checks(
            opened.kind,
            target=request.target is not None,
            recipe=request.recipe is not None,
            source=with_source,
        )
        checks = _asked(request.checks, default)
        _require_sense(request, checks)
        if with_source and "parity" not in checks:
            note = "Note: --checks leaves parity out, so nothing is compared with the source."
            print(note, file=sys.stderr)
        against = _against(stack, request, opened, folders, inputs)
        watch = stack.enter_context(watching("verify", bool(checks.checks - LISTING_CHECKS)))
        report = run_checks(
            opened,
            checks,
            against,
            digests=expected is not None,
            workers=request.threads,
            started=watch.started,
            progress=watch.progress,
        )
    if expected is not None:
        report = require_digest(report, expected)
    _show(report, request.path, time.monotonic() - begin, target)
    return EXIT_CODES[report.verdict]


def _against(
    stack: ExitStack, request: Request, opened: Opened, folders: dict[str, Path], inputs: dict[str, Path]
) -> Against:
    """What the options say the artifact is to be judged against. Raises: Usage, CannotRead."""
    chosen = None if request.target is None else targets(not_empty("--target", request.target))
    against = Against(
        targets=() if chosen is None else chosen.candidates,
        auto=chosen is not None and chosen.auto,
        canonical=request.canonical,
        sample=_sample(request),
    )
    if request.recipe is None:
        return replace(against, reason=NO_RECIPE) if folders or inputs else against
    document = recipe(stack, not_empty("--recipe", request.recipe), opened)
    if document is None:
        return replace(against, reason=NO_REGISTERED)
    # The target that was named outright is the recipe's too: it states the formats that rules leave out.
    target = against.targets[0] if against.targets and not against.auto else None
    result = bound(stack, document, folders, inputs, target)
    reason = result.reason if folders or inputs or result.findings.errors else NO_SOURCE
    return replace(against, plan=result.plan, findings=result.findings, reason=reason, recipe=result.recipe)


def _require_sense(request: Request, checks: Asked) -> None:
    """Options that would say nothing are refused. Raises: Usage."""
    if request.canonical and request.target is None:
        raise Usage("--canonical is about the order and placement of a target; name it with --target")
    if request.canonical and "inventory" not in checks:
        raise Usage("--canonical is about the check inventory, and --checks leaves it out")
    if request.seed is not None and request.sample is None:
        raise Usage("--seed is that of a sample; ask for one with --sample")
    if request.sample is not None and not request.sources:
        raise Usage("--sample is about the comparison with a source; give one with --source")
    if request.sample is not None and "parity" not in checks:
        raise Usage("--sample is about the check parity, and --checks leaves it out")


def _sample(request: Request) -> Sample | None:
    if request.sample is None:
        return None
    text = request.sample.strip()
    try:
        share = float(text[:-1]) / 100 if text.endswith("%") else float(text)
        if share == 1 and not text.endswith("%"):
            raise Usage(
                f"--sample {text} would be every row: leave it out for that, or say 1% for one row in a hundred"
            )
        return Sample(share, request.seed or 0)
    except ValueError:
        raise Usage(
            f"--sample is a share such as 0.01 or 1%, above 0 and at most 1, not {request.sample!r}"
        ) from None


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


def _documents(request: Request) -> list[Path]:
    """The files among `--recipe` and `--target`, which `--json` may not replace."""
    return [Path(one) for one in (request.recipe, request.target) if one and Path(one).exists()]


def _stdout(option: str | None) -> JsonTarget | None:
    return JsonTarget(None) if option == "-" else None
