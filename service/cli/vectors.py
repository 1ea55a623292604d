"""`ninfer-gate vectors`: the conformance vectors as an archive, and an archive held to its digests."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from service.cli.failures import Task, guarded
from service.cli.output import VECTORS_SCHEMA, JsonTarget, json_target, no_document
from service.cli.screen import console, hanging, styled
from service.text import size

if TYPE_CHECKING:
    from ninfer_core.selfcheck.archive import Verified

_NOTHING_KEPT = "Nothing is kept: no file was published."


def export(out: str | None) -> int:
    """Write the archive, under its own name unless `out` names it; the exit code."""

    def work() -> int:
        from ninfer_core.selfcheck import archive

        done = archive.export(Path(out or f"{archive.FOLDER}.zip"))
        screen = console()
        what = f"   {done.path}   {done.files} files   {size(done.bytes)}"
        screen.print(styled("  ", ("WRITTEN", "bold green"), what))
        screen.print(hanging("  ", f"version {done.manifest.version}, {done.manifest.digest}", screen.width))
        screen.print(hanging("  ", f"archive sha256:{done.sha256}", screen.width))
        return 0

    return guarded(Task("vectors", "exporting the conformance vectors", _NOTHING_KEPT), work)


def verify(path: str | None, json: str | None) -> int:
    """Say what is wrong with an archive, or with the installed vectors; the exit code."""

    def failed(verdict: str, code: str, message: str) -> dict[str, Any]:
        return no_document(VECTORS_SCHEMA, verdict, code, message)

    def work() -> int:
        from ninfer_core.selfcheck import archive

        target = json_target(json, [] if path is None else [Path(path)])
        found = archive.verify(None if path is None else Path(path))
        if target is not None:
            verdict = "passed" if found.sound else "failed"
            target.write({"schema": VECTORS_SCHEMA, "verdict": verdict, **found.as_json()})
        if target is None or not target.alone:
            _show(found)
        return 0 if found.sound else 1

    first = JsonTarget(None) if json == "-" else None
    return guarded(
        Task("vectors", "verifying the conformance vectors", "Nothing is kept.", failed, first), work
    )


def _show(found: "Verified") -> None:
    screen = console()
    verdict = ("SOUND", "bold green") if found.sound else ("FAILED", "bold red")
    screen.print(styled("  ", verdict, f"   {found.name}"))
    if found.manifest is not None:
        cases = ", ".join(f"{count} {kind}" for kind, count in found.cases.items())
        screen.print(
            hanging("  ", f"version {found.manifest.version}, {found.manifest.digest}", screen.width)
        )
        screen.print(hanging("  ", f"cases: {cases or 'none'}", screen.width))
    for problem in found.problems:
        screen.print(hanging("  - ", problem, screen.width))
    if found.manifest is not None and found.same is None:
        note = "Another version than the one installed here: it was held to its own digests only."
        screen.print(hanging("  ", note, screen.width))
