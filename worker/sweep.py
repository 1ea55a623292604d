"""What fell between two chairs: jobs the engine never heard of or gave up, jobs out of time, work of workers nobody remembers.

Every worker does this every few seconds; doing it twice, or at once, changes nothing.
"""

from collections import Counter
from contextlib import suppress
from typing import Protocol

import structlog
from sqlalchemy.exc import SQLAlchemyError

from service import admission, campaigning
from service.queue import ENDED, LIST_OBJECTS, job_workflow_id, listing_id, shard_of
from service.records import attempts, content, jobs, workers
from worker.context import DEADLINE, INTERNAL, Context
from worker.errors import LeftToOthers

log = structlog.get_logger()

_AT_ONCE = 1_000
_STRAY_TIMES = 6


class Engine(Protocol):
    """What the sweep asks of the engine that runs here."""

    executor_id: str
    left: set[str]  # workflows that were begun here and are for a newer version to run

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
        self._seen_to = self._jobs_seen_to = ""

    def __call__(self) -> None:
        """All of it, once; what fails keeps nothing else from being done. Raises: Draining."""
        for part in (
            self._overdue,
            self._jobs,
            lambda: admission.admit_waiting(self._context.parts),
            lambda: campaigning.advance(self._context.parts),
            self._listings,
            self._orphans,
            self._put_back_strays,
        ):
            try:
                part()
            except SQLAlchemyError as error:
                log.warning("sweep.failed", error=str(error))
            except Exception:
                log.exception("sweep.broke")

    def _put_back_strays(self) -> None:
        """What this worker claimed and nothing here works on: the database failed between the two."""
        begun = self._context.queue.begun(self._engine.executor_id)
        idle = {id_ for id_ in begun if not self._engine.runs(id_)}
        for id_ in [known for known in self._strays if known not in idle]:
            del self._strays[id_]
        self._strays.update(idle)
        for id_ in self._engine.left & idle:
            self._engine.left.discard(id_)
            self._context.queue.again(id_)
        # Seen that often, it is not just about to begin, or to be noted as ended.
        for id_ in [known for known, times in self._strays.items() if times >= _STRAY_TIMES]:
            log.warning("workflow.stray", id=id_)
            self._context.queue.again(id_)
            del self._strays[id_]

    def _overdue(self) -> None:
        """End the jobs whose deadline is over; their work sees it, and stops."""
        with self._context.database.read() as session:
            late = attempts.overdue(session, _AT_ONCE)
        for job_id, deadline in late:
            detail = f"it was to be done by {deadline.isoformat(timespec='seconds')}"
            with self._context.database.write() as session:
                jobs.finish(session, job_id, "error", error={"code": DEADLINE, "detail": detail})

    def _jobs(self) -> None:
        """Admitted jobs, some at a time, so that all get their turn."""
        with self._context.database.read() as session:
            waiting = jobs.open_jobs(session, _AT_ONCE, self._jobs_seen_to)
        self._jobs_seen_to = waiting[-1].id if len(waiting) == _AT_ONCE else ""
        ids = {job.id: job_workflow_id(job.id, job.epoch) for job in waiting}
        said = self._context.queue.status(list(ids.values()))
        for job in waiting:
            status = said[ids[job.id]]
            if status is None:
                log.info("job.put_in_line", job=job.id)
                admission.put_in_line(self._context.parts, [job])
            elif status in ENDED:
                # Asked before the engine was: it may have ended well in between, and then this changes nothing.
                with suppress(LeftToOthers):
                    reason = f"the engine ended the job without a result ({status})"
                    self._context.at(job.epoch).begin_anew(job.id, INTERNAL, reason)

    def _listings(self) -> None:
        """Artifacts whose listing the engine does not know; some at a time, so that all get their turn.

        One that it has ended could not be read. It has had its attempts, and more of them once the engine forgets these.
        """
        queue = self._context.queue
        with self._context.database.read() as session:
            waiting = content.unlisted(session, _AT_ONCE, self._seen_to)
        said = queue.status([listing_id(artifact.id) for artifact in waiting])
        for artifact in waiting:
            if said[listing_id(artifact.id)] is None:
                queue.enqueue(LIST_OBJECTS, listing_id(artifact.id), artifact.id)
        self._seen_to = waiting[-1].id if len(waiting) == _AT_ONCE else ""

    def _orphans(self) -> None:
        """Work begun by a worker without a row; asked first, since a worker writes its row before it begins anything."""
        begun = self._context.queue.executors()
        with self._context.database.read() as session:
            known = {row.executor_id for row in workers.all(session)}
        for executor_id in sorted(begun - known):
            log.warning("worker.unknown", executor=executor_id)
            hand_on(self._context, self._engine, executor_id, "its worker left no word")


def hand_on(context: Context, engine: Engine, executor_id: str, why: str) -> None:
    """Put the work of a dead worker back in line, and note on the shards that it had begun what is known of its end."""
    for found in filter(None, map(shard_of, context.queue.begun(executor_id))):
        job_id, number, epoch = found
        with context.database.write() as session:
            attempts.lose_shard(session, job_id, number, epoch, why)
    engine.hand_back(executor_id)
