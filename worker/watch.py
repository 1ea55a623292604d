"""What a running piece of work is told and tells on its way: to stop, and how far it has come.

The work itself asks no database: it counts, and looks at a flag. One thread asks for all pieces together, twice a second.
"""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import structlog
from sqlalchemy.exc import SQLAlchemyError

from service.records import jobs
from service.records.database import Database
from service.records.models import Job

log = structlog.get_logger()

_ASK_SECONDS = 0.4
_STOP_SECONDS = 0.7  # that work may take to notice that it is cancelled
_FLUSH_EVERY = 3  # times of asking: progress is written about once a second


def goes_on(job: Job | None, epoch: int) -> bool:
    """Whether anybody still waits for what is found out about this job in this epoch of it."""
    return job is not None and job.state in jobs.OPEN and not job.cancel_requested and job.epoch == epoch


def _asked_to_stop(job: Job | None) -> bool:
    return job is not None and job.state in jobs.OPEN and job.cancel_requested


class Draining(BaseException):
    """The worker is to end: what is not finished is left as it was, and nobody records that it failed."""


class Cancelled(Exception):
    """The job is cancelled, or has come to its end elsewhere; what is found from here on is of no use."""


class Ticket:
    """One piece of work: a shard, or a step of the job itself when `number` is None."""

    def __init__(self, watch: "Watch", job_id: str, number: int | None, epoch: int) -> None:
        self.job_id, self.number, self.epoch = job_id, number, epoch
        self.cancelled_at: float | None = None
        self._watch = watch
        self._lock = threading.Lock()
        self._done = 0
        self._told = 0

    @property
    def cancelled(self) -> bool:
        """Whether the work is to stop."""
        return self.cancelled_at is not None

    def advance(self, count: int) -> None:
        """So many bytes more. Raises: Draining, Cancelled."""
        with self._lock:
            self._done += count
        self.check()

    def check(self) -> None:
        """Raises: Draining, Cancelled."""
        if self._watch.draining:
            raise Draining
        if self.cancelled:
            raise Cancelled

    def news(self) -> int | None:
        """Bytes done, when that is more than at the last call."""
        if self.number is None or self.cancelled or self._done == self._told:
            return None
        self._told = self._done
        return self._done


class Watch:
    """The tickets of this process, and the thread that asks and tells for them."""

    def __init__(self, database: Database) -> None:
        self.leaving = False
        self.draining = False
        self._database = database
        self._tickets: set[Ticket] = set()
        self._lock = threading.Lock()
        self._here = threading.local()
        self._thread = threading.Thread(target=self._run, name="watch", daemon=True)
        self._ended = threading.Event()

    def start(self) -> None:
        """Start asking."""
        self._thread.start()

    def stop(self) -> None:
        """End the thread."""
        self._ended.set()

    def leave(self) -> None:
        """Let nothing begin any more; what runs may finish."""
        self.leaving = True

    def drain(self) -> None:
        """Let every piece of work stop at its next step."""
        self.leaving = self.draining = True

    def require_staying(self) -> None:
        """Raises: Draining, before something begins in a worker that is to end, and while something only waits."""
        if self.leaving:
            raise Draining

    @contextmanager
    def ticket(self, job_id: str, number: int | None = None, epoch: int = 0) -> Iterator[Ticket]:
        """A ticket for what this thread does inside; what it reads and counts is checked against it."""
        ticket = Ticket(self, job_id, number, epoch)
        before = getattr(self._here, "ticket", None)
        with self._lock:
            self._tickets.add(ticket)
        self._here.ticket = ticket
        try:
            ticket.check()
            yield ticket
        finally:
            self._here.ticket = before
            with self._lock:
                self._tickets.discard(ticket)

    def current(self) -> Ticket | None:
        """The ticket of this thread."""
        ticket: Ticket | None = getattr(self._here, "ticket", None)
        return ticket

    def check(self) -> None:
        """Raises: Draining, Cancelled, as the ticket of this thread does."""
        ticket = self.current()
        if ticket is not None:
            ticket.check()
        elif self.draining:
            raise Draining

    def _run(self) -> None:
        turn = 0
        while not self._ended.wait(_ASK_SECONDS):
            turn += 1
            with self._lock:
                tickets = list(self._tickets)
            if not tickets:
                continue
            try:
                self._ask(tickets)
                if turn % _FLUSH_EVERY == 0:
                    self._tell(tickets)
            except SQLAlchemyError as error:
                # Nothing depends on it but how soon a cancellation is seen, and what a progress bar shows.
                log.warning("watch.failed", error=str(error))
            except Exception:
                log.exception("watch.broke")

    def _ask(self, tickets: list[Ticket]) -> None:
        with self._database.read() as session:
            found = jobs.by_ids(session, {item.job_id for item in tickets})
        now = time.monotonic()
        late = set()
        for ticket in tickets:
            job = found.get(ticket.job_id)
            if goes_on(job, ticket.epoch):
                continue
            if ticket.cancelled_at is None:
                ticket.cancelled_at = now
            elif _asked_to_stop(job) and now - ticket.cancelled_at > _STOP_SECONDS:
                late.add(ticket.job_id)
        for job_id in late:
            # Its work hangs, on a disk or a store: it will notice, and until then nobody has to wait for it.
            with self._database.write() as session:
                jobs.finish(session, job_id, "cancelled")

    def _tell(self, tickets: list[Ticket]) -> None:
        news = [(item.job_id, item.number, done) for item in tickets if (done := item.news()) is not None]
        if not news:
            return
        with self._database.write() as session:
            for job_id, number, done in news:
                if number is not None:
                    jobs.advance(session, job_id, number, done)
