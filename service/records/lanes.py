"""Queries over jobs as they stand in their lanes: waiting for their project's room, in the engine's line, or running."""

from dataclasses import dataclass
from datetime import datetime
from typing import Final, Literal

from sqlalchemy import case, exists, func, select, text
from sqlalchemy.orm import Session

from service.records.events import IS_OPEN
from service.records.models import Job, Project
from service.records.types import now

Place = Literal["waiting", "in_line", "running"]
# Spelled as in the indexes `ix_jobs_waiting` and `ix_jobs_admitted`, or SQLite does not use them.
_WAITING: Final = "jobs.state = 'queued' AND jobs.admitted_at IS NULL"
_ADMITTED: Final = "jobs.state IN ('queued', 'running') AND jobs.admitted_at IS NOT NULL"


@dataclass(frozen=True, slots=True)
class Depth:
    """How many jobs stand at one place of a lane, and when the oldest of them was asked for."""

    lane: str
    state: Place
    jobs: int
    oldest_at: datetime


def project(session: Session, project_id: str, *, hold: bool = False) -> Project | None:
    """The project; with `hold` nobody else counts its jobs before the end of the transaction."""
    # Not a full FOR UPDATE: rows that only refer to the project may come meanwhile.
    lock = {"key_share": True} if hold else None
    return session.get(Project, project_id, with_for_update=lock, populate_existing=hold)


def admitted(session: Session, project_id: str) -> dict[tuple[str, str], int]:
    """How many admitted jobs of a project are open, by lane and state."""
    query = (
        select(Job.lane, Job.state, func.count())
        .where(text(_ADMITTED), Job.project_id == project_id)
        .group_by(Job.lane, Job.state)
    )
    return {(lane, state): count for lane, state, count in session.execute(query)}


def waiting_projects(session: Session) -> list[str]:
    """Projects with jobs that wait for room; deleted ones have none."""
    waits = exists().where(text(_WAITING), Job.project_id == Project.id)
    query = select(Project.id).where(waits, Project.deleted_at.is_(None))
    return list(session.scalars(query.order_by(Project.id)))


def waits(session: Session, project_id: str, lane: str) -> bool:
    """Whether a job of the project waits for room in a lane."""
    query = select(Job.id).where(text(_WAITING), Job.project_id == project_id, Job.lane == lane)
    return session.scalar(query.limit(1)) is not None


def admit(session: Session, project_id: str, lane: str, most: int) -> list[Job]:
    """Admit at most so many of the jobs that wait, higher priority first, then older ones; those that now are."""
    own = (text(_WAITING), Job.project_id == project_id, Job.lane == lane)
    highest = select(func.max(Job.priority)).where(*own)
    level = session.scalar(highest)
    found: list[Job] = []
    # Level by level: there an index has the oldest first, and thousands that wait behind them are not sorted.
    while level is not None and len(found) < most:
        query = select(Job).where(*own, Job.priority == level).order_by(Job.id).limit(most - len(found))
        # What somebody else admits or cancels at this moment is left to them.
        query = query.with_for_update(key_share=True, skip_locked=True)
        found += session.scalars(query.execution_options(populate_existing=True))
        level = session.scalar(highest.where(Job.priority < level))
    if found:
        moment = now()
        for job in found:
            job.admitted_at = moment
        session.flush()
    return found


def depths(session: Session, project_id: str | None = None) -> list[Depth]:
    """How many open jobs stand where, of one project or of all."""
    place = case((Job.state == "running", "running"), (Job.admitted_at.is_(None), "waiting"), else_="in_line")
    query = select(Job.lane, place, func.count(), func.min(Job.created_at)).where(IS_OPEN)
    if project_id is not None:
        query = query.where(Job.project_id == project_id)
    rows = session.execute(query.group_by(Job.lane, place).order_by(Job.lane, place))
    return [Depth(lane, state, count, oldest) for lane, state, count, oldest in rows]
