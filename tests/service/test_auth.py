"""Tokens and sessions: told once, stored as hashes, replaced and expired."""

from datetime import timedelta

import pytest
from sqlalchemy import select

from service import auth, tokens
from service.errors import Unauthorized
from service.records.database import Database
from service.records.models import DEFAULT_PROJECT, Token
from service.records.types import now


def test_the_first_token_is_made_once(database: Database) -> None:
    token = auth.first_token(database)
    assert token is not None
    assert len(token) > 43  # 256 bits
    assert auth.first_token(database) is None
    assert auth.authenticate(database, token).project_id == DEFAULT_PROJECT


def test_only_hashes_are_stored(database: Database) -> None:
    token = auth.new_token(database)
    session = auth.open_session(database, token)
    with database.read() as records:
        rows = records.scalars(select(Token)).all()
    assert {row.sha256 for row in rows} == {auth.hashed(token), auth.hashed(session.secret)}
    assert token not in str([vars(row) for row in rows])


@pytest.mark.parametrize("wrong", [None, "", "x", "ng_" + "x" * 43, "x" * 100_000, "\ud800", "\0"])
def test_whatever_is_no_token_opens_nothing(database: Database, wrong: str | None) -> None:
    auth.new_token(database)
    for look in (auth.authenticate, auth.session_caller, auth.open_session):
        with pytest.raises(Unauthorized):
            look(database, wrong)
    auth.close_session(database, wrong)


def test_a_token_that_is_revoked_takes_its_sessions_along(database: Database) -> None:
    old = auth.new_token(database)
    session = auth.open_session(database, old)
    new = auth.new_token(database)
    other = auth.open_session(database, new)
    caller = auth.authenticate(database, old)
    tokens.revoke(database, caller.project_id, "test", caller.token_id or "")
    for secret, look in (
        (old, auth.authenticate),
        (session.secret, auth.session_caller),
        (old, auth.open_session),
    ):
        with pytest.raises(Unauthorized):
            look(database, secret)
    auth.authenticate(database, new)
    auth.session_caller(database, other.secret)


def test_a_session_ends_no_later_than_its_token(database: Database) -> None:
    ends = now() + timedelta(hours=2)
    session = auth.open_session(database, auth.new_token(database, expires_at=ends))
    assert session.expires_at == ends


def test_tokens_and_sessions_are_not_each_other(database: Database) -> None:
    token = auth.new_token(database)
    session = auth.open_session(database, token)
    assert auth.session_caller(database, session.secret).project_id == DEFAULT_PROJECT
    with pytest.raises(Unauthorized):
        auth.authenticate(database, session.secret)
    with pytest.raises(Unauthorized):
        auth.session_caller(database, token)
    auth.close_session(database, token)  # logging out with a token ends no token
    auth.authenticate(database, token)
    auth.close_session(database, session.secret)
    with pytest.raises(Unauthorized):
        auth.session_caller(database, session.secret)


def test_sessions_expire(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    session = auth.open_session(database, auth.new_token(database))
    later = session.expires_at
    monkeypatch.setattr(auth, "now", lambda: later - timedelta(seconds=1))
    auth.session_caller(database, session.secret)
    monkeypatch.setattr(auth, "now", lambda: later)
    with pytest.raises(Unauthorized):
        auth.session_caller(database, session.secret)
