"""Who asks: a bearer token for the API, a session cookie for the pages. Both are 256 random bits, stored as sha256.

There is one project and one token until tenants and roles come. A token is told once and never again; a new one
ends the old one and every session that it opened. Looking one up is one hash and one query by primary key, whether it
is missing, malformed, wrong or right: what is compared is a hash, so time says nothing of the secret.
"""

import hashlib
import secrets
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from service.errors import Unauthorized
from service.records import tokens
from service.records.database import Database
from service.records.models import DEFAULT_PROJECT
from service.records.types import now
from service.scopes import ADMIN, spelled, widened

COOKIE: Final = "ninfer_gate_session"
SESSION: Final = timedelta(days=7)
_PREFIX: Final = "ng_"
_MOST_CHARACTERS: Final = 200  # no secret of ours is longer


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks: `actor` is how the log names it, `scopes` all that it may do to what belongs to `project_id`."""

    project_id: str
    scopes: frozenset[str]
    actor: str
    token_id: str | None = None  # None where nobody had to say who they are

    def may(self, scope: str) -> bool:
        """Whether it has this scope."""
        return scope in self.scopes


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


def new_token(database: Database) -> str:
    """A new token; tokens and sessions made before no longer open anything."""
    secret = _secret()
    with database.write() as session:
        tokens.remove_all(session, DEFAULT_PROJECT)
        tokens.add(
            session,
            DEFAULT_PROJECT,
            hashed(secret),
            "api",
            name="new",
            scopes=ADMIN,
            created_by="command line",
        )
    return secret


def authenticate(database: Database, token: str | None) -> Caller:
    """Who sent this bearer token. Raises: Unauthorized."""
    return _caller(database, token, "api")


def session_caller(database: Database, secret: str | None) -> Caller:
    """Whose browser sent this cookie. Raises: Unauthorized, also when the session has expired."""
    return _caller(database, secret, "session")


def open_session(database: Database, token: str | None) -> Session:
    """A session for who knows the token. Raises: Unauthorized."""
    caller = authenticate(database, token)
    session = Session(_secret(), now() + SESSION)
    with database.write() as records:
        tokens.remove_expired(records, now())
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


def _caller(database: Database, secret: str | None, kind: str) -> Caller:
    with database.read() as session:
        found = tokens.find(session, hashed(secret), now())
    if found is None or found.kind != kind:
        raise Unauthorized()
    return Caller(
        found.project_id, widened(found.scopes.split()), f"token {found.name} ({found.id})", found.id
    )


def _secret() -> str:
    return _PREFIX + secrets.token_urlsafe(32)
