"""Heartbeats by the database's clock."""

from typing import Any

from sqlalchemy import update

from service.records import workers
from service.records.database import Database
from service.records.models import Worker

FACTS: dict[str, Any] = {"host": "h\0", "machine": "m", "pid": 1, "started": 1 << 40}


def silence(database: Database, executor_id: str, seconds: float) -> None:
    """Make the last beat of a worker older."""
    with database.write() as session:
        statement = update(Worker).where(Worker.executor_id == executor_id)
        session.execute(statement.values(beat_at=Worker.beat_at - seconds))


def test_beats(database: Database) -> None:
    with database.write() as session:
        workers.beat(session, "b", **FACTS)
        workers.beat(session, "a", **FACTS)
        first = {worker.executor_id: worker.beat_at for worker in workers.all(session)}
        workers.beat(session, "a", **FACTS | {"pid": 2})
    with database.read() as session:
        found = workers.all(session)
        assert [(w.executor_id, w.pid, w.started, w.host) for w in found] == [
            ("a", 2, 1 << 40, "h\0"),
            ("b", 1, 1 << 40, "h\0"),
        ]
        assert found[0].beat_at >= first["a"]
        assert found[1].beat_at == first["b"]
        assert abs(database.clock(session) - found[0].beat_at) < 5


def test_stale(database: Database) -> None:
    with database.write() as session:
        for name in "abc":
            workers.beat(session, name, **FACTS)
    silence(database, "b", 20)
    silence(database, "c", 60)
    with database.read() as session:
        assert [worker.executor_id for worker in workers.stale(session, 15)] == ["c", "b"]
        assert [worker.executor_id for worker in workers.stale(session, 30)] == ["c"]
    with database.write() as session:
        workers.beat(session, "c", **FACTS)
        assert [worker.executor_id for worker in workers.stale(session, 15)] == ["b"]
        workers.remove(session, "b")
        workers.remove(session, "b")
        assert workers.stale(session, 15) == []
