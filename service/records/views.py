"""What the pages look up beside the lists they show: rows of one page at a time, by their ids."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from service.records.events import IS_OPEN
from service.records.models import (
    Artifact,
    Checkpoint,
    Conversion,
    ConversionObject,
    Job,
    Recipe,
    Run,
)


@dataclass(frozen=True, slots=True)
class LastRun:
    """The latest run of an artifact, and the state of its job."""

    run: Run
    state: str


def last_runs(session: Session, artifact_ids: Collection[str]) -> dict[str, LastRun]:
    """The latest run of each of these artifacts that has one."""
    latest = select(func.max(Run.id)).where(Run.artifact_id.in_(artifact_ids)).group_by(Run.artifact_id)
    rows = session.execute(select(Run, Job.state).join(Job, Job.id == Run.job_id).where(Run.id.in_(latest)))
    return {run.artifact_id: LastRun(run, state) for run, state in rows}


def artifacts(session: Session, project_id: str, ids: Collection[str]) -> dict[str, Artifact]:
    """Artifacts by id."""
    rows = session.scalars(select(Artifact).where(Artifact.project_id == project_id, Artifact.id.in_(ids)))
    return {row.id: row for row in rows}


def jobs(session: Session, project_id: str, ids: Collection[str]) -> dict[str, Job]:
    """Jobs by id."""
    return {
        row.id: row
        for row in session.scalars(select(Job).where(Job.project_id == project_id, Job.id.in_(ids)))
    }


def tried_again(session: Session, project_id: str, limit: int) -> list[Job]:
    """Open jobs of which something failed that may pass, those that were tried most first."""
    query = select(Job).where(IS_OPEN, Job.project_id == project_id, Job.attempts > 0)
    return list(session.scalars(query.order_by(Job.attempts.desc(), Job.id).limit(limit)))


def checkpoints(session: Session, project_id: str, ids: Collection[str]) -> dict[str, Checkpoint]:
    """Checkpoints by id."""
    rows = session.scalars(
        select(Checkpoint).where(Checkpoint.project_id == project_id, Checkpoint.id.in_(ids))
    )
    return {row.id: row for row in rows}


def recipe_ids(session: Session, project_id: str, digests: Collection[str]) -> dict[str, str]:
    """What recipes call themselves, by digest."""
    query = select(Recipe.digest, Recipe.recipe_id).where(
        Recipe.project_id == project_id, Recipe.digest.in_(digests)
    )
    return dict(session.execute(query).all())


def made(session: Session, artifact_id: str, ordinals: Collection[int]) -> dict[int, Any]:
    """How these objects of an artifact were made, by ordinal; empty unless it was converted here."""
    query = (
        select(ConversionObject.ordinal, ConversionObject.document)
        .join(Conversion, Conversion.id == ConversionObject.conversion_id)
        .where(Conversion.artifact_id == artifact_id, ConversionObject.ordinal.in_(ordinals))
        .order_by(Conversion.id)
    )
    return dict(session.execute(query).all())
