"""Queries over imports: what was to be fetched, and the document that says what it was."""

from typing import Any, Final

from sqlalchemy import select
from sqlalchemy.orm import Session

from service.records import answers
from service.records.events import IS_OPEN
from service.records.models import Import, Job
from service.records.pages import Page, cut, decode, encode, fetched, identifier

_LISTING: Final = "imports"


def add(session: Session, row: Import) -> Import:
    """The stored import: `row`, or the one that its job has already."""
    return answers.add(session, row)


def get(session: Session, project_id: str, id_: str) -> tuple[Import, Job] | None:
    """The import with an id, and its job."""
    query = select(Import, Job).join(Job, Job.id == Import.job_id)
    found = session.execute(query.where(Import.project_id == project_id, Import.id == id_)).one_or_none()
    return None if found is None else (found[0], found[1])


def by_job(session: Session, job_id: str) -> Import | None:
    """The import of a job."""
    return answers.by_job(session, Import, job_id)


def open_job(session: Session, project_id: str, source: str) -> Job | None:
    """The job that is at this source, or waits to be."""
    query = select(Job).join(Import, Import.job_id == Job.id)
    query = query.where(Job.project_id == project_id, IS_OPEN, Import.source == source)
    return session.scalars(query.limit(1)).one_or_none()


def page(
    session: Session, project_id: str, *, limit: int, cursor: str | None = None
) -> Page[tuple[Import, Job]]:
    """Imports with their jobs, newest first. Raises: BadCursor."""
    query = select(Import, Job).join(Job, Job.id == Import.job_id).where(Import.project_id == project_id)
    after = decode(cursor, _LISTING, identifier)
    if after is not None:
        query = query.where(Import.id < after[0])
    rows = session.execute(query.order_by(Import.id.desc()).limit(fetched(limit))).all()
    return cut([(row[0], row[1]) for row in rows], limit, lambda row: encode(_LISTING, row[0].id))


def save(session: Session, import_id: str, document: dict[str, Any]) -> None:
    """Set what was stored, unless it is set. Raises: JobOver."""
    answers.save(session, Import, import_id, {"verdict": "stored", "document": document})
