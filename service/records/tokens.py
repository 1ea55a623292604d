"""Queries over API tokens and browser sessions, which are known by the sha256 of their text."""

from collections.abc import Collection, Mapping
from datetime import datetime

from sqlalchemy import and_, delete, exists, or_, select, update
from sqlalchemy.orm import Session

from service.records.models import Project, Token
from service.records.models.tenants import EARLIER
from service.records.pages import Page, cut, decode, encode, fetched, identifier
from service.records.types import new_id, now
from service.scopes import ADMIN, widened

_LISTING = "tokens"


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
    """Remember a token; `kind` is `api`, `session` or `oidc`, `scopes` as `service.scopes.spelled` writes them.

    `parent_id` is what it ends with: the token that opened a session, the trust that an identity came by.
    """
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
    """The token, unless it has expired or its project is being deleted."""
    lives = or_(Token.expires_at.is_(None), Token.expires_at > now)
    query = select(Token).join(Project, Project.id == Token.project_id)
    return session.scalar(query.where(Token.sha256 == sha256, lives, Project.deleted_at.is_(None)))


def scopes(session: Session, token: Token, now: datetime) -> frozenset[str]:
    """What a token may do.

    A session that an API of the release before opened does not say by which token: it may do what all of them may.
    """
    if token.kind != "session" or token.created_by != EARLIER:
        return frozenset(widened(token.scopes.split()))
    lives = or_(Token.expires_at.is_(None), Token.expires_at > now)
    query = select(Token.scopes).where(Token.project_id == token.project_id, Token.kind == "api", lives)
    said = [frozenset(widened(words.split())) for words in session.scalars(query.distinct())]
    return frozenset.intersection(*said) if said else frozenset()


def lives(session: Session, project_id: str, id_: str, now: datetime) -> bool:
    """Whether a token still opens its project."""
    found = by_id(session, project_id, id_)
    return found is not None and find(session, found.sha256, now) is not None


def by_id(session: Session, project_id: str, id_: str, *, lock: bool = False) -> Token | None:
    """A token of the project by what it is called; with `lock` nobody else removes it before the end of the transaction."""
    query = select(Token).where(Token.project_id == project_id, Token.id == id_)
    return session.scalar(query.with_for_update() if lock else query)


def any_api(session: Session) -> bool:
    """Whether there is an API token that has not expired."""
    lives = or_(Token.expires_at.is_(None), Token.expires_at > now())
    return bool(session.scalar(select(exists().where(Token.kind == "api", lives))))


def page(
    session: Session,
    project_id: str,
    *,
    limit: int,
    cursor: str | None = None,
    kinds: Collection[str] | None = None,
) -> Page[Token]:
    """Tokens of a project, newest first; of all kinds unless some are named. Raises: BadCursor."""
    query = select(Token).where(Token.project_id == project_id)
    if kinds is not None:
        query = query.where(Token.kind.in_(kinds))
    after = decode(cursor, _LISTING, identifier)
    if after is not None:
        query = query.where(Token.id < after[0])
    rows = session.scalars(query.order_by(Token.id.desc()).limit(fetched(limit))).all()
    return cut(rows, limit, lambda row: encode(_LISTING, row.id))


def note_used(session: Session, used: Mapping[str, datetime]) -> None:
    """When tokens, by their ids, were last seen; one that is gone stays gone."""
    for id_, at in sorted(
        used.items()
    ):  # in one order, so that two that note at once don't wait for each other
        session.execute(update(Token).where(Token.id == id_).values(last_used_at=at))


def remove(session: Session, sha256: str) -> None:
    """Forget a token."""
    session.execute(delete(Token).where(Token.sha256 == sha256))


def remove_with_children(session: Session, project_id: str, id_: str) -> int:
    """Forget a token, or what came by a trust, and what was opened with it; how many there were."""
    # A session of the release before may have been opened with it.
    unsaid = and_(Token.kind == "session", Token.created_by == EARLIER)
    family = or_(Token.id == id_, Token.parent_id == id_, unsaid)
    gone = session.scalars(
        delete(Token).where(Token.project_id == project_id, family).returning(Token.sha256)
    )
    return len(gone.all())


def remove_expired(session: Session, now: datetime) -> int:
    """Forget the tokens that have expired; how many there were."""
    gone = session.scalars(delete(Token).where(Token.expires_at <= now).returning(Token.sha256))
    return len(gone.all())
