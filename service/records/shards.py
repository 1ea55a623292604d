"""Queries over the shards of a job: what is planned, how far it is, and what it found out."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from sqlalchemy import Select, case, func, select, update
from sqlalchemy.orm import Session, defer

from service.records.errors import NoOutcomes
from service.records.events import add_event, locked
from service.records.models import Job, Shard
from service.records.rows import batches, insert_new, values
from service.records.types import now


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a job is; `objects` and `bytes` are None until it is planned."""

    objects_done: int
    objects: int | None
    bytes_done: int
    bytes: int | None


def plan(
    session: Session,
    job_id: str,
    objects: int,
    bytes: int,  # noqa: A002  as the column
    rows: Sequence[Shard],
    digest: str | None = None,
    planned_by: str | None = None,
) -> list[Shard]:
    """Store the plan, unless there is one: the first stands. The stored shards; they may be none.

    `digest` is that of the list of tasks that the shards were cut from, `planned_by` the version that made the list.
    """
    job = locked(session, job_id)
    if job is not None and job.objects is None:
        owner = {"job_id": job_id, "project_id": job.project_id}
        insert_new(session, Shard, [{**values(row), **owner} for row in rows])
        job.objects = objects
        job.bytes = bytes
        job.plan = digest
        job.planned_by = planned_by
        session.flush()
    return shards(session, job_id)


def plan_done(
    session: Session,
    job_id: str,
    objects: int,
    row: Shard,
    digest: str,
    planned_by: str,
) -> bool:
    """Store a plan of one shard that is done already, unless there is a plan; whether this call did."""
    job = locked(session, job_id)
    if job is None or job.objects is not None:
        return False
    done = {"done": True, "bytes_done": row.bytes, "finished_at": now()}
    insert_new(session, Shard, [{**values(row), **done, "job_id": job_id, "project_id": job.project_id}])
    job.objects, job.bytes, job.plan, job.planned_by = objects, row.bytes, digest, planned_by
    _tell(session, job, row.number, Progress(objects, objects, row.bytes, row.bytes))
    return True


def _tell(session: Session, job: Job, number: int, reached: Progress) -> None:
    key = f"shard:{number}.{job.epoch}" if job.epoch else f"shard:{number}"
    add_event(session, job, key, "progress", asdict(reached))


def shards(session: Session, job_id: str) -> list[Shard]:
    """The shards of a job in order, without what they found out and wrote."""
    return list(session.scalars(_light(job_id).order_by(Shard.number)))


def shard(session: Session, job_id: str, number: int) -> Shard | None:
    """A shard, without what it found out and wrote."""
    return session.scalars(_light(job_id).where(Shard.number == number)).one_or_none()


def _light(job_id: str) -> Select[Shard]:
    # Both may be large, and whoever asks for a shard mostly wants its limits.
    heavy = (defer(Shard.outcomes, raiseload=True), defer(Shard.segment, raiseload=True))
    query = select(Shard).where(Shard.job_id == job_id)
    return query.options(*heavy).execution_options(populate_existing=True)


def waiting(session: Session, job_id: str) -> dict[int, int]:
    """By number, in order, how often each shard was begun that holds tasks and is not done."""
    query = select(Shard.number, Shard.attempts).where(
        Shard.job_id == job_id, Shard.done.is_(False), Shard.first < Shard.stop
    )
    return {row.number: row.attempts for row in session.execute(query.order_by(Shard.number))}


def advance(session: Session, job_id: str, number: int, bytes_done: int) -> None:
    """Note how far a shard is: never backwards, never beyond its end, never once it is done."""
    session.execute(
        update(Shard)
        .where(
            Shard.job_id == job_id,
            Shard.number == number,
            Shard.done.is_(False),
            Shard.bytes_done < bytes_done,
        )
        .values(bytes_done=case((Shard.bytes < bytes_done, Shard.bytes), else_=bytes_done))
        .execution_options(synchronize_session=False)
    )


def finish_shard(
    session: Session, job_id: str, number: int, outcomes: str, segment: Any = None, produced: Any = None
) -> bool:
    """Store what a shard found out and what made it; True when this call did. The first one stands, and a job that is over keeps nothing."""
    job = locked(session, job_id)
    if job is None or job.finished_at is not None:
        return False
    found = session.get(
        Shard,
        (job_id, number),
        options=[defer(Shard.outcomes), defer(Shard.segment)],
        with_for_update=True,
        populate_existing=True,
    )
    if found is None or found.done:
        return False
    found.done = True
    found.bytes_done = found.bytes
    found.outcomes = outcomes
    found.segment = segment
    found.produced = produced
    found.finished_at = now()
    session.flush()
    _tell(session, job, number, progress(session, job_id))
    return True


def outcomes(session: Session, job_id: str, number: int) -> str:
    """What a shard found out. Raises: NoOutcomes, also after the end of its job."""
    found = session.scalar(
        select(Shard.outcomes).where(Shard.job_id == job_id, Shard.number == number, Shard.done.is_(True))
    )
    if found is None:
        raise NoOutcomes(job_id, number)
    return found


def segment(session: Session, job_id: str, number: int) -> Any:
    """What a shard of a conversion wrote; None when it is not done, or wrote nothing."""
    return session.scalar(
        select(Shard.segment).where(Shard.job_id == job_id, Shard.number == number, Shard.done.is_(True))
    )


def drop_outcomes(session: Session, job_id: str) -> None:
    """Forget what the shards found out."""
    session.execute(
        update(Shard)
        .where(Shard.job_id == job_id)
        .values(outcomes=None)
        .execution_options(synchronize_session=False)
    )


def progress(session: Session, job_id: str) -> Progress:
    """How far a job is; one that nobody knows has done nothing."""
    return progress_of(session, [job_id]).get(job_id, Progress(0, None, 0, None))


def progress_of(session: Session, job_ids: Iterable[str]) -> dict[str, Progress]:
    """How far each of these jobs is."""
    found: dict[str, Progress] = {}
    for batch in batches(job_ids):
        done = (
            select(
                Shard.job_id,
                func.sum(case((Shard.done.is_(True), Shard.objects), else_=0)).label("objects"),
                func.sum(Shard.bytes_done).label("bytes"),
            )
            .where(Shard.job_id.in_(batch))
            .group_by(Shard.job_id)
            .subquery()
        )
        query = (
            select(Job.id, done.c.objects, Job.objects, done.c.bytes, Job.bytes)
            .outerjoin(done, done.c.job_id == Job.id)
            .where(Job.id.in_(batch))
        )
        for job_id, objects_done, objects, bytes_done, bytes_ in session.execute(query):
            found[job_id] = Progress(int(objects_done or 0), objects, int(bytes_done or 0), bytes_)
    return found
