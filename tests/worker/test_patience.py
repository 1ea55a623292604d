"""A database that is away, for however long: work waits for it, and a worker that is to end does not."""

import signal
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import psycopg.errors
import pytest
from sqlalchemy import exc, select, text

from service.records import models
from tests.databases import PostgresServer
from tests.worker.inside import follow, inside
from tests.worker.material import Material
from tests.worker.rig import Rig, rig, until
from worker import patience
from worker.life import _leave
from worker.patience import passing, patiently
from worker.runtime import Engine, Unrecorded
from worker.watch import Draining, Watch


def sqlite_error(statement: str, path: str = ":memory:") -> sqlite3.Error:
    """What SQLite says of it."""
    with pytest.raises(sqlite3.Error) as caught:
        sqlite3.connect(path).execute(statement)
    return caught.value


def wrapped(kind: type[exc.DBAPIError], error: BaseException, *, lost: bool = False) -> exc.DBAPIError:
    """As SQLAlchemy raises it."""
    return kind("SELECT 1", {}, error, connection_invalidated=lost)


PASSING = {
    "no connection free": exc.TimeoutError("QueuePool limit"),
    "unreachable": wrapped(exc.OperationalError, psycopg.OperationalError("connection failed: refused")),
    "shut down": wrapped(exc.OperationalError, psycopg.errors.AdminShutdown("x"), lost=True),
    "starting": wrapped(exc.OperationalError, psycopg.errors.CannotConnectNow("x")),
    "waited too long": wrapped(exc.OperationalError, psycopg.errors.LockNotAvailable("x")),
    "deadlock": wrapped(exc.OperationalError, psycopg.errors.DeadlockDetected("x")),
    "closed": wrapped(exc.InterfaceError, psycopg.InterfaceError("the connection is closed")),
    "idle": wrapped(exc.InternalError, psycopg.errors.IdleInTransactionSessionTimeout("x")),
    "a standby": wrapped(exc.InternalError, psycopg.errors.ReadOnlySqlTransaction("x")),
    "lost somehow": wrapped(exc.DatabaseError, psycopg.DatabaseError("x"), lost=True),
    "no file": wrapped(exc.OperationalError, sqlite_error("SELECT 1 FROM x", "/nowhere/at/all")),
    "locked": wrapped(exc.OperationalError, sqlite3.OperationalError("database is locked")),
}
LASTING = {
    "no such table": wrapped(exc.OperationalError, sqlite_error("SELECT 1 FROM nothing")),
    "integrity": wrapped(exc.IntegrityError, psycopg.errors.UniqueViolation("x")),
    "data": wrapped(exc.DataError, psycopg.errors.NumericValueOutOfRange("x")),
    "syntax": wrapped(exc.ProgrammingError, psycopg.errors.SyntaxError("x")),
    "too much": wrapped(exc.OperationalError, psycopg.errors.ProgramLimitExceeded("x")),
    "internal": wrapped(exc.InternalError, psycopg.errors.InternalError_("x")),
    "not a database's": ValueError("x"),
    "of the library": exc.NoResultFound("x"),
}


@pytest.mark.parametrize("error", PASSING.values(), ids=PASSING)
def test_what_passes(error: BaseException) -> None:
    assert passing(error)


@pytest.mark.parametrize("error", LASTING.values(), ids=LASTING)
def test_what_does_not(error: BaseException) -> None:
    assert not passing(error)


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """A second is a millisecond."""
    monkeypatch.setattr(patience, "_SOONEST", 0.0002)
    monkeypatch.setattr(patience, "_LATEST", 0.005)


class Away:
    """Work whose database is away so many times."""

    def __init__(self, times: int, error: Exception) -> None:
        self.calls, self._times, self._error = 0, times, error

    def __call__(self) -> int:
        """How often it was called in all."""
        self.calls += 1
        if self.calls <= self._times:
            raise self._error
        return self.calls


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("name", ["unreachable", "no connection free", "closed"])
def test_it_is_waited_for_however_long_it_takes(name: str) -> None:
    assert patiently(Away(60, PASSING[name]), lambda: None) == 61  # at its real pace, five minutes


@pytest.mark.usefixtures("quick")
def test_what_does_not_pass_is_raised_at_once() -> None:
    work = Away(1, LASTING["integrity"])  # type: ignore[arg-type]
    with pytest.raises(exc.IntegrityError):
        patiently(work, lambda: None)
    assert work.calls == 1


