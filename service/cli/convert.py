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
from ninfer_core.errors import NinferError, Usage
from ninfer_core.findings import Findings
from ninfer_core.opening import open_path
from ninfer_core.recipes import Plan
from ninfer_core.recipes.producers import refuse_foreign
from service.cli import EXIT_ERROR
from service.cli.binding import bound, chosen_target, named_files, roles
from service.cli.choosing import named_recipe
from service.cli.failures import Task, guarded, sentence, tell
from service.cli.interrupts import Interrupted, ignore, signal_number
from service.cli.output import (
    CONVERSION_SCHEMA,
    RECORD_SUFFIX,
    JsonTarget,
    json_target,
    new_file,
    no_document,
    not_empty,
)
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
    recipe: str | None
    out: str | None
    target: str | None
    dry_run: bool
    revision: int
    max_file_bytes: int | None
    json: str | None
    threads: int | None


def convert(request: Request) -> int:
    """The exit code of one conversion, after its outcome is shown."""

    def failed(verdict: str, code: str, message: str) -> dict[str, Any]:
        return no_document(CONVERSION_SCHEMA, verdict, code, message)

    first = JsonTarget(None) if request.json == "-" else None
    doing = f"converting to {request.out}" if request.out and not request.dry_run else "planning a conversion"
    task = Task("convert", doing, _NOTHING_KEPT, failed, first)

    def work() -> int:
        recipe = not_empty("--recipe", _required(request.recipe, "--recipe FILE"))
        folders, inputs = roles(request.checkpoints), named_files(request.inputs)
        given = [Path(recipe), *folders.values(), *inputs.values()]
        if request.dry_run:
            if request.out is not None:
                named = new_file(request.out)
                require_free([named, named.with_name(named.name + RECORD_SUFFIX)])
            target = json_target(request.json, given, request.out)
            return guarded(
                replace(task, target=target), lambda: _try(request, recipe, folders, inputs, target)
            )
        out = not_empty("--out", _required(request.out, "--out FILE"))
        if not folders:
            _required(None, "--checkpoint [ROLE=]DIR")
        target = json_target(request.json, [*given, Path(out)], out)
        return guarded(
            replace(task, target=target), lambda: _convert(request, recipe, out, folders, inputs, target)
        )

    return guarded(task, work)


def _required(value: str | None, option: str) -> str:
    if value is None:
        raise Usage(f"{option} is missing; only --dry-run works without --out and --checkpoint")
    return value


def _try(
    request: Request,
    recipe: str,
    folders: dict[str, Path],
    inputs: dict[str, Path],
    target: JsonTarget | None,
) -> int:
    from service.cli.recipe import compare_words, show_outline

    with ExitStack() as stack:
        document = named_recipe(stack, recipe)
        result = bound(stack, document, folders, inputs, chosen_target(request.target))
        compare_words(result, request.threads)
        if result.plan is not None and request.out is not None:
            _require_parts_free(request, result.plan, new_file(request.out))
    if result.recipe is not None:
        refuse_foreign(result.recipe, result.findings)
    entry = None if request.out is None else Path(request.out).name
    given = bool(folders or inputs)
    most = request.max_file_bytes
    return show_outline(result, recipe, target, given, dry_run=True, entry=entry, max_file_bytes=most)


def _require_parts_free(request: Request, plan: Plan, out: Path) -> None:
    """Raises: CannotWrite for a taken name, Usage for a limit that leaves no room."""
    from ninfer_core.containers.writer import blueprint
    from ninfer_core.convert.draft import specs_of
    from ninfer_core.recipes.heading import heading

    files = blueprint(
        out.name, specs_of(plan), heading(plan.recipe), request.revision, request.max_file_bytes
    ).files
    require_free([out.with_name(file.name) for file in files])


def _convert(
    request: Request,
    recipe: str,
    named: str,
    folders: dict[str, Path],
    inputs: dict[str, Path],
    target: JsonTarget | None,
) -> int:
    begin = time.monotonic()
    out = new_file(named)
    require_free([out, out.with_name(out.name + RECORD_SUFFIX)])  # before any source is read
    with ExitStack() as stack:
        document = named_recipe(stack, recipe)
        result = bound(stack, document, folders, inputs, chosen_target(request.target))
        if result.plan is not None:
            refuse_foreign(result.plan.recipe, result.findings)
        if result.plan is None or result.findings.errors:
            return _refused(result.findings, named, begin, target)
        return _write(stack, request, named, result.plan, result.findings, out, begin, target)


def _write(
    stack: ExitStack,
    request: Request,
    named: str,
    plan: Plan,
    told: Findings,
    out: Path,
    begin: float,
    target: JsonTarget | None,
) -> int:
    from ninfer_core.convert import convert as write
    from service.cli.recording import recorded

    asked = {"name": out.name, "revision": request.revision, "max_file_bytes": request.max_file_bytes}
    try:
        watch = stack.enter_context(watching("convert"))
        conversion = write(
            plan,
            out,
            revision=request.revision,
            max_file_bytes=request.max_file_bytes,
            record=recorded(plan, out, asked, begin),
            told=told,
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
            f"The artifact was written all the same, and is whole: {named}."
            if _is_whole(out)
            else f"{named} is there, but not whole: remove it."
        )
        raise Interrupted(signal_number(interrupt), kept) from interrupt
    elapsed = time.monotonic() - begin
    if conversion.written:
        return _written(conversion, named, plan, elapsed, target)
    if target is not None:
        target.write(conversion.as_json())
    if target is None or not target.alone:
        from service.cli.conversion_view import show_refusal

        show_refusal(conversion.findings, named, elapsed)
    return 1


def _written(
    conversion: "Conversion", named: str, plan: Plan, elapsed: float, target: JsonTarget | None
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
            show_conversion(conversion, plan.recipe, named, elapsed)
        except OSError as error:
            drop_output()
            untold.append(f"cannot write standard output: {error.strerror or error}")
    for why in untold:
        tell(f"The artifact {named} was written, but its report was not: {sentence(why)}")
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
