"""Queries over content that nothing refers to, over what is kept for some time only, and over projects that are to go.

What refers to content is listed once, in `_unreferenced`. Whoever makes a new reference locks the content's row first
(`content.find_blobs(..., hold=True)`), so a collector either sees the reference or is waited for.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import cast

from sqlalchemy import (
    ColumnElement,
    CursorResult,
    Delete,
    String,
    and_,
    case,
    delete,
    exists,
    func,
    literal,
    select,
    tuple_,
)
from sqlalchemy.orm import Session

from ninfer_core.identity import DIGEST_PREFIX
from service.records.models import (
    ArtifactFile,
    Blob,
    CheckpointFile,
    Conversion,
    DoomedBlob,
    Job,
    JobContent,
    JobEvent,
)
from service.records.rows import insert
from service.records.types import first_id, now

Key = tuple[str, str]  # project and sha256
FIRST: Key = ("", "")
_ANSWERLESS = ("error", "cancelled")  # states of jobs that have found out nothing
_END = "state:final"  # key of a job's last event, which is kept


@dataclass(frozen=True, slots=True)
class Walked:
    """A stretch of a table: what was looked for in it, and the key to go on after; None at its end."""

    found: list[Key]
    last: Key | None


def _age_ended(before: datetime) -> ColumnElement[bool]:
    return func.coalesce(Blob.kept_at, Blob.created_at, type_=Blob.created_at.type) < before


def _unreferenced() -> ColumnElement[bool]:
    """Content that no artifact, checkpoint or record is made of, and that no job asks or has asked about.

    A job that ended without an answer needs its inputs no more.
    """
    digest = literal(DIGEST_PREFIX, String).concat(Blob.sha256)
    file, source = (
        exists().where(model.project_id == Blob.project_id, model.sha256 == Blob.sha256)
        for model in (ArtifactFile, CheckpointFile)
    )
    record = exists().where(Conversion.project_id == Blob.project_id, Conversion.record == digest)
    asked = exists().where(
        JobContent.project_id == Blob.project_id,
        JobContent.sha256 == Blob.sha256,
        Job.id == JobContent.job_id,
        Job.state.not_in(_ANSWERLESS),
    )
    return and_(~file, ~source, ~record, ~asked)


def unreferenced(session: Session, before: datetime, after: Key, limit: int) -> Walked:
    """What nothing refers to among the next `limit` contents after a key, none of it come in since `before`."""
    loose = and_(_age_ended(before), _unreferenced())
    query = select(Blob.project_id, Blob.sha256, loose).order_by(Blob.project_id, Blob.sha256)
    query = query.where(tuple_(Blob.project_id, Blob.sha256) > tuple_(*map(literal, after))).limit(limit)
    rows = session.execute(query).all()
    found = [(project_id, sha256) for project_id, sha256, is_loose in rows if is_loose]
    return Walked(found, (rows[-1][0], rows[-1][1]) if len(rows) == limit else None)


def drop_unreferenced(session: Session, keys: Sequence[Key], before: datetime) -> list[str]:
    """Let the projects no longer hold these contents, as far as still nothing refers to them; their bytes are doomed.

    What somebody else has locked is about to be referred to, or to come in again, and stays.
    """
    held = tuple_(Blob.project_id, Blob.sha256)
    locked = session.execute(
        select(Blob.project_id, Blob.sha256).where(held.in_(keys)).with_for_update(skip_locked=True)
    ).all()
    if not locked:
        return []
    # A statement of its own: it sees what was committed before the rows were locked, which the first may not.
    return _dropped(
        session, and_(held.in_([tuple(row) for row in locked]), _age_ended(before), _unreferenced())
    )


def drop_held(session: Session, project_id: str, limit: int) -> int:
    """Let a project no longer hold some of its contents, whatever refers to them; how many."""
    some = select(Blob.sha256).where(Blob.project_id == project_id).limit(limit).with_for_update()
    shas = session.scalars(some).all()
    return len(_dropped(session, and_(Blob.project_id == project_id, Blob.sha256.in_(shas))))


def _dropped(session: Session, which: ColumnElement[bool]) -> list[str]:
    gone = session.execute(
        delete(Blob)
        .where(which)
        .returning(Blob.sha256, Blob.bytes)
        .execution_options(synchronize_session=False)
    ).all()
    for sha256, size in sorted(gone):  # in one order, so that two who do it never wait for each other
        promise(session, sha256, size)
    return [sha256 for sha256, _ in gone]


def promise(session: Session, sha256: str, size: int, begins: timedelta = timedelta()) -> None:
    """Let content go after a while, counted from now or later, unless a project holds it by then.

    Said also of content that is just about to be put in place: should its process die before the row, its bytes go.
    """
    statement = insert(session, DoomedBlob).values(sha256=sha256, bytes=size, at=now() + begins)
    said = statement.excluded
    # Who drops the row of another project takes no time away from who is just putting the bytes in place.
    facts = {"bytes": said.bytes, "at": case((said["at"] < DoomedBlob.at, DoomedBlob.at), else_=said["at"])}
    session.connection().execute(statement.on_conflict_do_update(index_elements=["sha256"], set_=facts))


def doomed(session: Session, before: datetime, after: str, limit: int) -> list[str]:
    """Contents that were doomed before a moment, in the order of their sha256."""
    query = select(DoomedBlob.sha256).where(DoomedBlob.at < before, DoomedBlob.sha256 > after)
    return list(session.scalars(query.order_by(DoomedBlob.sha256).limit(limit)))


def is_doomed(session: Session, sha256: str, before: datetime) -> bool:
    """Whether content is still doomed as it was before a moment; then who keeps it waits for this transaction."""
    query = select(DoomedBlob.sha256).where(DoomedBlob.sha256 == sha256, DoomedBlob.at < before)
    return session.scalar(query.with_for_update(skip_locked=True)) is not None


def is_held(session: Session, sha256: str) -> bool:
    """Whether any project holds content."""
    return bool(session.scalar(select(exists().where(Blob.sha256 == sha256))))


def ended_jobs(session: Session, before: datetime, after: str, limit: int) -> tuple[list[str], str | None]:
    """Jobs among the next `limit` after an id that ended before a moment and have more events than their end.

    And the id to go on after; None at the end of those that are old enough.
    """
    query = select(Job.id, Job.finished_at).where(Job.id > after, Job.id < first_id(before))
    rows = session.execute(query.order_by(Job.id).limit(limit)).all()
    ended = [id_ for id_, finished_at in rows if finished_at is not None and finished_at < before]
    told = select(JobEvent.job_id).distinct().where(JobEvent.job_id.in_(ended), JobEvent.key != _END)
    return list(session.scalars(told)), rows[-1][0] if len(rows) == limit else None


def drop_events(session: Session, job_ids: Sequence[str]) -> int:
    """Forget what ended jobs said on their way; that they ended is still told to who listens late."""
    gone = delete(JobEvent).where(JobEvent.job_id.in_(job_ids), JobEvent.key != _END)
    return _rows(session, gone)


def _rows(session: Session, statement: Delete) -> int:
    done = session.execute(statement.execution_options(synchronize_session=False))
    return cast("CursorResult[None]", done).rowcount
