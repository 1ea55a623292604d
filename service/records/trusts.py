"""Queries over trusts: whose signed identities open which project."""

from collections.abc import Sequence

from sqlalchemy import delete, func, select
from sqlalchemy.orm import Session

from service.records.models import Project, Trust
from service.records.pages import Page, cut, decode, encode, fetched, identifier

_LISTING = "trusts"


def add(session: Session, trust: Trust) -> None:
    """Remember a trust."""
    session.add(trust)
    session.flush()


def count(session: Session, project_id: str) -> int:
    """How many trusts a project has."""
    return session.scalar(select(func.count()).where(Trust.project_id == project_id)) or 0


def of_issuer(session: Session, issuer: str, project: str | None = None) -> Sequence[tuple[Trust, str]]:
    """Every trust in an issuer with the name of its project, oldest first; with `project`, those of the one so called."""
    query = (
        select(Trust, Project.name)
        .join(Project, Project.id == Trust.project_id)
        .where(Trust.issuer == issuer, Project.deleted_at.is_(None))
        .order_by(Trust.id)
    )
    if project is not None:
        query = query.where(Project.name == project)
    return [(trust, name) for trust, name in session.execute(query)]


def locked(session: Session, id_: str) -> Trust | None:
    """The trust, which nobody else removes before the end of the transaction."""
    return session.scalar(select(Trust).where(Trust.id == id_).with_for_update())


def page(session: Session, project_id: str, *, limit: int, cursor: str | None = None) -> Page[Trust]:
    """Trusts of a project, newest first. Raises: BadCursor."""
    query = select(Trust).where(Trust.project_id == project_id)
    after = decode(cursor, _LISTING, identifier)
    if after is not None:
        query = query.where(Trust.id < after[0])
    rows = session.scalars(query.order_by(Trust.id.desc()).limit(fetched(limit))).all()
    return cut(rows, limit, lambda row: encode(_LISTING, row.id))


def remove(session: Session, project_id: str, id_: str) -> Trust | None:
    """Forget a trust of the project; what it was."""
    gone = delete(Trust).where(Trust.project_id == project_id, Trust.id == id_).returning(Trust)
    return session.scalar(gone)
