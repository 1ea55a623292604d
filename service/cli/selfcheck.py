"""`ninfer-gate selfcheck`: the kernels of a device proved on that device."""

import re
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from ninfer_core.errors import Usage
from ninfer_core.kernels.devices import Device, devices, find_device
from ninfer_core.selfcheck.result import KernelResult, NotOffered, SelfCheck
from ninfer_core.selfcheck.run import Progress, chosen, self_check
from service.cli.evidence import keep
from service.cli.failures import Task, guarded
from service.cli.output import SELFCHECK_SCHEMA, JsonTarget, json_target, no_document, not_empty
from service.text import clean

EXIT_CODES = {"passed": 0, "failed": 1, "incomplete": 3}
ALL_SCHEMA = "ninfer-gate/selfchecks/1"  # of several devices: `checks` holds a document for each
_STYLES = {"passed": "bold green", "failed": "bold red", "incomplete": "bold yellow"}


@dataclass(frozen=True, slots=True)
class Request:
    """What was asked on the command line."""

    device: str
    level: Literal["quick", "full"]
    only: str | None
    seed: int
    json: str | None
    library: str | None = None  # kernels of the user's own: a shared library,
    kernels: str | None = None  # or an object in Python
    require: tuple[str, ...] = ()  # of such kernels: what may not be missing


def selfcheck(request: Request) -> int:
    """Check and show; the exit code."""

    def failed(verdict: str, code: str, message: str) -> dict[str, Any]:
        return no_document(SELFCHECK_SCHEMA, verdict, code, message)

    first = JsonTarget(None) if request.json == "-" else None
    task = Task("selfcheck", "checking the kernels", "Nothing is kept.", failed, first)
    return guarded(task, lambda: _run(request))


def _run(request: Request) -> int:
    target = json_target(request.json)
    if request.library is not None or request.kernels is not None:
        return report([_foreign(request)], target)
    if request.require:
        raise Usage("--require is said of --library or --kernels: ours are all there")
    if re.fullmatch(r"cpu|all|cuda:[0-9]+", request.device) is None:
        raise Usage(f"there is no device called {request.device!r}: give cpu, cuda:N or all")
    if request.device == "all":
        asked = tuple(device for device in devices() if chosen(device, request.only)) or devices()[:1]
    else:
        asked = (find_device(request.device),)
    with _watching() as progress:
        checks = [
            self_check(
                device,
                level=request.level,
                seed=request.seed,
                timer=time.perf_counter,
                progress=progress,
                only=request.only,
            )
            for device in asked
        ]
    code = report(checks, target, several=request.device == "all")
    keep(checks)  # last: where the document cannot be written, nothing is kept
    return code


def _foreign(request: Request) -> SelfCheck:
    """The self-check of the user's own kernels; it is shown and not kept."""
    from ninfer_core.selfcheck import foreign
    from ninfer_core.selfcheck.offers import foreign_check

    if request.library is not None and request.kernels is not None:
        raise Usage("--library and --kernels are two checks; ask for one at a time")
    if request.device != "cpu":
        raise Usage("kernels of your own run on the processor here: leave --device out")
    timer = time.perf_counter
    if request.library is not None:
        own = foreign.library(Path(not_empty("--library", request.library)), timer)
    else:
        own = foreign.python(request.kernels or "", timer)
    with _watching(compiled=True) as progress:
        return foreign_check(
            own,
            level=request.level,
            seed=request.seed,
            progress=progress,
            only=request.only,
            require=request.require,
        )


def report(checks: Sequence[SelfCheck], target: JsonTarget | None, *, several: bool = False) -> int:
    """Write and show what was found; the exit code."""
    outcomes = {check.outcome for check in checks}
    worst = next(outcome for outcome in ("failed", "incomplete", "passed") if outcome in outcomes)
    if target is not None:
        documents = [check.as_json() for check in checks]
        target.write(
            {"schema": ALL_SCHEMA, "outcome": worst, "checks": documents} if several else documents[0]
        )
    if target is None or not target.alone:
        for check in checks:
            _show(check)
    return EXIT_CODES[worst]


