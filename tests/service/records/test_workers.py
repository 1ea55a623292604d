"""Heartbeats by the database's clock."""

import threading
import time
from contextlib import closing
from typing import Any

from sqlalchemy import update

from service.records import workers
from service.records.database import Database, clock
from service.records.models import Worker
from tests.service.records.build import at_once

FACTS: dict[str, Any] = {"host": "h\0", "machine": "m", "pid": 1, "started": 1 << 40}


def silence(database: Database, executor_id: str, seconds: float) -> None:
    """Make the last beat of a worker older."""
    with database.write() as session:
        statement = update(Worker).where(Worker.executor_id == executor_id)
        session.execute(statement.values(beat_at=Worker.beat_at - seconds))


def test_beats(database: Database) -> None:
    with database.write() as session:
        workers.enter(session, "b", **FACTS)
        workers.enter(session, "a", **FACTS)
        first = {worker.executor_id: worker.beat_at for worker in workers.all(session)}
        workers.enter(session, "a", **FACTS | {"pid": 2})
        assert workers.beat(session, "a")
    with database.read() as session:
        found = workers.all(session)
        assert [(w.executor_id, w.pid, w.started, w.host) for w in found] == [
            ("a", 2, 1 << 40, "h\0"),
            ("b", 1, 1 << 40, "h\0"),
        ]
        assert found[0].beat_at >= first["a"]
        assert found[1].beat_at == first["b"]
        assert abs(clock(session) - found[0].beat_at) < 5


def test_stale(database: Database) -> None:
    with database.write() as session:
        for name in "abc":
            workers.enter(session, name, **FACTS)
    silence(database, "b", 20)
    silence(database, "c", 60)
    with database.read() as session:
        assert [worker.executor_id for worker in workers.stale(session, 15)] == ["c", "b"]
        assert [worker.executor_id for worker in workers.stale(session, 30)] == ["c"]
    with database.write() as session:
        assert workers.beat(session, "c")
        assert [worker.executor_id for worker in workers.stale(session, 15)] == ["b"]
        workers.remove(session, "b")
        workers.remove(session, "b")
        assert workers.stale(session, 15) == []


def test_a_beat_writes_no_row(database: Database) -> None:
    with database.write() as session:
        workers.enter(session, "a", **FACTS)
        workers.enter(session, "b", **FACTS)
        workers.remove(session, "a")
    with database.write() as session:
        assert not workers.beat(session, "a")
        assert workers.beat(session, "b")
        assert [worker.executor_id for worker in workers.all(session)] == ["b"]


def test_a_peer_that_removes_a_row_in_the_middle_of_a_beat_is_noticed(postgresql_url: str) -> None:
    """On PostgreSQL only: on SQLite nothing happens in the middle of a transaction that writes."""
    with closing(Database(postgresql_url)) as database:
        with database.write() as session:
            workers.enter(session, "a", **FACTS)
        removing, beating = threading.Event(), threading.Event()

        def remove() -> bool:
            with database.write() as session:
                workers.remove(session, "a")
                removing.set()
                beating.wait(10)
                time.sleep(0.2)  # the beat waits for this row by now
            return False

        def beat() -> bool:
            removing.wait(10)
            with database.write() as session:
                assert len(workers.all(session)) == 1  # the removal is not to be seen yet
                beating.set()
                return workers.beat(session, "a")

        assert at_once(remove, beat) == [False, False]
        with database.read() as session:
            assert workers.all(session) == []
