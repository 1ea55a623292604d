"""The durable engine as this worker runs it. With `service.queue` the only module that knows which engine it is."""

import functools
import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import structlog
from dbos import DBOS, DBOSConfig, DBOSPortableJSONSerializer
from sqlalchemy.exc import SQLAlchemyError

from service import admission, tracing
from service.parts import Parts
from service.queue import (
    APPLICATION,
    APPLICATION_VERSION,
    COMPARE,
    COMPARE_SHARD,
    CONVERT,
    CONVERT_SHARD,
    IMPORT,
    LIST_OBJECTS,
    QUEUE_JOBS,
    QUEUE_LISTINGS,
    QUEUE_SHARDS,
    QUEUE_TRANSFERS,
    QUEUES,
    SCHEME,
    SELFCHECK,
    VERIFY,
    VERIFY_SHARD,
    keep_journal,
    lane_queues,
)
from worker import measures
from worker.context import Answer, Context
from worker.errors import LeftToOthers
from worker.patience import passing, patiently
from worker.workflows.compare import compare, compare_shard
from worker.workflows.convert import convert, convert_shard
from worker.workflows.imports import import_content
from worker.workflows.listing import list_objects
from worker.workflows.scheme import scheme
from worker.workflows.selfcheck import selfcheck
from worker.workflows.verify import verify, verify_shard

log = structlog.get_logger()

# Jobs of one lane that wait for their shards here at a time. Bulk work needs no more than keeps the threads busy.
_PARENTS, _BULK_PARENTS = 8, 4
_TRANSFERS = 2
_OF_JOBS = (QUEUE_JOBS, QUEUE_TRANSFERS)
# Between two looks at a queue: where work has just come, where a person waits, and elsewhere. A look costs a processor
# about a millisecond, and there are six queues.
_BUSY_SECONDS, _POLL_SECONDS, _CALM_SECONDS = 0.05, 0.2, 0.5
_READ_SECONDS = 30.0  # that the engine's row of a queue is believed
_BUSY_FOR = 1.0  # seconds after the last piece
_JOIN_SECONDS = 5.0
# A worker's end is counted by what it had really begun, in our own tables; the engine's count is of all that it had claimed.
_ATTEMPTS = 1_000_000
_LISTING_ATTEMPTS = 20


class Unrecorded(BaseException):
    """A step that is done and that the engine could not note: its workflow stays begun, and the sweep puts it back."""


