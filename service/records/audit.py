"""The log of what was done: added to in the transaction that does it, read newest first, and never changed."""

from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from service import logs
from service.records.models import Audit
from service.records.pages import Page, cut, decode, encode, fetched, identifier
from service.records.types import new_id, now

_LISTING = "audit"


def add(
    session: Session,
    project_id: str | None,
    actor: str,
    action: str,
    subject: str | None = None,
    detail: Any = None,
    request_id: str | None = None,
) -> None:
    """Note that `actor` did `action` to `subject`, by the request at hand. Nothing of this may hold a secret."""
    session.add(
        Audit(
            id=new_id(),
            project_id=project_id,
            actor=actor[:200],
            action=action,
            subject=subject,
            detail=detail,
            request_id=request_id or logs.request_id(),
            at=now(),
        )
    )
    session.flush()


def entries(
    session: Session, project_id: str, *, limit: int, cursor: str | None = None, action: str | None = None
) -> Page[Audit]:
    """What was done in a project, newest first. Raises: BadCursor."""
    query = select(Audit).where(Audit.project_id == project_id)
    if action is not None:
        query = query.where(Audit.action == action)
    after = decode(cursor, _LISTING, identifier)
    if after is not None:
        query = query.where(Audit.id < after[0])
    rows = session.scalars(query.order_by(Audit.id.desc()).limit(fetched(limit))).all()
    return cut(rows, limit, lambda row: encode(_LISTING, row.id))
