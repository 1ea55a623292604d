"""What fell between two chairs: jobs the engine never heard of, jobs it gave up, work of workers nobody remembers.

Every worker does this every few seconds; doing it twice, or at once, changes nothing.
"""

import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Protocol

import structlog

from service.queue import ENDED, GAVE_UP, LIST_OBJECTS, listing_id
from service.records import content, jobs, workers
from worker.context import GIVEN_UP, INTERNAL, Context

log = structlog.get_logger()

_AT_ONCE = 1_000
_STRAY_TIMES = 6
_PARTIAL = ".partial"
_PARTIAL_SECONDS = 24 * 3600.0  # an upload that nobody has written to for so long is over
KEPT_SECONDS = 24 * 3600.0  # what the engine remembers of work that has ended; our own tables have all of it


class Engine(Protocol):
    """What the sweep asks of the engine that runs here."""

    executor_id: str

    def runs(self, id: str) -> bool:  # noqa: A002  the engine's own word
        """Whether a thread of this process works on a workflow."""
        ...

    def hand_back(self, executor_id: str) -> None:
        """Put everything that a worker has begun and not ended back in line."""
        ...


class Sweep:
    """The sweep of one worker; it remembers what looked wrong the last times."""

    def __init__(self, context: Context, engine: Engine) -> None:
        self._context, self._engine = context, engine
        self._strays: Counter[str] = Counter()
        self._seen_to = ""

    def __call__(self) -> None:
        """All of it, once. Raises: SQLAlchemyError."""
        _jobs(self._context)
        self._seen_to = _listings(self._context, self._seen_to)
        _orphans(self._context, self._engine.hand_back)
        self._put_back_strays()

    def _put_back_strays(self) -> None:
        """What this worker claimed and nothing here works on: the database failed between the two."""
        begun = self._context.queue.begun(self._engine.executor_id)
        idle = {id_ for id_ in begun if not self._engine.runs(id_)}
        for id_ in [known for known in self._strays if known not in idle]:
            del self._strays[id_]
        self._strays.update(idle)
        # Seen that often, it is not just about to begin, or to be noted as ended.
        for id_ in [known for known, times in self._strays.items() if times >= _STRAY_TIMES]:
            log.warning("workflow.stray", id=id_)
            self._context.queue.again(id_)
            del self._strays[id_]


def tidy(context: Context) -> None:
    """What may wait: the engine's memory of ended work, folders of jobs that are over, uploads that broke off."""
    while context.queue.forget(KEPT_SECONDS):
        context.watch.check()
    _clear_work(context)
    _clear_incoming(context.store.blobs.scratch / "incoming")


def _clear_work(context: Context) -> None:
    with suppress(OSError):
        for name in context.store.blobs.works():
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


def _jobs(context: Context) -> None:
    with context.database.read() as session:
        waiting = jobs.open_jobs(session, _AT_ONCE)
    said = context.queue.status([job.id for job in waiting])
    for job in waiting:
        status = said[job.id]
        if status is None:
            log.info("job.put_in_line", job=job.id)
            context.queue.enqueue(job.type, job.id, job.id)
        elif status in ENDED:
            # Asked before the engine was: it may have ended well in between, and then this changes nothing.
            if status == GAVE_UP:
                context.fail(job.id, GIVEN_UP, "the job ended its worker too often")
            else:
                context.fail(job.id, INTERNAL, "the job ended without a result; the worker's log says why")


def _listings(context: Context, after: str) -> str:
    """Artifacts whose listing the engine does not know; where to begin the next time, so that all get their turn.

    One that it has ended could not be read. It has had its attempts, and more of them once the engine forgets these.
    """
    with context.database.read() as session:
        waiting = content.unlisted(session, _AT_ONCE, after)
    said = context.queue.status([listing_id(artifact.id) for artifact in waiting])
    for artifact in waiting:
        if said[listing_id(artifact.id)] is None:
            context.queue.enqueue(LIST_OBJECTS, listing_id(artifact.id), artifact.id)
    return waiting[-1].id if len(waiting) == _AT_ONCE else ""


def _orphans(context: Context, hand_back: Callable[[str], None]) -> None:
    """Work begun by a worker without a row; asked first, since a worker writes its row before it begins anything."""
    begun = context.queue.executors()
    with context.database.read() as session:
        known = {row.executor_id for row in workers.all(session)}
    for executor_id in sorted(begun - known):
        log.warning("worker.unknown", executor=executor_id)
        hand_back(executor_id)
