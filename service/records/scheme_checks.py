"""Queries over checks of schemes and struct types: what was asked, and the document that came of it."""

from collections.abc import Collection
from typing import Any, Final

from sqlalchemy import select
from sqlalchemy.orm import Session, undefer

from service.records import answers
from service.records.models import Job, SchemeCheck
from service.records.pages import Page, cut, decode, encode, fetched, identifier

_LISTING: Final = "scheme_checks"


def add(session: Session, check: SchemeCheck) -> SchemeCheck:
    """The stored check: `check`, or the one that its job has already."""
    return answers.add(session, check)


def get(session: Session, project_id: str, id_: str) -> SchemeCheck | None:
    """The check with an id, its document too."""
    query = select(SchemeCheck).where(SchemeCheck.project_id == project_id, SchemeCheck.id == id_)
    return session.scalars(query.options(undefer(SchemeCheck.document))).one_or_none()


def jobs_of(session: Session, checks: Collection[SchemeCheck]) -> dict[str, Job]:
    """The jobs of checks, by their ids."""
    query = select(Job).where(Job.id.in_({check.job_id for check in checks}))
    return {job.id: job for job in session.scalars(query)}


def by_job(session: Session, job_id: str) -> SchemeCheck | None:
    """The check of a job."""
    return answers.by_job(session, SchemeCheck, job_id)


def page(
    session: Session,
    project_id: str,
    *,
    limit: int,
    cursor: str | None = None,
    form: str | None = None,
    verdict: str | None = None,
) -> Page[SchemeCheck]:
    """Checks without their documents, newest first. Raises: BadCursor."""
    query = select(SchemeCheck).where(SchemeCheck.project_id == project_id)
    if form is not None:
        query = query.where(SchemeCheck.form == form)
    if verdict is not None:
        query = query.where(SchemeCheck.verdict == verdict)
    after = decode(cursor, _LISTING, identifier)
    if after is not None:
        query = query.where(SchemeCheck.id < after[0])
    rows = session.scalars(query.order_by(SchemeCheck.id.desc()).limit(fetched(limit))).all()
    return cut(rows, limit, lambda row: encode(_LISTING, row.id))


def save(session: Session, check_id: str, document: dict[str, Any]) -> None:
    """Set the verdict, the document and how many findings it has, unless they are set. Raises: JobOver."""
    severities = [finding["severity"] for finding in document["findings"]]
    answer = {
        "verdict": document["verdict"],
        "errors": severities.count("error"),
        "advisories": severities.count("advisory"),
        "document": document,
    }
    answers.save(session, SchemeCheck, check_id, answer)
