"""Tokens over HTTP, limits, and the log: made, used, ended, counted and noted."""

import time
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
from sqlalchemy import delete, update
from sqlalchemy.exc import DBAPIError

from service import auth, entry, tokens
from service.auth import Caller
from service.blobs import BlobStore
from service.errors import RateLimited, ScopeMissing, Unauthorized
from service.parts import Parts
from service.rates import Rates
from service.records import audit
from service.records.database import Database
from service.records.models import Audit
from service.records.types import now
from service.settings import Settings
from service.uses import Uses
from tests.service.api.world import Remembering, World
from tests.service.records.build import P

LITTLE = {"rate_limit": "3/day", "login_rate_limit": "2/day"}


def make(api: World, **asked: Any) -> httpx.Response:
    """A token is asked for."""
    return api.call("POST", "/v1/tokens", json={"name": "ci", "scopes": ["submit"], **asked})


def as_(token: str) -> dict[str, str]:
    """Its header."""
    return {"Authorization": f"Bearer {token}"}


def test_told_once_listed_used_and_revoked(fresh: World) -> None:
    answer = make(fresh, expires_in_days=3)
    made = answer.json()
    assert answer.status_code == 201
    assert answer.headers["location"] == f"/v1/tokens/{made['id']}"
    assert answer.headers["cache-control"] == "no-store"
    secret = made.pop("token")
    assert made["scopes"] == ["read", "submit"]
    assert (
        timedelta(days=2, hours=23) < datetime.fromisoformat(made["expires_at"]) - now() <= timedelta(days=3)
    )
    you = fresh.call("GET", "/v1/project", headers=as_(secret)).json()["you"]
    assert you["actor"] == f"token ci ({made['id']})"
    listed = used(fresh, made["id"])
    assert {**listed, "last_used_at": None} == made
    assert fresh.call("DELETE", f"/v1/tokens/{made['id']}").status_code == 204
    assert fresh.call("GET", "/v1/project", headers=as_(secret)).status_code == 401
    assert fresh.call("DELETE", f"/v1/tokens/{made['id']}").status_code == 404
    log = fresh.call("GET", "/v1/audit").json()["items"]
    assert [row["action"] for row in log] == ["token.revoked", "token.created", "token.created"]
    assert log[0]["subject"] == log[1]["subject"] == made["id"]
    assert log[0]["request_id"] != log[1]["request_id"]
    assert secret not in str(log) + str(listed)


def used(api: World, id_: str) -> dict[str, Any]:
    """The token in the list, once it is noted that it was used, which is beside the requests."""
    end = time.monotonic() + 10
    while time.monotonic() < end:
        (row,) = (row for row in api.call("GET", "/v1/tokens").json()["items"] if row["id"] == id_)
        if row["last_used_at"] is not None:
            return dict(row)
        time.sleep(0.01)
    raise AssertionError("its use was never noted")


def test_a_token_gives_no_more_and_for_no_longer_than_it_has(fresh: World) -> None:
    database = fresh.parts.database
    short = auth.new_token(database, expires_at=now() + timedelta(days=2))
    for days, status in ((1, 201), (3, 422), (None, 422)):
        assert make(fresh, expires_in_days=days, scopes=["read"]).status_code == 201
        body = {"name": "n", "scopes": ["read"], "expires_in_days": days}
        assert fresh.call("POST", "/v1/tokens", json=body, headers=as_(short)).status_code == status, days
    # A session ends sooner than the token that opened it, which is what counts.
    session = auth.open_session(database, fresh.token)
    person = auth.session_caller(database, session.secret)
    assert tokens.create(fresh.parts, person, name="n", scopes=["admin"], expires_in_days=None).secret
    reader = Caller(P, frozenset(("read",)), "reader")
    with pytest.raises(ScopeMissing):
        tokens.create(fresh.parts, reader, name="n", scopes=["submit"], expires_in_days=1)


@pytest.mark.parametrize(
    "changes",
    [
        {"scopes": []},
        {"scopes": ["root"]},
        {"name": ""},
        {"name": "x" * 101},
        {"name": "a\0"},  # two characters in a row of PostgreSQL
        {"name": "a\nb"},
        {"expires_in_days": 0},
        {"more": 1},
    ],
)
def test_what_is_no_token(api: World, changes: dict[str, Any]) -> None:
    assert make(api, **changes).status_code == 422


def test_pages_of_tokens_and_of_the_log(api: World) -> None:
    made = {make(api).json()["id"] for _ in range(5)}
    for path, known in (("/v1/tokens", made), ("/v1/audit?action=token.created", made)):
        walked: list[str] = []
        cursor: str | None = None
        while True:
            more = {"limit": "2"} | ({} if cursor is None else {"cursor": cursor})
            page = api.call("GET", path, params={**dict(httpx.URL(path).params), **more}).json()
            walked += [row["id"] if path == "/v1/tokens" else row["subject"] for row in page["items"]]
            cursor = page["next"]
            if cursor is None:
                break
        assert known <= set(walked)
        assert len(walked) == len(set(walked))
    sessions = api.call("GET", "/v1/tokens", params={"kind": "session"}).json()["items"]
    assert sessions == []


