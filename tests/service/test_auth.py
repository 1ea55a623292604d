"""Tokens and sessions: told once, stored as hashes, replaced and expired."""

from datetime import timedelta

import pytest
from sqlalchemy import select

from service import auth
from service.errors import Unauthorized
from service.records.database import Database
from service.records.models import DEFAULT_PROJECT, Token


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


def test_a_new_token_ends_the_old_one_and_its_sessions(database: Database) -> None:
    old = auth.new_token(database)
    session = auth.open_session(database, old)
    new = auth.new_token(database)
    assert new != old
    auth.authenticate(database, new)
    with pytest.raises(Unauthorized):
        auth.authenticate(database, old)
    with pytest.raises(Unauthorized):
        auth.session_caller(database, session.secret)


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
