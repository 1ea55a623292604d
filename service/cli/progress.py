"""One line of progress on standard error while long work runs, and nothing where nobody watches."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Protocol

from ninfer_core.io import Progress


class Ahead(Protocol):
    """What a pass says it will read or write."""

    @property
    def bytes(self) -> int: ...


@dataclass(frozen=True, slots=True)
class Watch:
    """The two callbacks that long work takes."""

    started: Callable[[Ahead], None]
    progress: Progress


def announce_compilation() -> None:
    """Say on standard error that the first run of a machine takes longer, before it seems to hang."""
    from ninfer_core.kernels.cache import compiling_ahead

    notice = compiling_ahead()
    if notice is not None:
        print(notice, file=sys.stderr, flush=True)


@contextmanager
def watching(what: str, compiled: bool = True) -> Iterator[Watch]:
    """A bar with bytes, rate and time left, called `what`; it is gone when the work is done.

    Work that is not `compiled` needs no notice of a first run, nor the compiler that knows whether it is one.
    """
    if compiled:
        announce_compilation()
    if not sys.stderr.isatty():
        yield Watch(lambda _: None, lambda _: None)
        return
    from rich.progress import (
        BarColumn,
        DownloadColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
        TransferSpeedColumn,
    )

    from service.cli.screen import error_console

    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(bar_width=None),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(compact=True),
        console=error_console(),
        transient=True,
        expand=True,
    )
    try:
        bar.start()
        task = bar.add_task(f"  {what}", total=None)
        yield Watch(lambda ahead: bar.update(task, total=ahead.bytes), lambda count: bar.advance(task, count))
    finally:
        with suppress(OSError):  # a terminal that hung up
            bar.stop()