def test_a_worker_that_is_to_end_does_not_wait(alone: Rig) -> None:
    watch = Watch(alone.parts.database)
    work = Away(10**6, PASSING["unreachable"])  # type: ignore[arg-type]
    watch.drain()
    begin = time.monotonic()
    with pytest.raises(Draining):
        patiently(work, watch.check)
    assert time.monotonic() - begin < 1


@pytest.mark.parametrize(("error", "calls"), [(PASSING["unreachable"], 2), (LASTING["data"], 1)])
def test_a_job_whose_rows_the_database_refuses_ends_and_others_wait(
    alone: Rig, material: Material, monkeypatch: pytest.MonkeyPatch, error: Exception, calls: int
) -> None:
    from worker.workflows import verify

    job_id = alone.verify(alone.push(material.artifact).digest)
    count, save = [0], verify.runs.save

    def saved(*args: Any, **kwargs: Any) -> None:
        count[0] += 1
        if count[0] == 1:
            raise error
        save(*args, **kwargs)

    monkeypatch.setattr(verify.runs, "save", saved)
    with inside(alone) as context:
        follow(context, job_id)
    job = alone.row(job_id)
    assert count == [calls]
    assert (job.state, (job.error or {}).get("code")) == (
        ("passed", None) if calls == 2 else ("error", "internal")
    )
    with alone.parts.database.read() as session:
        stored = list(session.scalars(select(models.Result.ordinal).where(models.Result.run_id == job_id)))
        listed = list(session.scalars(select(models.Object.ordinal)))
    assert sorted(stored) == (sorted(listed) if calls == 2 else [])


@pytest.mark.parametrize(
    ("error", "raised"),
    [(PASSING["locked"], Unrecorded), (LASTING["data"], exc.DataError)],
)
def test_a_step_that_the_engine_cannot_note_is_left_begun(
    monkeypatch: pytest.MonkeyPatch, error: Exception, raised: type[BaseException]
) -> None:
    """What is no Exception the engine records nowhere: the workflow stays begun, and the sweep puts it back in line."""

    def run_step(_options: Any, _work: Any) -> None:
        raise error

    monkeypatch.setattr("worker.runtime.DBOS.run_step", run_step)
    engine = object.__new__(Engine)
    with pytest.raises(raised):
        engine.step("a step", dict)
    assert not issubclass(Unrecorded, Exception)


@contextmanager
def away(server: PostgresServer, made: Rig) -> Iterator[None]:
    """Nobody is let into the database, and who is in it is thrown out."""
    with made.parts.database.read() as session:
        name = session.execute(text("SELECT current_database()")).scalar_one()
    made.parts.database.close()
    server._run(f"ALTER DATABASE {name} ALLOW_CONNECTIONS false")
    try:
        sessions = f"FROM pg_stat_activity WHERE datname = '{name}'"
        server._run("SELECT pg_terminate_backend(pid) " + sessions)
        yield
    finally:
        server._run(f"ALTER DATABASE {name} ALLOW_CONNECTIONS true")


@pytest.mark.parametrize("what", ["verify", "convert"])
def test_a_job_outlives_its_database_going_away(
    postgres_server: PostgresServer, postgresql_url: str, tmp_path: Path, material: Material, what: str
) -> None:
    with rig(tmp_path / "data", postgresql_url, shard_bytes=400_000) as made:
        worker = made.started()
        checkpoint = made.checkpoint(material.folder)
        if what == "convert":
            job_id = made.convert(checkpoint, material.document)
        else:
            job_id = made.verify(made.push(material.artifact).digest, checkpoint, material.document)
        until("it has begun", lambda: made.shards_done(job_id) >= 3)
        with away(postgres_server, made):
            time.sleep(3)
        assert made.row(job_id).finished_at is None, worker.text()
        job = made.finished(job_id)
        assert (job.state, job.error) == ("passed", None), worker.text()
        assert worker.process.poll() is None
        assert "database.away" in worker.text()


def test_a_worker_ends_in_order_though_its_database_is_away(
    postgres_server: PostgresServer, postgresql_url: str, tmp_path: Path
) -> None:
    with rig(tmp_path / "data", postgresql_url) as made:
        worker = made.started()
        with away(postgres_server, made):
            worker.send(signal.SIGTERM)
            assert worker.wait() == 0, worker.text()
        assert "worker.left" in worker.text()
        assert "worker.stopped" in worker.text()


def test_leaving_takes_no_longer_than_it_may() -> None:
    done: list[int] = []
    _leave("this", lambda: done.append(1))
    assert done == [1]
    _leave("that", lambda: done.remove(2))
    begin = time.monotonic()
    _leave("the other", lambda: time.sleep(3), seconds=0.1)
    assert time.monotonic() - begin < 2