class Engine:
    """Runs workflows from `launch` on, until `stop_claiming`."""

    def __init__(self, engine_url: str, executor_id: str, threads: int, dead_after: float) -> None:
        self.executor_id = executor_id
        jobs, bulk_jobs = lane_queues(QUEUE_JOBS)
        self._places = {
            jobs: _PARENTS,
            bulk_jobs: _BULK_PARENTS,
            **dict.fromkeys(lane_queues(QUEUE_SHARDS), threads),
            QUEUE_LISTINGS: 1,
            QUEUE_TRANSFERS: _TRANSFERS,
        }
        self._check: Callable[[], None] = lambda: None
        self._parts: Parts | None = None
        self._ahead: Callable[[], int] = lambda: 0  # shards claimed beyond what there are threads for
        self._came: dict[str, float] = {}  # by queue, when we last claimed something
        self._running: Counter[str] = Counter()
        self._changed = threading.Condition()
        self.left: set[str] = set()  # workflows that a newer version is to run
        _quieten()
        config: DBOSConfig = {
            "name": APPLICATION,
            "system_database_url": engine_url,
            "application_version": APPLICATION_VERSION,
            "executor_id": executor_id,
            "serializer": DBOSPortableJSONSerializer(),
            "log_level": "WARNING",
            "enable_otlp": False,
            # On PostgreSQL: what a worker that fell silent elsewhere keeps locked is let go when it counts as dead.
            "sys_db_idle_transaction_timeout_sec": dead_after,
            "notification_listener_polling_interval_sec": 5.0,  # nothing here waits for notifications
            "scheduler_polling_interval_sec": 600.0,
        }
        self._dbos = DBOS(config=config)

    def launch(self, context: Context) -> None:
        """Take up work. Raises: SQLAlchemyError."""
        self._register(VERIFY, _ATTEMPTS, functools.partial(verify, context, self))
        self._register(CONVERT, _ATTEMPTS, functools.partial(convert, context, self))
        self._register(COMPARE, _ATTEMPTS, functools.partial(compare, context, self))
        self._register(SELFCHECK, _ATTEMPTS, functools.partial(selfcheck, context, self))
        self._register(SCHEME, _ATTEMPTS, functools.partial(scheme, context, self))
        self._register(IMPORT, _ATTEMPTS, functools.partial(import_content, context, self))
        self._register(LIST_OBJECTS, _LISTING_ATTEMPTS, functools.partial(list_objects, context, self))
        self._register(VERIFY_SHARD, _ATTEMPTS, functools.partial(verify_shard, context, self))
        self._register(CONVERT_SHARD, _ATTEMPTS, functools.partial(convert_shard, context, self))
        self._register(COMPARE_SHARD, _ATTEMPTS, functools.partial(compare_shard, context, self))
        self._check, self._parts = context.watch.check, context.parts
        self._ahead = lambda: context.shards.ahead
        DBOS.launch()
        keep_journal(self._dbos._sys_db.engine)
        self._bound_claims()
        self._look_often_where_work_comes()
        for queue in self._places:
            DBOS.register_queue(
                queue,
                worker_concurrency=1,  # the same for every worker; `_bound_claims` knows better
                polling_interval_sec=_POLL_SECONDS,  # and this too
                on_conflict="always_update",
            )

    def step(self, name: str, work: Callable[[], Answer]) -> Answer:
        """See `Steps.step`."""
        # Waited for in here, and not by the engine's own retries: these have an end, and then the job ends with them.
        try:
            with tracing.span(f"step {name}"):
                return DBOS.run_step({"name": name}, lambda: patiently(work, self._check))
        except Exception as error:
            if not passing(error):
                raise
            # The engine waits for its database as long as it takes, but not for what it does not recognise as such.
            log.warning("step.unrecorded", step=name, error=str(error))
            raise Unrecorded from error

    def stop_claiming(self) -> None:
        """Begin nothing any more."""
        for event in self._dbos.background_thread_stop_events:
            event.set()
        end = time.monotonic() + _JOIN_SECONDS  # for all of them: each may wait for its database
        for thread in threading.enumerate():
            if thread.name.startswith("queue-worker-"):
                thread.join(max(0.0, end - time.monotonic()))

    def wait_idle(self, seconds: float) -> bool:
        """Whether, within this time, nothing was running."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._running, seconds)

    def runs(self, id: str) -> bool:  # noqa: A002  the engine's own word
        """Whether a thread of this process works on a workflow."""
        with self._changed:
            return id in self._running

    def hand_back(self, executor_id: str) -> None:
        """Put everything that a worker has begun and not ended back in line; it must be dead, or about to end."""
        # Private, so called here alone; the version is pinned, and tests/worker kills and stops workers to hold it to
        # what it does in 3.4.0: conditional on the executor, back into the queue it came from, with a new owner id
        # that keeps what a late waker still writes out of the engine's tables.
        DBOS._recover_pending_workflows([executor_id])

    def _bound_claims(self) -> None:
        """Let this worker claim what it has places for, whatever other workers have."""
        # The engine has one row for a queue, bounds included, which every worker reads again before each look: with
        # `threads` in it, the worker that wrote last would throttle or flood all others. There is no bound of a worker's
        # own in 3.4.0, so what this one reads is given its places here; the version is pinned, and tests/worker holds
        # two workers of different size to it. Should it ever be passed by, each claims one shard at a time.
        database = self._dbos._sys_db
        read = database.get_queue
        known: dict[str, tuple[float, Any]] = {}  # a row changes when a worker starts, and then to the same

        def get_queue(name: str, **options: Any) -> Any:
            read_at, queue = known.get(name, (-_READ_SECONDS, None))
            if queue is None or time.monotonic() - read_at > _READ_SECONDS:
                queue = read(name, **options)
                known[name] = (time.monotonic(), queue)
            if queue is not None:
                queue._worker_concurrency = self._room(name, queue._worker_concurrency)
                queue._polling_interval_sec = self._pause(name)
            return queue

        vars(database)["get_queue"] = get_queue

    def _look_often_where_work_comes(self) -> None:
        """Note when a queue had something for us, for the pause until the next look at it; see `_bound_claims`."""
        database = self._dbos._sys_db
        claim = database.start_queued_workflows

        def start_queued_workflows(queue: Any, *args: Any, **options: Any) -> Any:
            # The engine would ask at each look whether ours is the latest version, for work that has none; all of ours has.
            found = claim(queue, *args, **{**options, "is_latest_version": True})
            if found[0]:
                self._came[queue.name] = time.monotonic()
            return found

        vars(database)["start_queued_workflows"] = start_queued_workflows

    def _room(self, queue: str, otherwise: int | None) -> int | None:
        """What this worker may have of a queue at a time; of shards more than it has threads, so that none waits for a look."""
        if queue in lane_queues(QUEUE_SHARDS):
            return self._places[queue] + self._ahead()
        return self._places.get(queue, otherwise)

    def _pause(self, queue: str) -> float:
        if time.monotonic() - self._came.get(queue, -_BUSY_FOR) < _BUSY_FOR:
            return _BUSY_SECONDS
        return _POLL_SECONDS if queue in (QUEUE_JOBS, QUEUE_SHARDS) else _CALM_SECONDS

    def _register(self, name: str, attempts: int, function: Callable[..., None]) -> None:
        @DBOS.workflow(name=name, max_recovery_attempts=attempts)
        def workflow(*args: str | int) -> None:
            with self._counted() as id_, measures.workflow(name, *args):
                try:
                    function(*args)
                except LeftToOthers:
                    self.left.add(id_)
                    raise
                if QUEUES[name] in _OF_JOBS and self._parts is not None:
                    measures.ended(self._parts.database, str(args[0]))
                    self._admit()

    def _admit(self) -> None:
        """Let others have the place that a job of their project has left."""
        if self._parts is None:
            return
        try:
            admission.admit_waiting(self._parts)
        except SQLAlchemyError as error:  # the sweep does it then
            log.warning("admission.failed", error=str(error))

    @contextmanager
    def _counted(self) -> Iterator[str]:
        id_ = DBOS.workflow_id or ""
        with self._changed:
            self._running[id_] += 1
        try:
            yield id_
        finally:
            with self._changed:
                self._running[id_] -= 1
                if not self._running[id_]:
                    del self._running[id_]
                self._changed.notify_all()


def _quieten() -> None:
    """Let the engine log as everything here does."""
    logger = logging.getLogger("dbos")
    logger.addHandler(logging.NullHandler())  # or it would write to standard error by itself
    logger.propagate = True
