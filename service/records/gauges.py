"""Queries over workers, jobs, uploads and content for those who watch the service: counts, of all projects together."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from service.records.campaigns import RUNS
from service.records.database import clock
from service.records.models import Campaign, DoomedBlob, Job, Shard, Upload, Worker
from service.records.uploads import IS_OPEN as IS_OPEN_UPLOAD


@dataclass(frozen=True, slots=True)
class Open:
    """Open uploads in one state, and what they announced."""

    state: str
    uploads: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Over:
    """A job that has ended."""

    type: str
    lane: str
    state: str
    error: Any
    finished_at: datetime
    last_shard_at: datetime | None  # when the last of its shards was done


def over(session: Session, job_id: str) -> Over | None:
    """The job, if it has ended."""
    last = select(func.max(Shard.finished_at)).where(Shard.job_id == job_id).scalar_subquery()
    query = select(Job.type, Job.lane, Job.state, Job.error, Job.finished_at, last)
    row = session.execute(query.where(Job.id == job_id, Job.finished_at.is_not(None))).one_or_none()
    return None if row is None else Over(*row)


def open_uploads(session: Session) -> list[Open]:
    """Uploads under way by state."""
    query = (
        select(Upload.state, func.count(), func.sum(Upload.bytes))
        .where(IS_OPEN_UPLOAD)
        .group_by(Upload.state)
    )
    return [Open(state, count, int(total)) for state, count, total in session.execute(query)]


def workers(session: Session, dead_after_seconds: float) -> dict[bool, int]:
    """Workers that live, by whether they drain."""
    query = (
        select(Worker.draining, func.count())
        .where(Worker.beat_at >= clock(session) - dead_after_seconds)
        .group_by(Worker.draining)
    )
    return dict(session.execute(query).all())


def campaigns(session: Session) -> int:
    """Campaigns that run."""
    return session.scalar(select(func.count()).select_from(Campaign).where(RUNS)) or 0


def doomed(session: Session) -> tuple[int, int]:
    """How much content is about to go: how many, and their bytes."""
    count, total = session.execute(select(func.count(), func.sum(DoomedBlob.bytes))).one()
    return count, int(total or 0)
