"""`ninfer-gate convert`: bind the recipe, write the artifact, say what was written or why it was refused."""

import os
import time
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ninfer_core.containers.ninfer import read_artifact
from ninfer_core.containers.publish import require_free
from ninfer_core.errors import NinferError
from ninfer_core.findings import Findings
from ninfer_core.opening import open_path
from ninfer_core.recipes import Plan
from service.cli import EXIT_ERROR
from service.cli.binding import bound, named_files, roles
from service.cli.choosing import named_recipe
from service.cli.failures import Task, guarded, sentence, tell
from service.cli.interrupts import Interrupted, ignore, signal_number
from service.cli.output import CONVERSION_SCHEMA, JsonTarget, json_target, new_file, no_document, not_empty
from service.cli.progress import watching
from service.cli.screen import drop_output

if TYPE_CHECKING:
    from ninfer_core.convert import Conversion

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
        not_empty("--out", request.out)
        folders, inputs = roles(request.checkpoints), named_files(request.inputs)
        recipe = Path(not_empty("--recipe", request.recipe))
        given = [recipe, Path(request.out), *folders.values(), *inputs.values()]
        target = json_target(request.json, given, request.out)
        return guarded(replace(task, target=target), lambda: _convert(request, folders, inputs, target))

    return guarded(task, work)


def _convert(
    request: Request, folders: dict[str, Path], inputs: dict[str, Path], target: JsonTarget | None
) -> int:
    begin = time.monotonic()
    out = new_file(request.out)
    require_free([out])  # before any source is read
    with ExitStack() as stack:
        result = bound(stack, named_recipe(stack, request.recipe), folders, inputs)
        if result.plan is None:
            return _refused(result.findings, request.out, begin, target)
        return _write(stack, request, result.plan, out, begin, target)


def _write(
    stack: ExitStack, request: Request, plan: Plan, out: Path, begin: float, target: JsonTarget | None
) -> int:
    from ninfer_core.convert import convert as write

    try:
        watch = stack.enter_context(watching("convert"))
        conversion = write(
            plan,
            out,
            revision=request.revision,
            max_file_bytes=request.max_file_bytes,
            workers=request.threads,
            started=watch.started,
            progress=watch.progress,
        )
        if conversion.written:
            ignore()  # the artifact is there: nothing may claim that it is not
        stack.close()  # the bar is gone before the outcome is printed
    except KeyboardInterrupt as interrupt:
        if not os.path.lexists(out):  # it did not exist before
            raise
        kept = (
            f"The artifact was written all the same, and is whole: {request.out}."
            if _is_whole(out)
            else f"{request.out} is there, but not whole: remove it."
        )
        raise Interrupted(signal_number(interrupt), kept) from interrupt
    elapsed = time.monotonic() - begin
    if conversion.written:
        return _written(conversion, request, plan, elapsed, target)
    if target is not None:
        target.write(conversion.as_json())
    if target is None or not target.alone:
        from service.cli.conversion_view import show_refusal

        show_refusal(conversion.findings, request.out, elapsed)
    return 1


def _written(
    conversion: "Conversion", request: Request, plan: Plan, elapsed: float, target: JsonTarget | None
) -> int:
    """What cannot be told does not undo what was written, but it is no success either."""
    untold: list[str] = []
    if target is not None:
        try:
            target.write(conversion.as_json())
        except (NinferError, MemoryError) as error:
            untold.append(str(error) or "there is not enough memory")
    if target is None or not target.alone:
        from service.cli.conversion_view import show_conversion

        try:
            show_conversion(conversion, plan.recipe, request.out, elapsed)
        except OSError as error:
            drop_output()
            untold.append(f"cannot write standard output: {error.strerror or error}")
    for why in untold:
        tell(f"The artifact {request.out} was written, but its report was not: {sentence(why)}")
    return EXIT_ERROR if untold else 0


def _is_whole(out: Path) -> bool:
    """Whether the artifact that was about to appear did, with all of its parts."""
    with suppress(NinferError):
        findings = Findings()
        with open_path(out) as opened:
            return read_artifact(opened.files, opened.entry, findings) is not None and not findings.errors
    return False


def _refused(findings: Findings, out: str, begin: float, target: JsonTarget | None) -> int:
    if target is not None:
        from ninfer_core.convert import refused_json

        target.write(refused_json(findings))
    if target is None or not target.alone:
        from service.cli.conversion_view import show_refusal

        show_refusal(findings.items, out, time.monotonic() - begin)
    return 1
