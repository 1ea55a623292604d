"""What opens a project: bearer tokens for the API, session cookies for the pages, both 256 random bits, kept as sha256.

A secret is told once and never again. Looking one up is one hash and one query by primary key, whether it is missing,
malformed, wrong or right: what is compared is a hash, so time says nothing of the secret. `service.entry` asks here for
every request, and knows of limits and of readers without a token.
"""

import hashlib
import secrets
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from sqlalchemy.orm import Session as RecordSession

from service.errors import Unauthorized
from service.records import audit, tokens
from service.records.database import Database
from service.records.models import DEFAULT_PROJECT, Token, Trust
from service.records.types import now
from service.scopes import ADMIN, spelled, widened

COOKIE: Final = "ninfer_gate_session"
SESSION: Final = timedelta(days=7)
BEARERS: Final = ("api", "oidc")  # kinds of tokens that the API takes
COMMAND_LINE: Final = "command line"  # how the log names who works on the database itself
_NAMED: Final = {"api": "token", "session": "session of", "oidc": "identity"}
_PREFIX: Final = "ng_"
_MOST_CHARACTERS: Final = 200  # no secret of ours is longer


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks: `actor` is how the log names it, `scopes` all that it may do to what belongs to `project_id`."""

    project_id: str
    scopes: frozenset[str]
    actor: str
    token_id: str | None = None  # None where nobody had to say who they are
    expires_at: datetime | None = None

    def may(self, scope: str) -> bool:
        """Whether it has this scope."""
        return scope in self.scopes


@dataclass(frozen=True, slots=True)
class Made:
    """A new token: `secret` is told once and not kept, `row` is what is."""

    secret: str
    row: Token

    @property
    def actor(self) -> str:
        """How the log names who has it."""
        return _actor(self.row)


@dataclass(frozen=True, slots=True)
class Session:
    """A browser's session: `secret` goes into the cookie and is not kept."""

    secret: str
    expires_at: datetime


def first_token(database: Database) -> str | None:
    """A token when there is none yet; None when there is one, since only its hash is known."""
    secret = _secret()
    with database.write() as session:
        return secret if tokens.add_first(session, DEFAULT_PROJECT, hashed(secret)) else None


def new_token(
    database: Database,
    project_id: str = DEFAULT_PROJECT,
    scopes: Iterable[str] = (ADMIN,),
    *,
    name: str = "new",
    expires_at: datetime | None = None,
) -> str:
    """One more token, for whoever may write to the database itself; those made before stay. Raises: ValueError for scopes."""
    return make_token(
        database, project_id, scopes, name=name, expires_at=expires_at, created_by=COMMAND_LINE
    ).secret


def make_token(
    database: Database,
    project_id: str,
    scopes: Iterable[str],
    *,
    name: str,
    expires_at: datetime | None,
    created_by: str,
) -> Made:
    """A token with the scopes that are named and what they bring along. Raises: ValueError for scopes."""
    words = widened(scopes)
    secret = _secret()
    with database.write() as session:
        tokens.remove_expired(session, now())
        row = tokens.add(
            session,
            project_id,
            hashed(secret),
            "api",
            name=name,
            scopes=spelled(words),
            created_by=created_by,
            expires_at=expires_at,
        )
        detail = {"name": name, "scopes": row.scopes.split(), "expires_at": _told(expires_at)}
        audit.add(session, project_id, created_by, "token.created", row.id, detail)
    return Made(secret, row)


def add_identity(session: RecordSession, trust: Trust, subject: str, expires_at: datetime) -> Made:
    """A token for a signed identity; it ends with the trust, if not before."""
    secret = _secret()
    tokens.remove_expired(session, now())
    row = tokens.add(
        session,
        trust.project_id,
        hashed(secret),
        "oidc",
        name=subject,
        scopes=trust.scopes,
        created_by=f"trust {trust.name} ({trust.id})",
        expires_at=expires_at,
        parent_id=trust.id,
    )
    return Made(secret, row)


def authenticate(database: Database, token: str | None) -> Caller:
    """Who sent this bearer token. Raises: Unauthorized."""
    return _caller(database, token, BEARERS)


def session_caller(database: Database, secret: str | None) -> Caller:
    """Whose browser sent this cookie. Raises: Unauthorized, also when the session has expired."""
    return _caller(database, secret, ("session",))


def open_session(database: Database, token: str | None) -> Session:
    """A session for who knows an API token; it ends no later than the token. Raises: Unauthorized."""
    caller = _caller(database, token, ("api",))
    expires = now() + SESSION
    session = Session(_secret(), expires if caller.expires_at is None else min(expires, caller.expires_at))
    with database.write() as records:
        tokens.remove_expired(records, now())
        # Whoever revokes the token in this moment waits for us, or we find that it is gone.
        if tokens.by_id(records, caller.project_id, caller.token_id or "", lock=True) is None:
            raise Unauthorized()
        tokens.add(
            records,
            caller.project_id,
            hashed(session.secret),
            "session",
            name="browser",
            scopes=spelled(caller.scopes),
            created_by=caller.actor,
            expires_at=session.expires_at,
            parent_id=caller.token_id,
        )
        audit.add(records, caller.project_id, caller.actor, "session.opened", caller.token_id)
    return session


def close_session(database: Database, secret: str | None) -> None:
    """Forget a session; one that is not known is fine. A token is no session and stays."""
    with database.write() as session:
        found = tokens.find(session, hashed(secret), now())
        if found is not None and found.kind == "session":
            tokens.remove(session, found.sha256)


def hashed(secret: str | None) -> str:
    """What is stored of a secret; of none at all, and of one that is too long to be ours, a hash that nothing has."""
    known = "" if secret is None or len(secret) > _MOST_CHARACTERS else secret
    return hashlib.sha256(known.encode("utf-8", "backslashreplace")).hexdigest()


def _caller(database: Database, secret: str | None, kinds: Collection[str]) -> Caller:
    with database.read() as session:
        found = tokens.find(session, hashed(secret), now())
        scopes = frozenset() if found is None else tokens.scopes(session, found, now())
    if found is None or found.kind not in kinds or not scopes:
        raise Unauthorized()
    return Caller(
        found.project_id,
        scopes,
        _actor(found),
        found.id,
        found.expires_at,
    )


def _actor(row: Token) -> str:
    return f"{_NAMED[row.kind]} {row.name} ({row.id})"


def _secret() -> str:
    return _PREFIX + secrets.token_urlsafe(32)


def _told(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat()