@contextmanager
def _watching(*, compiled: bool = False) -> Iterator[Progress]:
    """A line that names the kernel under way, where somebody watches; `compiled` when nothing has to be."""
    import sys

    from service.cli.progress import announce_compilation

    if not compiled:
        announce_compilation()
    if not sys.stderr.isatty():
        yield lambda done, total, name: None
        return
    from service.cli.screen import error_console

    screen = error_console()
    with screen.status("  ") as status:
        yield lambda done, total, name: status.update(f"  {done} of {total}  {clean(name)}")


def _show(check: SelfCheck) -> None:
    from service.cli.screen import aligned, console, fitted, hanging, show_left_out, styled

    out = console()
    device = check.device
    head = f"   {device.name}   {device.model}   {check.level}, seed {check.seed}"
    out.print(styled("  ", (check.outcome.upper(), _STYLES[check.outcome]), head))
    out.print(hanging("  ", _facts(device), out.width, "dim"))
    out.print()
    titles: tuple[str, ...] = ("kernel", "outcome", "cases", "values", "runs", "GB/s", "of copy")
    rows = [titles, *(_row(result) for result in check.kernels)]
    spare: tuple[int, ...] = (6, 4, 3, 2)
    if all(result.bytes_per_second is None for result in check.kernels):
        rows, spare = [row[:5] for row in rows], (4, 3, 2)
        titles = rows[0]
    right = (False, False, *(True for _ in titles[2:]))
    kept, flush = fitted(rows, right, out, 0, spare)
    for index, line in enumerate(aligned(kept, flush, gap=2)):
        out.print(f"  {line}", style="dim" if index == 0 else None)
    show_left_out(out, titles, kept[0])
    for result in check.kernels:
        for line in _reasons(result):
            out.print(hanging("  - ", line, out.width))
    for line in _absences(check.absent):
        out.print(hanging("  ", line, out.width))
    out.print()


def _absences(absent: NotOffered | None) -> Iterator[str]:
    if absent is None:
        return
    if absent.names:
        rows: dict[str, list[str]] = {}
        for name in absent.names:
            operation, fmt, dtype, _ = name.split(".")
            rows.setdefault(f"{operation} {fmt}", []).append(dtype)
        yield "not offered: " + "; ".join(f"{row} ({', '.join(dtypes)})" for row, dtypes in rows.items())
    if absent.unknown:
        yield f"no name of a format, though it stands in the code: {clean(', '.join(absent.unknown))}"
    if absent.missing:
        yield f"required and not offered: {', '.join(absent.missing)}"


def _facts(device: Device) -> str:
    if device.name == "foreign":  # how our own kernels would be compiled here says nothing of theirs
        return device.runtime or ""
    facts = (device.capability, device.driver, device.runtime, device.compiler)
    known = [fact for fact in facts if fact is not None]
    return ", ".join([*known, "simulated: nothing is proved of a GPU"] if device.simulated else known)


def _row(result: KernelResult) -> tuple[str, ...]:
    rate, ratio = result.bytes_per_second, result.copy_ratio
    return (
        result.kernel.name,
        result.outcome.replace("_", " "),
        f"{result.cases:,}",
        f"{result.values:,}",
        f"{result.equal_runs}/{result.runs}",
        "" if rate is None else f"{rate / 1e9:.2f}",
        "" if ratio is None else f"{ratio:.2f}",
    )


def _reasons(result: KernelResult) -> Iterator[str]:
    first = result.first_mismatch
    if first is not None:
        yield (
            f"{result.kernel.name}: {result.mismatches:,} wrong, first in case {first.case!r}: {first.where}, expected "
            f"{first.expected}, found {first.found}{f' (the case: {clean(first.why)})' if first.why else ''}"
        )
    if result.reason is not None:
        yield f"{result.kernel.name}: {result.reason}"
