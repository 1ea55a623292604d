"""What a job says of itself, numbered 1, 2, ... without a gap."""

from typing import Any, Final

from sqlalchemy import func, select, text
from sqlalchemy.orm import Session

from service.records.errors import JobOver
from service.records.models import Job, JobEvent
from service.records.types import now

OPEN: Final = ("queued", "running")
# Spelled as in the indexes `ix_jobs_open` and `ix_jobs_project_open`, or SQLite does not use them.
IS_OPEN: Final = text("jobs.state IN ('queued', 'running')")
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
    said = select(JobEvent.seq).where(JobEvent.job_id == job.id, JobEvent.key == key).exists()
    last = select(func.max(JobEvent.seq)).where(JobEvent.job_id == job.id).scalar_subquery()
    known, seq = session.execute(select(said, last)).one()
    if known:
        return
    session.add(
        JobEvent(
            project_id=job.project_id,
            job_id=job.id,
            seq=(seq or 0) + 1,
            key=key,
            type=type,
            data=data,
            at=now(),
        )
    )
    session.flush()


def events(session: Session, job_id: str, after: int, limit: int) -> list[JobEvent]:
    """The events numbered above `after`, in order."""
    if after >= 2**31 - 1:
        return []
    query = select(JobEvent).where(JobEvent.job_id == job_id, JobEvent.seq > max(after, 0))
    return list(session.scalars(query.order_by(JobEvent.seq).limit(limit)))
