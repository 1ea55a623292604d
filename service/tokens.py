"""Tokens of a project: made, listed and revoked by its administrators."""

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta

from service import auth
from service.auth import Caller, Made
from service.errors import Fault, InvalidRequest, ScopeMissing, TokenNotFound
from service.parts import Parts
from service.records import audit, tokens
from service.records.database import Database
from service.records.models import Token
from service.records.pages import Page
from service.records.types import now
from service.scopes import widened


def create(
    parts: Parts, caller: Caller, *, name: str, scopes: Sequence[str], expires_in_days: int | None
) -> Made:
    """A token that may do no more, and lives no longer, than what its maker was let in with.

    Raises: ScopeMissing, InvalidRequest.
    """
    lacking = widened(scopes) - caller.scopes
    if lacking:
        raise ScopeMissing(min(lacking))
    expires = None if expires_in_days is None else now() + timedelta(days=expires_in_days)
    end = _end(parts.database, caller)
    if end is not None and (expires is None or expires > end):
        fault = Fault("body", "$.expires_in_days", f"later than {end.isoformat()}")
        raise InvalidRequest("A token that expires makes none that lasts longer.", fault)
    return auth.make_token(
        parts.database, caller.project_id, scopes, name=name, expires_at=expires, created_by=caller.actor
    )


def page(
    parts: Parts,
    caller: Caller,
    *,
    limit: int,
    cursor: str | None = None,
    kinds: Collection[str] | None = None,
) -> Page[Token]:
    """Tokens, identities and sessions of the caller's project, newest first. Raises: BadCursor."""
    with parts.database.read() as session:
        return tokens.page(session, caller.project_id, limit=limit, cursor=cursor, kinds=kinds)


def revoke(database: Database, project_id: str, actor: str, id_: str) -> None:
    """From now on it opens nothing, and no session that was opened with it does. Raises: TokenNotFound."""
    with database.write() as session:
        found = tokens.by_id(session, project_id, id_, lock=True)
        if found is None:
            raise TokenNotFound("This project has no such token.")
        detail = {"name": found.name, "kind": found.kind}
        tokens.remove_with_children(session, project_id, id_)
        audit.add(session, project_id, actor, "token.revoked", id_, detail)


def _end(database: Database, caller: Caller) -> datetime | None:
    """When the token ends that the caller has, or that opened its session."""
    with database.read() as session:
        found = tokens.by_id(session, caller.project_id, caller.token_id or "")
        if found is not None and found.kind == "session":
            found = tokens.by_id(session, caller.project_id, found.parent_id or "")
    return caller.expires_at if found is None else found.expires_at
