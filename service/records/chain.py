"""What the chain of one artifact is put together from: its conversions, its runs, and all that these name."""

from collections.abc import Collection, Iterable

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from service.records.models import (
    Checkpoint,
    CheckpointFile,
    Conversion,
    EncoderProfile,
    Job,
    Recipe,
    Result,
    Run,
)
from service.records.rows import batches


def conversions(session: Session, artifact_id: str, limit: int) -> list[tuple[Conversion, Job]]:
    """The first conversions that made an artifact, oldest first, with their jobs."""
    query = (
        select(Conversion, Job)
        .join(Job, Job.id == Conversion.job_id)
        .where(Conversion.artifact_id == artifact_id)
        .order_by(Conversion.id)
        .limit(limit)
    )
    return [(row, job) for row, job in session.execute(query)]


def runs(session: Session, artifact_id: str, limit: int, verdict: str | None = None) -> list[tuple[Run, Job]]:
    """The latest runs of an artifact that have a verdict which is that of their job, newest first."""
    query = (
        select(Run, Job)
        .join(Job, Job.id == Run.job_id)
        .where(Run.artifact_id == artifact_id, Run.verdict == Job.state)
        .order_by(Run.id.desc())
        .limit(limit)
    )
    if verdict is not None:
        query = query.where(Run.verdict == verdict)
    return [(row, job) for row, job in session.execute(query)]


def run_count(session: Session, artifact_id: str) -> int:
    """How many runs an artifact has, final or not."""
    return session.scalar(select(func.count()).select_from(Run).where(Run.artifact_id == artifact_id)) or 0


def results(session: Session, run_ids: Collection[str], ordinal: int) -> dict[str, Result]:
    """What these runs found of the object at one place, by run."""
    query = select(Result).where(Result.run_id.in_(run_ids), Result.ordinal == ordinal)
    return {row.run_id: row for row in session.scalars(query)}


def recipes(session: Session, project_id: str, digests: Collection[str]) -> list[Recipe]:
    """Recipes by digest, in the order of their digests."""
    query = select(Recipe).where(Recipe.project_id == project_id, Recipe.digest.in_(digests))
    return list(session.scalars(query.order_by(Recipe.digest)))


def checkpoint_files(session: Session, ids: Iterable[str]) -> dict[str, list[CheckpointFile]]:
    """The files of checkpoints by its id, in order."""
    found: dict[str, list[CheckpointFile]] = {}
    for batch in batches(ids):
        query = select(CheckpointFile).where(CheckpointFile.checkpoint_id.in_(batch))
        for row in session.scalars(query.order_by(CheckpointFile.checkpoint_id, CheckpointFile.ordinal)):
            found.setdefault(row.checkpoint_id, []).append(row)
    return found


def profiles(session: Session, names: Collection[str]) -> list[EncoderProfile]:
    """Encoder profiles by name, every version."""
    query = select(EncoderProfile).where(EncoderProfile.name.in_(names))
    return list(session.scalars(query.order_by(EncoderProfile.name, EncoderProfile.version)))


def digest_of(session: Session, project_id: str, checkpoint_id: str) -> str | None:
    """The digest of a checkpoint's files."""
    query = select(Checkpoint.digest).where(
        Checkpoint.project_id == project_id, Checkpoint.id == checkpoint_id
    )
    return session.scalar(query)