def test_the_log_only_grows(database: Database) -> None:
    """On each kind of database, whoever holds the connection."""
    with database.write() as session:
        audit.add(session, P, "somebody", "thing.done")
    for statement in (update(Audit).values(actor="nobody"), delete(Audit)):
        with pytest.raises(DBAPIError), database.write() as session:
            session.execute(statement)
    with database.read() as session:
        (row,) = audit.entries(session, P, limit=5).items
    assert row.actor == "somebody"


@pytest.fixture
def parts(database: Database, tmp_path: Path) -> Iterator[Parts]:
    """With little patience."""
    made = Parts(Settings(data=tmp_path, **LITTLE), database, BlobStore(tmp_path), Remembering())
    yield made
    assert made.uses.settle()  # or its thread would hold a connection of a database that is closed


def test_a_token_has_its_limit_and_others_have_theirs(parts: Parts) -> None:
    one, two = (auth.new_token(parts.database) for _ in range(2))
    for _ in range(3):
        entry.bearer(parts, one, "192.0.2.1")
    with pytest.raises(RateLimited) as caught:
        entry.bearer(parts, one, "192.0.2.2")
    assert 1 <= int(caught.value.headers["Retry-After"]) <= 86_400
    entry.bearer(parts, two, "192.0.2.1")


def test_logging_in_has_its_limit_too(parts: Parts) -> None:
    """Each session leaves a line in the log that nobody takes away."""
    token = auth.new_token(parts.database)
    for _ in range(3):
        entry.log_in(parts, token, "192.0.2.1")
    with pytest.raises(RateLimited):
        entry.log_in(parts, token, "192.0.2.1")


def test_failed_tries_of_an_address(parts: Parts) -> None:
    """Then it is refused unheard, but for tokens that opened something here: nobody locks the others out."""
    known, unknown = (auth.new_token(parts.database) for _ in range(2))
    entry.bearer(parts, known, "192.0.2.1")
    for _ in range(2):
        with pytest.raises(Unauthorized):
            entry.bearer(parts, "ng_wrong", "192.0.2.1")
    for look in (entry.bearer, entry.log_in):
        for secret in ("ng_wrong", unknown):
            with pytest.raises(RateLimited):
                look(parts, secret, "192.0.2.1")
    entry.bearer(parts, known, "192.0.2.1")
    entry.log_in(parts, known, "192.0.2.1")
    entry.bearer(parts, unknown, "192.0.2.2")
    with pytest.raises(Unauthorized):
        entry.bearer(parts, None, "192.0.2.1")  # somebody without a token tries nothing


def test_a_revoked_token_is_no_known_one(parts: Parts) -> None:
    known = auth.new_token(parts.database)
    caller = entry.bearer(parts, known, "192.0.2.1")
    tokens.revoke(parts.database, P, "test", caller.token_id or "")
    for _ in range(2):
        with pytest.raises(Unauthorized):
            entry.bearer(parts, known, "192.0.2.1")
    with pytest.raises(RateLimited):
        entry.bearer(parts, known, "192.0.2.1")


def test_addresses_that_are_one_home() -> None:
    rates = Rates(Settings(**LITTLE))
    for address in ("2001:db8:1:2::1", "2001:db8:1:2:ffff::9"):
        rates.failure(address)
    with pytest.raises(RateLimited):
        rates.require_few_failures("2001:db8:1:2::77")
    rates.require_few_failures("2001:db8:1:3::1")
    for address in ("192.0.2.1", "::ffff:192.0.2.1"):
        rates.failure(address)
    with pytest.raises(RateLimited):
        rates.require_few_failures("192.0.2.1")
    rates.require_few_failures("no address")


def test_uses_are_written_once_a_minute(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[set[str]] = []
    monkeypatch.setattr("service.uses.tokens.note_used", lambda _, noted: written.append(set(noted)))
    uses = Uses()
    caller = Caller(P, frozenset(), "somebody", "id")
    for _ in range(50):
        uses.note(database, "secret", caller)
    assert uses.settle()
    assert written == [{"id"}]
    moment = time.monotonic()
    monkeypatch.setattr("service.uses.time.monotonic", lambda: moment + 61)
    uses.note(database, "secret", caller)
    assert uses.settle()
    assert written == [{"id"}, {"id"}]
    uses.note(database, "cookie", Caller(P, frozenset(), "anonymous"))
    assert uses.settle()
    assert len(written) == 2


@pytest.mark.parametrize("wrong", ["", "6000", "0/minute", "many/minute", "5/fortnight", "1/minute; 2/hour"])
def test_limits_that_are_none(wrong: str) -> None:
    with pytest.raises(ValueError, match="rate_limit"):
        Settings(rate_limit=wrong)


def test_security_headers(api: World) -> None:
    for answer in (api.call("GET", "/v1/jobs"), api.call("GET", "/v1/nothing"), api.call("GET", "/healthz")):
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["x-frame-options"] == "DENY"
        assert answer.headers["content-security-policy"].startswith("default-src 'none'")
        assert answer.headers["referrer-policy"] == "no-referrer"
        assert "access-control-allow-origin" not in answer.headers
