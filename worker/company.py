"""Who runs beside whom: work that took workers down with it runs alone, so that nothing beside it is blamed for its end."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

SUSPECT: Final = 2  # begun so often without an end, a shard is under suspicion
_LOOK_SECONDS: Final = 0.2


class Company:
    """The pieces of work that run in this process, counted."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._running = 0
        self._suspects = 0  # that run, or wait for all others to end

    @contextmanager
    def joined(self, alone: bool, check: Callable[[], None]) -> Iterator[None]:
        """Run inside beside others, or `alone`; `check` may end the waiting."""
        with self._changed:
            if alone:
                self._suspects += 1
            try:
                while self._running if alone else self._suspects:
                    self._changed.wait(_LOOK_SECONDS)
                    check()
                self._running += 1
            except BaseException:
                self._end(alone)
                raise
        try:
            yield
        finally:
            with self._changed:
                self._running -= 1
                self._end(alone)

    def _end(self, alone: bool) -> None:
        if alone:
            self._suspects -= 1
        self._changed.notify_all()
