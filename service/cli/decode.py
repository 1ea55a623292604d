"""`ninfer-gate decode`: the values of one tensor as a NumPy file."""

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

from ninfer_core.containers.publish import require_free
from ninfer_core.opening import open_path
from service.cli.failures import Task, guarded
from service.cli.findings_view import count_line, show_findings
from service.cli.interrupts import Interrupted, ignore, signal_number
from service.cli.output import new_file, not_empty
from service.cli.progress import watching
from service.cli.screen import console, error_console, styled
from service.text import seconds, shape, size

if TYPE_CHECKING:
    from ninfer_core.decode import Decoded

_NOTHING_KEPT = "Nothing is kept: no file was published, and no partial one is left."


def decode(path: str, name: str, out: str, threads: int | None) -> int:
    """The exit code of one decoding, after its outcome is shown."""
    task = Task("decode", f"decoding {name!r} of {path}", _NOTHING_KEPT)
    return guarded(task, lambda: _decode(not_empty("PATH", path), name, new_file(out), threads))


def _decode(path: str, name: str, out: Path, threads: int | None) -> int:
    from ninfer_core.decode import decode as write

    begin = time.monotonic()
    require_free([out])
    try:
        with open_path(Path(path)) as opened, watching("decode") as watch:
            decoded = write(
                opened, name, out, workers=threads, started=watch.started, progress=watch.progress
            )
            ignore()  # the file is there: nothing may claim that it is not
    except KeyboardInterrupt as interrupt:
        if os.path.lexists(out):
            kept = f"The file was written all the same, and is whole: {out}."
            raise Interrupted(signal_number(interrupt), kept) from interrupt
        raise
    return _outcome(decoded, out, begin)


def _outcome(decoded: "Decoded", out: Path, begin: float) -> int:
    screen = console()
    if not decoded.written:
        screen.print(styled("  ", ("REFUSED", "bold red"), f"   {out}   nothing was written"))
        show_findings(screen, decoded.findings, more="verify PATH --json FILE has them all")
        screen.print()
        screen.print(styled("  ", ("REFUSED", "bold red"), f"; {count_line(decoded.findings)}."))
        return 1
    what = f"{decoded.dtype} {shape(decoded.shape)}   {size(out.stat().st_size)}"
    if decoded.broken:
        error_console().print(
            "Note: this tensor is sound, but the structure of the artifact is not; verify says what is wrong."
        )
    screen.print(
        styled("  ", ("WRITTEN", "bold green"), f"   {out}   {what}   in {seconds(time.monotonic() - begin)}")
    )
    return 0
