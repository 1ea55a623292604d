"""Prepared work by job: what was read and bound once serves every shard of the job that runs here."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar


class Session(Protocol):
    """Prepared work with open files."""

    @property
    def weight(self) -> int:
        """Tasks, for what it takes of memory."""
        ...

    def close(self) -> None:
        """Close its files."""
        ...


S = TypeVar("S", bound=Session)
KEPT = 2  # sessions that nobody uses right now, however large
_LIGHT = 50_000  # and as many more as weigh no more than this together
_MOST = 16


@dataclass(slots=True)
class _Entry(Generic[S]):
    lock: threading.Lock = field(default_factory=threading.Lock)
    session: S | None = None
    users: int = 0
    over: bool = False  # its job has ended


class Sessions(Generic[S]):
    """The sessions used last. One is prepared by one thread while others that want it wait, and is never closed in use."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._entries: OrderedDict[str, _Entry[S]] = OrderedDict()

    @contextmanager
    def use(self, job_id: str, prepare: Callable[[], S]) -> Iterator[S]:
        """The job's session, prepared when there is none. Raises: whatever `prepare` does."""
        with self._lock:
            entry = self._entries.setdefault(job_id, _Entry())
            entry.users += 1
            self._entries.move_to_end(job_id)
        try:
            with entry.lock:
                if entry.session is None:
                    entry.session = prepare()
            yield entry.session
        finally:
            with self._lock:
                entry.users -= 1
                dropped = self._drop()
            for session in dropped:
                session.close()

    def forget(self, job_id: str) -> None:
        """Close the job's session, as soon as nobody uses it."""
        with self._lock:
            entry = self._entries.get(job_id)
            if entry is not None:
                entry.over = True
            dropped = self._drop()
        for session in dropped:
            session.close()

    def _drop(self) -> list[S]:
        """Take out what is too much, the longest unused first."""
        dropped = []
        for job_id, entry in list(self._entries.items()):
            held = [other.session for other in self._entries.values() if other.session is not None]
            light = sum(session.weight for session in held) <= _LIGHT and len(held) <= _MOST
            if entry.users:
                continue
            if entry.session is None:
                del self._entries[job_id]
            elif entry.over or (len(held) > KEPT and not light):
                del self._entries[job_id]
                dropped.append(entry.session)
        return dropped
