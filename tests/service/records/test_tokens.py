"""Tokens: found by their hash until they expire."""

from datetime import datetime, timedelta

from sqlalchemy.orm import Session

from service.records import tokens
from service.records.database import Database
from service.records.types import now
from tests.service.records.build import OTHER, P, at_once, other_project, sha

HOUR = timedelta(hours=1)


def add(session: Session, project_id: str, sha256: str, kind: str, expires_at: datetime | None) -> None:
    tokens.add(
        session, project_id, sha256, kind, name="n", scopes="read", created_by="test", expires_at=expires_at
    )


def test_found_until_expired(database: Database) -> None:
    moment = now()
    with database.write() as session:
        add(session, P, sha(1), "api", None)
        add(session, P, sha(2), "session", moment + HOUR)
    with database.read() as session:
        assert tokens.find(session, sha(1), moment + 1000 * HOUR).kind == "api"
        assert tokens.find(session, sha(2), moment).project_id == P
        assert tokens.find(session, sha(2), moment + HOUR) is None
        assert tokens.find(session, sha(3), moment) is None
        assert tokens.find(session, "\0", moment) is None


def test_removed(database: Database) -> None:
    moment = now()
    with database.write() as session:
        other_project(session)
        add(session, P, sha(1), "api", None)
        add(session, P, sha(2), "session", moment - HOUR)
        add(session, P, sha(3), "session", moment + HOUR)
        add(session, OTHER, sha(4), "api", None)
        assert tokens.remove_expired(session, moment) == 1
        assert tokens.remove_expired(session, moment) == 0
        tokens.remove(session, sha(3))
        tokens.remove(session, sha(3))
        assert tokens.find(session, sha(3), moment) is None
        assert tokens.find(session, sha(4), moment) is not None


def test_any_api(database: Database) -> None:
    with database.write() as session:
        assert not tokens.any_api(session)
        add(session, P, sha(1), "session", now() + HOUR)
        add(session, P, sha(2), "api", now() - HOUR)
        assert not tokens.any_api(session)
        add(session, P, sha(3), "api", now() + HOUR)
        assert tokens.any_api(session)


def test_one_first_token_of_processes_that_start_at_once(database: Database) -> None:
    def start(number: int) -> bool:
        with database.write() as session:
            return tokens.add_first(session, P, sha(number))

    assert sorted(at_once(*(lambda n=n: start(n) for n in range(4)))) == [False, False, False, True]
