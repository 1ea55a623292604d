"""What the workflows work with, made once at start; and the one way in which a step answers."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import structlog
from sqlalchemy.exc import DBAPIError

from ninfer_core.errors import NinferError
from service.queue import Queue
from service.records import jobs
from service.records.database import Database
from service.records.models import Job
from service.settings import Settings
from worker.errors import RowMissing
from worker.preparing import Drafted, Store, Verification, open_draft, open_verification
from worker.sessions import Sessions
from worker.watch import Cancelled, Watch

log = structlog.get_logger()

T = TypeVar("T")
Answer = dict[str, Any]  # of a step: a few numbers and words, for the engine keeps it

ENDED: Answer = {"ended": True}  # the job has come to its end; nothing is left to do
DONE: Answer = {"ended": False}
INTERNAL = "internal"
GIVEN_UP = "gave_up"
_LONGEST = 2_000


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
    shards: (
        ThreadPoolExecutor  # `settings.threads` threads: their buffers are what a worker's memory goes into
    )

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

    def verification(self, job_id: str) -> AbstractContextManager[Verification]:
        """The job's verification, prepared once. Raises: as `open_verification`."""
        return self.verifications.use(job_id, lambda: open_verification(self.store, job_id))

    def drafted(self, job_id: str) -> AbstractContextManager[Drafted]:
        """The job's conversion, planned once. Raises: as `open_draft`."""
        return self.drafts.use(job_id, lambda: open_draft(self.store, job_id))

    def answering(self, job_id: str, work: Callable[[], Answer]) -> Answer:
        """The answer of `work`; where there can be none, the job is ended with the reason, and that is the answer.

        Raises: DBAPIError, for the engine to wait and call again; Draining.
        """
        try:
            return work()
        except Cancelled:
            return self.stopped(job_id)
        except DBAPIError:
            raise
        except NinferError as error:
            return self.fail(job_id, error.code, str(error))
        except MemoryError:
            log.exception("job.out_of_memory", job=job_id)
            return self.fail(job_id, INTERNAL, "there is not enough memory")
        except Exception as error:
            log.exception("job.broke", job=job_id)
            return self.fail(job_id, INTERNAL, f"{type(error).__name__}: {error}")

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

    def on_shard_thread(self, work: Callable[[], T]) -> T:
        """Do `work` on one of the threads for shards, as soon as one is free."""
        return self.shards.submit(work).result()
