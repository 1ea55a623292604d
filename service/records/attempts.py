"""How often work was begun and came to nothing: retries, shards that took their worker down, jobs that are begun anew."""

from datetime import datetime
from typing import Any, Final

from sqlalchemy import delete, func, select, update
from sqlalchemy.orm import Session, defer

from service.records import answers
from service.records.database import moment
from service.records.events import IS_OPEN, OPEN, add_event, locked
from service.records.models import Job, JobEvent, Run, Shard
from service.records.types import now

_LONGEST: Final = 2_000


def error(code: str, detail: str) -> dict[str, Any]:
    """`last_error` of a job or a shard."""
    return {"code": code, "detail": detail[:_LONGEST], "at": now().isoformat()}


def retry(session: Session, job_id: str, attempt: int, code: str, detail: str, seconds: float) -> None:
    """Note that something failed that may pass, and is tried again after `seconds`."""
    job = locked(session, job_id)
    if job is None or job.state not in OPEN:
        return
    job.attempts += 1
    job.last_error = error(code, detail)
    session.flush()
    said = {"attempt": attempt, "code": code, "detail": detail[:_LONGEST], "seconds": round(seconds, 1)}
    add_event(session, job, f"retry:{job.attempts}", "retry", said)


def begin_shard(session: Session, job_id: str, number: int) -> Shard | None:
    """The shard, which is begun once more; None when there is none, and as it is when it is done."""
    shard = _shard(session, job_id, number)
    if shard is not None and not shard.done:
        shard.attempts += 1
        session.flush()
    return shard


def leave_shard(session: Session, job_id: str, number: int, epoch: int) -> None:
    """A shard was left as it was by a worker that ends in order, or failed in a way that has its own count."""
    job = locked(session, job_id)
    shard = None if job is None or job.epoch != epoch else _shard(session, job_id, number)
    if shard is not None and not shard.done and shard.attempts:
        shard.attempts -= 1
        session.flush()


def begin_step(session: Session, job_id: str, step: str) -> int:
    """Note that a step of a job is begun after a worker has ended in it, or before it; how often that was now."""
    job = locked(session, job_id)
    if job is None or job.state not in OPEN:
        return 0
    key = f"again:{step}:"
    said = select(func.count()).where(
        JobEvent.job_id == job_id, JobEvent.key.startswith(key, autoescape=True)
    )
    attempt = int(session.scalar(said) or 0) + 1
    detail = f"its worker ended in or before the step `{step.partition('.')[0]}`"
    data = {"attempt": attempt, "code": "worker_lost", "detail": detail, "seconds": 0}
    add_event(session, job, f"{key}{attempt}", "retry", data)
    return attempt


def lose_shard(session: Session, job_id: str, number: int, epoch: int, why: str) -> None:
    """Note why the worker that had begun a shard is there no more."""
    job = locked(session, job_id)
    if job is None or job.state not in OPEN or job.epoch != epoch:
        return
    shard = _shard(session, job_id, number)
    if shard is not None and not shard.done and shard.attempts:
        shard.last_error = error("worker_lost", why)
        session.flush()


def begin_anew(session: Session, job_id: str, epoch: int, reason: str) -> int | None:
    """Forget all that was worked out in this epoch and begin another: its number; None where it is over already.

    Workers of the epoch that ends cannot write from here on: they look at `Job.epoch` in every transaction.
    """
    job = locked(session, job_id)
    if job is None or job.state not in OPEN or job.epoch != epoch:
        return None
    job.epoch = epoch + 1
    job.objects = job.bytes = job.plan = job.planned_by = None
    job.last_error = error("begun_anew", reason)
    session.flush()
    session.execute(delete(Shard).where(Shard.job_id == job_id).execution_options(synchronize_session=False))
    answers.drop_parts(session, job_id)
    # What was taken over from earlier runs was chosen by keys that another version may spell otherwise.
    session.execute(
        update(Run)
        .where(Run.job_id == job_id)
        .values(reuse=None)
        .execution_options(synchronize_session=False)
    )
    said = {"epoch": job.epoch, "reason": reason[:_LONGEST]}
    add_event(session, job, f"restarted:{job.epoch}", "restarted", said)
    return job.epoch


def overdue(session: Session, limit: int) -> list[tuple[str, datetime]]:
    """(id, deadline) of open jobs whose time is over."""
    query = select(Job.id, Job.deadline_at).where(
        IS_OPEN,
        Job.deadline_at.is_not(None),
        Job.deadline_at <= moment(session),
    )
    rows = session.execute(query.order_by(Job.id).limit(limit))
    return [(job_id, deadline) for job_id, deadline in rows if deadline is not None]


def _shard(session: Session, job_id: str, number: int) -> Shard | None:
    heavy = (defer(Shard.outcomes, raiseload=True), defer(Shard.segment, raiseload=True))
    query = select(Shard).where(Shard.job_id == job_id, Shard.number == number).options(*heavy)
    return session.scalars(query.execution_options(populate_existing=True).with_for_update()).one_or_none()
