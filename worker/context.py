"""What the workflows work with, made once at start; and the one way in which a step answers."""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

import structlog
from sqlalchemy.exc import DBAPIError
from sqlalchemy.orm import Session

from ninfer_core.errors import NinferError
from service.queue import Queue
from service.records import jobs
from service.records.database import Database
from service.records.models import Base, Job
from service.records.rows import batches
from service.settings import Settings
from worker import plans
from worker.comparing import Comparing, open_comparison
from worker.devices import Devices
from worker.errors import RowMissing
from worker.patience import passing, patiently
from worker.preparing import Drafted, Store, Verification, open_draft, open_verification
from worker.sessions import Sessions
from worker.watch import Cancelled, Watch, goes_on

log = structlog.get_logger()

T = TypeVar("T")
Row = TypeVar("Row", bound=Base)
Given = ParamSpec("Given")
Answer = dict[str, Any]  # of a step: a few numbers and words, for the engine keeps it

ENDED: Answer = {"ended": True}  # the job has come to its end; nothing is left to do
DONE: Answer = {"ended": False}
INTERNAL = "internal"
GIVEN_UP = "gave_up"
_LONGEST = 2_000
_ROWS = 2_000  # in one transaction: on SQLite every other writer waits for it, heartbeats too


class Steps(Protocol):
    """The durable engine, as a workflow sees it."""

    def step(self, name: str, work: Callable[[], Answer]) -> Answer:
        """Do `work`, or give the answer that it once gave; a lost database is waited for and `work` done again."""
        ...


@dataclass(frozen=True, slots=True)
class Context:
    """Of one worker process."""

    settings: Settings
    store: Store
    queue: Queue
    verifications: Sessions[Verification]
    drafts: Sessions[Drafted]
    comparisons: Sessions[Comparing]
    shards: (
        ThreadPoolExecutor  # `settings.threads` threads: their buffers are what a worker's memory goes into
    )
    devices: Devices = field(default_factory=Devices)

    @property
    def database(self) -> Database:
        """The records."""
        return self.store.database

    @property
    def watch(self) -> Watch:
        """Who is told to stop, and who tells how far it is."""
        return self.store.watch

    def job(self, job_id: str) -> Job:
        """The job as it is now. Raises: RowMissing."""
        with self.database.read() as session:
            job = jobs.get(session, job_id)
        if job is None:
            raise RowMissing("job", job_id)
        return job

    @contextmanager
    def verification(self, job: Job) -> Iterator[Verification]:
        """The job's verification, prepared once. Raises: PlanChanged; as `open_verification`."""
        with self.verifications.use(job.id, lambda: open_verification(self.store, job.id)) as verification:
            plans.require(job, verification.plan)
            yield verification

    @contextmanager
    def drafted(self, job: Job) -> Iterator[Drafted]:
        """The job's conversion, planned once. Raises: PlanChanged; as `open_draft`."""
        with self.drafts.use(job.id, lambda: open_draft(self.store, job.id)) as drafted:
            if drafted.draft is not None:
                plans.require(job, drafted.plan)
            yield drafted

    @contextmanager
    def comparing(self, job: Job) -> Iterator[Comparing]:
        """The job's comparison, prepared once. Raises: PlanChanged; as `open_comparison`."""
        with self.comparisons.use(job.id, lambda: open_comparison(self.store, job.id)) as comparing:
            plans.require(job, comparing.plan)
            yield comparing

    def write(
        self,
        job_id: str,
        work: Callable[Concatenate[Session, Given], T],
        *args: Given.args,
        **kwargs: Given.kwargs,
    ) -> T:
        """Do `work` in a transaction that finds the job open and keeps it so; again, when the database was away.

        Raises: Cancelled, Draining.
        """

        def once() -> T:
            with self.database.write() as session:
                if not goes_on(jobs.locked(session, job_id)):
                    raise Cancelled
                return work(session, *args, **kwargs)

        return patiently(once, self.watch.check)

    def write_rows(
        self, job_id: str, rows: Iterable[Row], save: Callable[[Session, list[Row]], object]
    ) -> None:
        """Let `save` store the rows of an open job, some in each transaction; only these are in memory at a time.

        Raises: Cancelled, Draining.
        """
        for batch in batches(rows, _ROWS):
            self.watch.check()
            self.write(job_id, save, batch)

    def answering(self, job_id: str, work: Callable[[], Answer]) -> Answer:
        """The answer of `work`; where there can be none, the job is ended with the reason, and that is the answer.

        Raises: Draining, and whatever a database raises that is away: then `work` is to be done again.
        """
        try:
            return work()
        except Cancelled:
            return self.stopped(job_id)
        except NinferError as error:
            return self.fail(job_id, error.code, str(error))
        except MemoryError:
            log.exception("job.out_of_memory", job=job_id)
            return self.fail(job_id, INTERNAL, "there is not enough memory")
        except Exception as error:
            if passing(error):
                raise
            log.exception("job.broke", job=job_id)
            # Without the statement and its values, which may be anything.
            said = error.orig if isinstance(error, DBAPIError) else error
            return self.fail(job_id, INTERNAL, f"{type(error).__name__}: {said}")

    def fail(self, job_id: str, code: str, detail: str) -> Answer:
        """End the job with state `error`, unless it has ended."""
        with self.database.write() as session:
            jobs.finish(session, job_id, "error", error={"code": code, "detail": detail[:_LONGEST]})
        return ENDED

    def stopped(self, job_id: str) -> Answer:
        """End the job as cancelled, unless it has ended otherwise."""
        with self.database.write() as session:
            jobs.finish(session, job_id, "cancelled")
        return ENDED

    def forget(self, job_id: str) -> None:
        """Let go of what is kept for a job that has ended."""
        self.verifications.forget(job_id)
        self.drafts.forget(job_id)
        self.comparisons.forget(job_id)

    def on_shard_thread(self, work: Callable[[], T]) -> T:
        """Do `work` on one of the threads for shards, as soon as one is free."""
        return self.shards.submit(work).result()
