"""Queries over API tokens and browser sessions, which are known by the sha256 of their text."""

from datetime import datetime

from sqlalchemy import delete, exists, or_, select
from sqlalchemy.orm import Session

from service.records.models import Project, Token
from service.records.types import new_id, now
from service.scopes import ADMIN


def add(
    session: Session,
    project_id: str,
    sha256: str,
    kind: str,
    *,
    name: str,
    scopes: str,
    created_by: str,
    expires_at: datetime | None = None,
    parent_id: str | None = None,
) -> Token:
    """Remember a token; `kind` is `api`, `session` or `oidc`, `scopes` as `service.scopes.spelled` writes them."""
    token = Token(
        project_id=project_id,
        sha256=sha256,
        id=new_id(),
        kind=kind,
        name=name,
        scopes=scopes,
        parent_id=parent_id,
        created_by=created_by,
        created_at=now(),
        expires_at=expires_at,
    )
    session.add(token)
    session.flush()
    return token


def add_first(session: Session, project_id: str, sha256: str) -> bool:
    """Remember an API token for everything that never expires, unless there is one; of processes that start at once only one does."""
    session.get(Project, project_id, with_for_update={"key_share": True}, populate_existing=True)
    if any_api(session):
        return False
    add(session, project_id, sha256, "api", name="first", scopes=ADMIN, created_by="serve")
    return True


def find(session: Session, sha256: str, now: datetime) -> Token | None:
    """The token, unless it has expired."""
    token = session.get(Token, sha256)
    if token is None or (token.expires_at is not None and token.expires_at <= now):
        return None
    return token


def any_api(session: Session) -> bool:
    """Whether there is an API token that has not expired."""
    lives = or_(Token.expires_at.is_(None), Token.expires_at > now())
    return bool(session.scalar(select(exists().where(Token.kind == "api", lives))))


def remove(session: Session, sha256: str) -> None:
    """Forget a token."""
    session.execute(delete(Token).where(Token.sha256 == sha256))


def remove_all(session: Session, project_id: str) -> None:
    """Forget every token and session of a project."""
    session.execute(delete(Token).where(Token.project_id == project_id))


def remove_expired(session: Session, now: datetime) -> int:
    """Forget the tokens that have expired; how many there were."""
    gone = session.scalars(delete(Token).where(Token.expires_at <= now).returning(Token.sha256))
    return len(gone.all())
