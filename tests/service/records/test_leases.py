"""Of all processes one has a lease; one that is silent loses it."""

import pytest
from sqlalchemy import update

from service.records import leases
from service.records.database import Database
from service.records.models import Lease
from tests.service.records.build import at_once


def take(database: Database, holder: str, seconds: float = 60) -> bool:
    """In a transaction of its own."""
    with database.write() as session:
        return leases.take(session, "tidy", holder, seconds)


def test_one_at_a_time(database: Database) -> None:
    won = at_once(*[lambda n=n: take(database, f"worker {n}") for n in range(4)])
    assert sorted(won) == [False, False, False, True]
    holder = f"worker {won.index(True)}"
    assert take(database, holder)  # renewed
    assert not take(database, "another")
    with database.write() as session:
        leases.release(session, "tidy", "another")  # which has nothing to give back
    assert not take(database, "another")
    with database.write() as session:
        leases.release(session, "tidy", holder)
    assert take(database, "another")


@pytest.mark.parametrize("passed", [True, False])
def test_who_is_silent_loses_it(database: Database, passed: bool) -> None:
    assert take(database, "frozen")
    with database.write() as session:
        session.execute(update(Lease).values(until=Lease.until - (61 if passed else 30)))
    assert take(database, "another") == passed
    assert take(database, "frozen") != passed
