"""What the workflows work with, made once at start; and the one way in which a step answers."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

import structlog
from sqlalchemy.orm import Session

from ninfer_core.errors import NinferError
from service import admission, contents, metrics
from service.lanes import INTERACTIVE
from service.parts import Parts
from service.queue import Queue, job_workflow_id
from service.records import attempts, jobs, workers
from service.records.database import Database
from service.records.models import Base, Job
from service.records.rows import batches
from service.settings import Settings
from worker import plans
from worker.company import Company
from worker.comparing import Comparing, open_comparison
from worker.devices import Devices
from worker.errors import ContentMisread, LeftToOthers, MayPass, PlanChanged, RowMissing
from worker.lanes import Lanes
from worker.patience import passing, patiently
from worker.preparing import Drafted, Store, Verification, open_draft, open_verification
from worker.retries import code_of, persistently, told
from worker.sessions import Sessions
from worker.watch import Cancelled, Ticket, Watch, goes_on

log = structlog.get_logger()

T = TypeVar("T")
Row = TypeVar("Row", bound=Base)
Given = ParamSpec("Given")
Answer = dict[str, Any]  # of a step: a few numbers and words, for the engine keeps it

ENDED: Answer = {"ended": True}  # the job has come to its end; nothing is left to do
DONE: Answer = {"ended": False}
INTERNAL = "internal"
GIVEN_UP = "gave_up"
DEADLINE = "deadline_exceeded"
_LONGEST = 2_000
_ROWS = 2_000  # in one transaction: on SQLite every other writer waits for it, heartbeats too


class Steps(Protocol):
    """The durable engine, as a workflow sees it."""

    def step(self, name: str, work: Callable[[], Answer]) -> Answer:
        """Do `work`, or give the answer that it once gave; a lost database is waited for and `work` done again."""
        ...


@dataclass(frozen=True, slots=True)
class Context:
    """Of one worker process; the workflow of a job has a copy of its own, whose writes are those of one epoch of the job."""

    settings: Settings
    store: Store
    queue: Queue
    verifications: Sessions[Verification]
    drafts: Sessions[Drafted]
    comparisons: Sessions[Comparing]
    shards: Lanes  # `settings.threads` threads: their buffers are what a worker's memory goes into
    devices: Devices = field(default_factory=Devices)
    company: Company = field(default_factory=Company)
    epoch: int = 0

    def at(self, epoch: int) -> "Context":
        """The same for an epoch of a job: once the job is in another one, nothing is written any more."""
        return replace(self, epoch=epoch)

    @property
    def database(self) -> Database:
        """The records."""
        return self.store.database

    @property
    def watch(self) -> Watch:
        """Who is told to stop, and who tells how far it is."""
        return self.store.watch

    @property
    def parts(self) -> Parts:
        """What use cases of the service work with."""
        return Parts(self.settings, self.database, self.store.blobs, self.queue)

    def ticket(self, job_id: str, number: int | None = None) -> AbstractContextManager[Ticket]:
        """See `Watch.ticket`."""
        return self.watch.ticket(job_id, number, self.epoch)

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
        with self.verifications.use(
            self._session(job.id), lambda: open_verification(self.store, job.id)
        ) as verification:
            plans.require(job, verification.plan)
            yield verification

    @contextmanager
    def drafted(self, job: Job) -> Iterator[Drafted]:
        """The job's conversion, planned once. Raises: PlanChanged; as `open_draft`."""
        with self.drafts.use(self._session(job.id), lambda: open_draft(self.store, job.id)) as drafted:
            if drafted.draft is not None:
                plans.require(job, drafted.plan)
            yield drafted

    @contextmanager
    def comparing(self, job: Job) -> Iterator[Comparing]:
        """The job's comparison, prepared once. Raises: PlanChanged; as `open_comparison`."""
        with self.comparisons.use(
            self._session(job.id), lambda: open_comparison(self.store, job.id)
        ) as comparing:
            plans.require(job, comparing.plan)
            yield comparing

    def prepare(
        self, project_id: str, sha256: str, size: int, *, whole: int | None = None, has_room: bool = False
    ) -> None:
        """See `contents.prepare`. Raises: QuotaExceeded."""
        contents.prepare(
            self.database, self.settings, project_id, sha256, size, whole=whole, has_room=has_room
        )

    def hold(self, session: Session, project_id: str, sha256: str, size: int) -> bool:
        """See `contents.hold`. Raises: QuotaExceeded, Collected."""
        return contents.hold(session, self.store.blobs, self.settings, project_id, sha256, size)

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
                if not goes_on(jobs.locked(session, job_id), self.epoch):
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

        What may pass is tried again; a job whose plan is not ours is begun anew. Raises: Draining, LeftToOthers, and
        whatever a database raises that is away: then `work` is to be done again.
        """

        def note(attempt: int, code: str, detail: str, seconds: float) -> None:
            log.warning("job.retry", job=job_id, attempt=attempt, seconds=seconds, code=code, error=detail)
            metrics.RETRIES.labels(why=code).inc()
            self.write(job_id, attempts.retry, job_id, attempt, code, detail, seconds)

        def check() -> None:
            self.watch.require_staying()
            ticket.check()

        try:
            with self.ticket(job_id) as ticket:
                return persistently(work, self.settings.max_attempts, note, check)
        except Cancelled:
            return self.stopped(job_id)
        except (PlanChanged, ContentMisread) as error:
            return self.begin_anew(job_id, error.code, str(error))
        except (NinferError, MayPass) as error:
            log.info("job.failed", job=job_id, error=str(error))
            return self.fail(job_id, *code_of(error))
        except MemoryError:
            log.exception("job.out_of_memory", job=job_id)
            return self.fail(job_id, INTERNAL, "there is not enough memory")
        except Exception as error:
            if passing(error):
                raise
            log.exception("job.broke", job=job_id)
            return self.fail(job_id, INTERNAL, told(error))

    def begin_anew(self, job_id: str, code: str, reason: str) -> Answer:
        """Let the job begin again from nothing, unless a newer version works on it or it has begun too often.

        Raises: LeftToOthers.
        """
        with self.database.write() as session:
            job = jobs.locked(session, job_id)
            if job is None or job.state not in jobs.OPEN or job.epoch != self.epoch:
                return ENDED
            if plans.version(job.planned_by) > plans.OURS and plans.left_to(workers.all(session)):
                raise LeftToOthers
            if self.epoch + 1 >= self.settings.max_attempts:
                detail = f"begun {self.epoch + 1} times; the last time: {reason}"
                jobs.finish(session, job_id, "error", error={"code": code, "detail": detail[:_LONGEST]})
                return ENDED
            attempts.begin_anew(session, job_id, self.epoch, reason)
        log.warning("job.begun_anew", job=job_id, epoch=job.epoch, reason=reason)
        metrics.RETRIES.labels(why=code).inc()
        admission.put_in_line(self.parts, [job])
        return ENDED

    def fail(self, job_id: str, code: str, detail: str) -> Answer:
        """End the job with state `error`, unless it has ended."""
        with self.database.write() as session:
            error = {"code": code, "detail": detail[:_LONGEST]}
            jobs.finish(session, job_id, "error", error=error, epoch=self.epoch)
        return ENDED

    def stopped(self, job_id: str) -> Answer:
        """End the job as cancelled, unless it has ended otherwise or goes on in another epoch."""
        with self.database.write() as session:
            jobs.finish(session, job_id, "cancelled", epoch=self.epoch)
        return ENDED

    def forget(self, job_id: str) -> None:
        """Let go of what is kept for a job that has ended."""
        self.verifications.forget(self._session(job_id))
        self.drafts.forget(self._session(job_id))
        self.comparisons.forget(self._session(job_id))

    def on_shard_thread(
        self, work: Callable[[], T], lane: str = INTERACTIVE, *, alone: bool = False, long: bool = False
    ) -> T:
        """Do `work` on one of the threads for shards, in its lane's turn; `alone` when nothing else runs on them."""

        return self.shards.run(lane, lambda: self._in_company(work, alone), long=long)

    def little(self, work: Callable[[], T], lane: str) -> T:
        """Do `work` that needs next to nothing: for interactive work here and now, or it would wait for whole shards to end."""
        if lane != INTERACTIVE:
            return self.on_shard_thread(work, lane)
        with self.shards.beside():
            return self._in_company(work)

    def _in_company(self, work: Callable[[], T], alone: bool = False) -> T:
        with self.company.joined(alone, self.watch.require_staying):
            self.watch.require_staying()
            return work()

    def _session(self, job_id: str) -> str:
        return job_workflow_id(job_id, self.epoch)
