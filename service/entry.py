"""The door: every request passes here before anything is read of it, with the limits that hold for who sends it."""

from collections.abc import Callable
from contextlib import suppress
from typing import Final, TypeVar

from service import auth
from service.auth import Caller, Session
from service.errors import Unauthorized
from service.parts import Parts
from service.records import projects, tokens
from service.records.database import Database
from service.records.types import now
from service.scopes import READ

Opened = TypeVar("Opened")

ANONYMOUS: Final = "anonymous"
AGAIN_SECONDS: Final = 5.0  # after which a stream asks whether its reader is still let in


def bearer(parts: Parts, secret: str | None, address: str) -> Caller:
    """Who sends a request of the API, with this token or without one. Raises: Unauthorized, RateLimited."""
    if secret is None:
        return _anonymous(parts, address)
    caller = _tried(parts, secret, address, auth.authenticate)
    parts.rates.request(caller.token_id, address)
    parts.uses.note(parts.database, secret, caller)
    return caller


def visitor(parts: Parts, cookie: str | None, address: str) -> Caller:
    """Who looks at a page: the owner of the session, or anybody where the settings let them. Raises: Unauthorized, RateLimited.

    A cookie that opens nothing is no failed try: every page that stays open sends one when its session has ended.
    """
    with suppress(Unauthorized):
        caller = auth.session_caller(parts.database, cookie)
        parts.rates.request(caller.token_id, address)
        parts.uses.note(parts.database, cookie, caller)
        return caller
    return _anonymous(parts, address)


def log_in(parts: Parts, secret: str | None, address: str) -> Session:
    """A browser's session for who knows a token. Raises: Unauthorized, RateLimited."""
    parts.rates.request(None, address)  # each leaves a line in the log, for good
    return _tried(parts, secret, address, auth.open_session)


def lasts(parts: Parts, caller: Caller) -> bool:
    """Whether who was let in still would be: for answers that go on for long."""
    with parts.database.read() as session:
        if caller.token_id is None:
            return projects.by_id(session, caller.project_id) is not None
        return tokens.lives(session, caller.project_id, caller.token_id, now())


def _tried(
    parts: Parts, secret: str | None, address: str, look: Callable[[Database, str | None], Opened]
) -> Opened:
    if not parts.uses.knows(secret):
        parts.rates.require_few_failures(address)
    try:
        return look(parts.database, secret)
    except Unauthorized:
        parts.uses.forget(secret)
        parts.rates.failure(address)
        raise


def _anonymous(parts: Parts, address: str) -> Caller:
    name = parts.settings.anonymous_read
    if name is None:
        raise Unauthorized()
    parts.rates.request(None, address)
    with parts.database.read() as session:
        project = projects.by_name(session, name)
    if project is None:
        raise Unauthorized()
    return Caller(project.id, frozenset((READ,)), ANONYMOUS)
