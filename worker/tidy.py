"""What may wait: memory of what is over, content that nothing refers to, uploads that broke off, projects that are deleted.

Every worker clears its own machine. What all of them share one does at a time, under a lease; two would do no harm.
"""

import secrets
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path

import structlog
from sqlalchemy.exc import SQLAlchemyError

from ninfer_core.errors import NinferError
from service import retention
from service.records import jobs, leases
from service.records.types import now
from service.uploads import clearing
from worker.context import Context

log = structlog.get_logger()

_PARTIAL = ".partial"
_PARTIAL_SECONDS = 24 * 3600.0  # an upload that nobody has written to for so long is over
_LEASE = "tidy"
_LEASE_SECONDS = 120.0
_EVENTS_LEASE, _EVENTS_SECONDS = "tidy events", 24 * 3600.0


class LeaseLost(Exception):
    """Another worker tidies by now: this one was silent for too long."""


def tidy(context: Context) -> None:
    """All of it, once. A part that fails is left for the next time, and keeps no other from being done."""
    scratch, check = context.store.blobs.scratch, context.watch.check
    _guarded("work", lambda: _clear_work(context))
    _guarded("files", lambda: clearing.clear_files(context.database, scratch, check))
    _clear_incoming(scratch / "incoming")
    with suppress(LeaseLost):
        turn = Turn(context)
        if not turn.take():
            return
        try:
            for name, step in _shared(context, turn.check):
                turn.check()
                _guarded(name, step)
        finally:
            turn.end()


def _shared(context: Context, check: Callable[[], None]) -> list[tuple[str, Callable[[], object]]]:
    settings, database, blobs = context.settings, context.database, context.store.blobs
    moment = now()

    def ago(seconds: float) -> datetime:
        return moment - timedelta(seconds=seconds)

    return [
        ("engine", lambda: _forget_engine(context, check)),
        ("uploads", lambda: clearing.clear(database, blobs, settings, check)),
        ("projects", lambda: retention.erase_deleted(database, check)),
        ("events", lambda: _forget_events(context, ago(settings.keep_events_seconds), check)),
        ("contents", lambda: retention.collect(database, ago(settings.keep_unreferenced_seconds), check)),
        ("bytes", lambda: retention.purge(database, blobs, moment - retention.GRACE, check)),
    ]


class Turn:
    """This worker's turn to tidy what all share, renewed on the way."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._holder = secrets.token_hex(16)
        self._renewed = 0.0

    def take(self) -> bool:
        """Whether it is its turn, for some time from now."""
        self._renewed = time.monotonic()
        with self._context.database.write() as session:
            return leases.take(session, _LEASE, self._holder, _LEASE_SECONDS)

    def check(self) -> None:
        """Raises: LeaseLost, Draining."""
        self._context.watch.check()
        if time.monotonic() - self._renewed > _LEASE_SECONDS / 4 and not self.take():
            raise LeaseLost

    def end(self) -> None:
        """Let another one have it."""
        with suppress(SQLAlchemyError), self._context.database.write() as session:
            leases.release(session, _LEASE, self._holder)


def _guarded(name: str, step: Callable[[], object]) -> None:
    try:
        done = step()
    except (SQLAlchemyError, NinferError, OSError) as error:
        log.warning("tidy.failed", part=name, error=str(error))
        return
    if done:
        log.info("tidy.done", part=name, count=len(done) if isinstance(done, list) else done)


def _forget_engine(context: Context, check: Callable[[], None]) -> int:
    """What the engine remembers of work that has ended; our own tables have all of it."""
    count = 0
    while gone := context.queue.forget(context.settings.keep_engine_seconds):
        count += gone
        check()
    return count


def _forget_events(context: Context, before: datetime, check: Callable[[], None]) -> int:
    """Once a day: it goes through all jobs there ever were. The lease is not given back, and so says when it was."""
    with context.database.write() as session:
        if not leases.take(session, _EVENTS_LEASE, secrets.token_hex(16), _EVENTS_SECONDS):
            return 0
    return retention.forget_events(context.database, before, check)


def _clear_work(context: Context) -> None:
    """Folders of jobs that are over."""
    for name in context.store.blobs.works():
        context.watch.check()
        with context.database.read() as session:
            job = jobs.get(session, name)
        # A job is stored before anybody makes its folder: where there is none, there never will be.
        if job is None or job.state not in jobs.OPEN:
            context.store.blobs.clear_work(name)


def _clear_incoming(folder: Path) -> None:
    """Only where files cannot be nameless does anything lie here; see `service.blobs`."""
    oldest = time.time() - _PARTIAL_SECONDS
    with suppress(OSError):
        for path in folder.iterdir():
            with suppress(OSError):
                if path.name.endswith(_PARTIAL) and path.lstat().st_mtime < oldest:
                    path.unlink()
