"""What a job says of itself, numbered 1, 2, ... without a gap."""

from typing import Any, Final

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from service.records.errors import JobOver
from service.records.models import Job, JobEvent
from service.records.types import now

OPEN: Final = ("queued", "running")


def locked(session: Session, job_id: str) -> Job | None:
    """The job as it is now, kept from changing until the end of the transaction.

    Whatever writes rows of a job takes this first: so nobody waits in a circle, and events have an order.
    """
    # Not a full FOR UPDATE: that would also hold up rows that only refer to the job.
    return session.get(Job, job_id, with_for_update={"key_share": True}, populate_existing=True)


def require_open(session: Session, job_id: str) -> Job:
    """The job, locked as by `locked`. Raises: JobOver."""
    found = locked(session, job_id)
    if found is None or found.state not in OPEN:
        raise JobOver(job_id)
    return found


def add_event(session: Session, job: Job, key: str, type: str, data: dict[str, Any]) -> None:  # noqa: A002  as the column
    """Say something once: a key that the job has used says nothing."""
    locked(session, job.id)
    said = select(JobEvent.seq).where(JobEvent.job_id == job.id, JobEvent.key == key)
    if session.scalar(said) is not None:
        return
    last = session.scalar(select(func.max(JobEvent.seq)).where(JobEvent.job_id == job.id)) or 0
    session.add(
        JobEvent(
            project_id=job.project_id,
            job_id=job.id,
            seq=last + 1,
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
