"""What a job says of itself, numbered 1, 2, ... without a gap."""

from collections.abc import Collection
from typing import Any, Final

from sqlalchemy import bindparam, func, select, text
from sqlalchemy.orm import Session

from service.records.errors import JobOver
from service.records.models import Job, JobEvent
from service.records.rows import batches, insert
from service.records.types import now

OPEN: Final = ("queued", "running")
# Spelled as in the indexes `ix_jobs_open` and `ix_jobs_project_open`, or SQLite does not use them.
IS_OPEN: Final = text("jobs.state IN ('queued', 'running')")
_SAYING: Final[dict[str, Any]] = {}  # the statement that adds an event, by dialect
_HELD: Final = "jobs held"  # of a session: its transaction, and the jobs that it keeps from changing


def locked(session: Session, job_id: str) -> Job | None:
    """The job as it is now, kept from changing until the end of the transaction.

    Whatever writes rows of a job takes this first: so nobody waits in a circle, and events have an order. The database is
    asked once in a transaction: nobody else changes the row in it, and this one only through what is returned.
    """
    held: dict[str, Job] = {}
    transaction, of_transaction = session.info.get(_HELD, (None, held))
    if transaction is not None and transaction is session.get_transaction():
        held = of_transaction
    if job_id in held:
        return held[job_id]
    # Not a full FOR UPDATE: that would also hold up rows that only refer to the job.
    found = session.get(Job, job_id, with_for_update={"key_share": True}, populate_existing=True)
    if found is not None:
        held[job_id] = found
        session.info[_HELD] = (session.get_transaction(), held)
    return found


def require_open(session: Session, job_id: str) -> Job:
    """The job, locked as by `locked`. Raises: JobOver."""
    found = locked(session, job_id)
    if found is None or found.state not in OPEN:
        raise JobOver(job_id)
    return found


def add_event(session: Session, job: Job, key: str, type: str, data: dict[str, Any]) -> None:  # noqa: A002  as the column
    """Say something once: a key that the job has used says nothing."""
    locked(session, job.id)
    session.flush()
    said = {
        "project_id": job.project_id,
        "job_id": job.id,
        "key": key,
        "type": type,
        "data": data,
        "at": now(),
    }
    session.connection().execute(_saying(session), {**said, "of_job": job.id})


def _saying(session: Session) -> Any:
    dialect = session.get_bind().dialect.name
    if dialect not in _SAYING:
        last = select(func.coalesce(func.max(JobEvent.seq), 0)).where(JobEvent.job_id == bindparam("of_job"))
        row = insert(session, JobEvent).values(seq=last.scalar_subquery() + 1)
        _SAYING[dialect] = row.on_conflict_do_nothing(index_elements=["job_id", "key"])
    return _SAYING[dialect]


def events(session: Session, job_id: str, after: int, limit: int) -> list[JobEvent]:
    """The events numbered above `after`, in order."""
    if after >= 2**31 - 1:
        return []
    query = select(JobEvent).where(JobEvent.job_id == job_id, JobEvent.seq > max(after, 0))
    return list(session.scalars(query.order_by(JobEvent.seq).limit(limit)))


def reached(session: Session, job_ids: Collection[str]) -> dict[str, tuple[int, bool]]:
    """By job: the number of its last event, and whether it is over. One query for each thousand."""
    found: dict[str, tuple[int, bool]] = {}
    for batch in batches(job_ids):
        # Asked by job, the last is the end of an index; joined and grouped, all events of all jobs would be read.
        last = select(func.max(JobEvent.seq)).where(JobEvent.job_id == Job.id).scalar_subquery()
        query = select(Job.id, Job.state, func.coalesce(last, 0)).where(Job.id.in_(batch))
        found |= {job_id: (seq, state not in OPEN) for job_id, state, seq in session.execute(query)}
    return found
