"""Queries that take a project away: first what opens it, then row by row all that it held, itself at last.

Which tables there are, and in which order they may be emptied, is read from the models, so that a new one is not forgotten.
The audit log is none of them.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Final, cast

from sqlalchemy import (
    ColumnElement,
    CursorResult,
    Table,
    UniqueConstraint,
    delete,
    exists,
    select,
    tuple_,
    update,
)
from sqlalchemy.orm import Session

from service.records.events import IS_OPEN
from service.records.models import Audit, Base, Blob, Campaign, Job, Project, Token, Trust, Upload
from service.records.types import now
from service.records.uploads import IS_OPEN as IS_OPEN_UPLOAD

_KEPT: Final = frozenset({Audit.__tablename__, Project.__tablename__})


def project(session: Session, project_id: str) -> Project | None:
    """A project, locked: whoever adds a row of its own waits for this transaction."""
    return session.get(Project, project_id, with_for_update=True, populate_existing=True)


def close(session: Session, found: Project) -> None:
    """Let nobody in any more, from this moment on."""
    found.deleted_at = now()
    session.flush()
    for model in (Token, Trust):
        session.execute(delete(model).where(model.project_id == found.id))


def deleted(session: Session) -> list[Project]:
    """Projects that are deleted and not gone, the longest deleted first."""
    query = select(Project).where(Project.deleted_at.is_not(None))
    return list(session.scalars(query.order_by(Project.deleted_at, Project.id)))


def open_jobs(session: Session, project_id: str, after: str, limit: int) -> list[Job]:
    """Jobs of a project that are queued or running and have an id above `after`."""
    query = select(Job).where(IS_OPEN, Job.project_id == project_id, Job.id > after)
    return list(session.scalars(query.order_by(Job.id).limit(limit)))


def stop(session: Session, project_id: str) -> None:
    """End its campaigns, and let its uploads expire."""
    moment = now()
    session.execute(
        update(Campaign)
        .where(Campaign.project_id == project_id, Campaign.state == "running")
        .values(state="cancelled", finished_at=moment)
    )
    session.execute(
        update(Upload)
        .where(IS_OPEN_UPLOAD, Upload.project_id == project_id, Upload.expires_at > moment)
        .values(expires_at=moment)
    )


def is_busy(session: Session, project_id: str, since: datetime) -> bool:
    """Whether a job of it is open, or an upload that was still open after `since`: neither may lose its rows yet."""
    jobs = exists().where(IS_OPEN, Job.project_id == project_id)
    uploads = exists().where(IS_OPEN_UPLOAD, Upload.project_id == project_id, Upload.expires_at > since)
    return bool(session.scalar(select(jobs | uploads)))


def tables() -> Iterator[Table]:
    """Every table of a tenant's data but the contents themselves, in an order in which they can be emptied."""
    for table in reversed(Base.metadata.sorted_tables):
        if "project_id" in table.c and table.name not in _KEPT and table is not Blob.__table__:
            yield table


def erase(session: Session, table: Table, project_id: str, limit: int) -> int:
    """Remove some rows of a project from a table; how many."""
    key = list(table.primary_key.columns)
    some = select(*key).where(owned(table, project_id)).limit(limit)
    which = tuple_(*key).in_(some) if len(key) > 1 else key[0].in_(some)
    done = session.execute(delete(table).where(which))
    return cast("CursorResult[None]", done).rowcount


def owned(table: Table, project_id: str) -> ColumnElement[bool]:
    """What of a table is a project's, asked in a way that an index answers: where need be, of the rows it hangs on."""
    if _leads(table, "project_id"):
        return table.c.project_id == project_id
    for link in sorted(table.foreign_keys, key=lambda link: link.parent.name):
        parent = link.column.table
        if parent.name != Project.__tablename__ and _leads(table, link.parent.name):
            return link.parent.in_(select(link.column).where(owned(parent, project_id)))
    return table.c.project_id == project_id


def _leads(table: Table, column: str) -> bool:
    """Whether an index or a unique key begins with a column."""
    keys = [list(table.primary_key.columns)]
    keys += [list(each.columns) for each in table.constraints if isinstance(each, UniqueConstraint)]
    keys += [list(each.columns) for each in table.indexes if each.dialect_options["sqlite"]["where"] is None]
    return any(key and key[0].name == column for key in keys)


def remove(session: Session, project_id: str) -> bool:
    """Forget a deleted project of which nothing is left. Raises: IntegrityError where something has come since."""
    gone = delete(Project).where(Project.id == project_id, Project.deleted_at.is_not(None))
    return cast("CursorResult[None]", session.execute(gone)).rowcount == 1
