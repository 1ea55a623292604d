"""Ctrl-C, SIGTERM and SIGHUP alike: one exception that unwinds everything, once, and an exit code that names the signal."""

import signal
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

_installed = False
_on_its_way: "weakref.ref[Interrupted] | None" = None


class Interrupted(KeyboardInterrupt):
    """The process was asked to end; `kept` is what stays behind all the same."""

    def __init__(self, number: int = signal.SIGINT, kept: str | None = None) -> None:
        super().__init__(number)
        self.number = number
        self.kept = kept


def install() -> None:
    """Let every signal that is not ignored raise `Interrupted` in the main thread; elsewhere nothing changes."""
    global _installed  # noqa: PLW0603  signals belong to the process, and so does this
    _installed = True
    for number in SIGNALS:
        with suppress(ValueError):  # not the main thread
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, _raise)


def ignore() -> None:
    """Nothing interrupts any more: what is to be said has been said."""
    for number in SIGNALS:
        with suppress(ValueError):
            signal.signal(number, signal.SIG_IGN)


@contextmanager
def given_back() -> Iterator[None]:
    """Undo at the end what was ignored meanwhile, unless this is the command's own process: that only has to end."""
    before = {number: signal.getsignal(number) for number in SIGNALS}
    try:
        yield
    finally:
        if not _installed:
            for number, handler in before.items():
                with suppress(ValueError):
                    signal.signal(number, handler)


def signal_number(interrupt: KeyboardInterrupt) -> int:
    """The signal behind an interrupt."""
    return interrupt.number if isinstance(interrupt, Interrupted) else signal.SIGINT


def exit_code(interrupt: KeyboardInterrupt) -> int:
    """128 and the number of the signal, as shells count."""
    return 128 + signal_number(interrupt)


def described(interrupt: KeyboardInterrupt) -> str:
    """`interrupted`, or by which signal."""
    number = signal_number(interrupt)
    return "interrupted" if number == signal.SIGINT else f"ended by {signal.Signals(number).name}"


def _raise(number: int, _: FrameType | None) -> None:
    global _on_its_way  # noqa: PLW0603  likewise
    # While one interrupt cleans up, a second one would only stop the cleaning. One that got lost is no obstacle.
    if _on_its_way is not None and _on_its_way() is not None:
        return
    interrupt = Interrupted(number)
    _on_its_way = weakref.ref(interrupt)
    try:
        raise interrupt
    finally:
        del interrupt  # the traceback holds this frame: no circle that would keep it alive
