"""Which workers are dead, judged by what one of them can see; nothing is written here.

A worker of this machine whose process is gone, or whose number now belongs to another process, is dead at once. One
that lets no beat be seen for too long is dead too: of this machine it is killed first, since a stopped process keeps its
locks, and inside a SQLite transaction keeps every other writer out.

A beat counts by the moment at which we saw it change, on our own clock: clocks that jump or differ kill nobody. Neither
does a database that takes no writes for a while, for then our own beats fail as well, nor a time in which we did not look.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from worker.processes import Look, Process, look


@dataclass(frozen=True, slots=True)
class Beat:
    """A worker's row."""

    executor_id: str
    process: Process
    beat_at: float


@dataclass(frozen=True, slots=True)
class Dead:
    """A worker whose work is to be handed on; `kill` first where it says so."""

    executor_id: str
    process: Process
    kill: bool
    why: str


@dataclass(slots=True)
class _Seen:
    beat: Beat
    changed_at: float
    stopped_at: float | None = None


@dataclass(slots=True)
class Peers:
    """The view of the worker `executor_id`; `judge` is called about every `every` seconds."""

    executor_id: str
    machine: str
    dead_after: float
    every: float
    clock: Callable[[], float] = time.monotonic
    look: Look = look
    _seen: dict[str, _Seen] = field(default_factory=dict)
    _judged_at: float | None = None

    def judge(self, rows: Sequence[Beat] | None, beating: bool) -> list[Dead]:
        """The dead among `rows`; None when they could not be read, and those read last are looked at.

        `beating` says whether our own beats arrive.
        """
        now = self.clock()
        # We may have been stopped ourselves, or asleep with the machine: all that we missed proves nothing.
        overslept = self._judged_at is not None and now - self._judged_at > max(3 * self.every, 1.0)
        self._judged_at = now
        if rows is not None:
            self._note(rows, now)
        dead = []
        for seen in self._seen.values():
            if overslept or not beating:
                seen.changed_at = now
            if overslept:
                seen.stopped_at = None
            verdict = self._verdict(seen, now)
            if verdict is not None:
                dead.append(verdict)
        return dead

    def _note(self, rows: Sequence[Beat], now: float) -> None:
        others = {row.executor_id: row for row in rows if row.executor_id != self.executor_id}
        for executor_id in self._seen.keys() - others.keys():
            del self._seen[executor_id]
        for executor_id, row in others.items():
            seen = self._seen.get(executor_id)
            if seen is None:
                self._seen[executor_id] = _Seen(row, now)
            elif seen.beat.beat_at != row.beat_at:
                seen.beat, seen.changed_at = row, now

    def _verdict(self, seen: _Seen, now: float) -> Dead | None:
        beat, process = seen.beat, seen.beat.process
        here = process.machine == self.machine
        if here:
            status = self.look(process.pid)
            if status is None or status.ended or status.started != process.started:
                return Dead(beat.executor_id, process, False, "its process is gone")
            # Seen without the database: a stopped process may keep it shut, also for readers.
            if not status.stopped:
                seen.stopped_at = None
            elif seen.stopped_at is None:
                seen.stopped_at = now
            elif now - seen.stopped_at >= self.dead_after:
                return Dead(beat.executor_id, process, True, "its process is stopped")
        if now - seen.changed_at >= self.dead_after:
            return Dead(beat.executor_id, process, here, f"no beat for {self.dead_after:g} s")
        return None
