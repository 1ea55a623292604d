"""What a transaction means: who may write, who waits, and what a reader sees."""

import sqlite3
from concurrent.futures import ThreadPoolExecutor, wait
from typing import Any

import pytest
from sqlalchemy import delete, event, func, select, text
from sqlalchemy.exc import DBAPIError, IntegrityError

from service.records import connections, content
from service.records.database import Database, clock
from service.records.errors import UnsupportedDatabase
from service.records.models import ArtifactFile, Blob, Project
from service.records.types import now
from tests.service.records.build import P, at_once, sha


def statements(database: Database) -> list[str]:
    """A list that grows by what SQLite itself is told from now on."""
    told: list[str] = []

    @event.listens_for(database.engine, "connect")
    def trace(connection: sqlite3.Connection, _record: Any) -> None:
        connection.set_trace_callback(told.append)

    return told


def test_sqlite_writers_take_the_lock_before_they_read(sqlite_url: str) -> None:
    database = Database(sqlite_url)
    told = statements(database)
    with database.write() as session:
        content.find_blob(session, P, sha(1))
        content.add_blob(session, P, sha(1), 1)
    assert told.index("BEGIN IMMEDIATE") < next(i for i, s in enumerate(told) if s.startswith("SELECT"))
    assert told.count("BEGIN IMMEDIATE") == 1
    assert told[-1] == "COMMIT"
    assert "BEGIN" not in told
    database.close()


def test_sqlite_readers_take_no_lock(sqlite_url: str) -> None:
    database = Database(sqlite_url)
    told = statements(database)
    with database.write() as writer:
        content.add_blob(writer, P, sha(1), 1)
        with database.read() as reader:
            assert content.find_blob(reader, P, sha(1)) is None
    assert told.count("BEGIN") == 1
    database.close()


def test_a_second_sqlite_writer_waits(sqlite_url: str) -> None:
    database = Database(sqlite_url)

    def add(number: int) -> bool:
        with database.write() as session:
            session.scalar(select(func.count()).select_from(Blob))
            return content.add_blob(session, P, sha(number), 1)

    assert at_once(*(lambda n=n: add(n) for n in range(8))) == [True] * 8
    database.close()


def test_sqlite_is_set_up(sqlite_url: str) -> None:
    database = Database(sqlite_url)
    with database.read() as session:
        asked = ("foreign_keys", "synchronous", "busy_timeout", "journal_mode")
        found = {name: session.scalar(text(f"PRAGMA {name}")) for name in asked}
    expected = connections.journal_mode(sqlite3.sqlite_version_info[:3])
    assert found == {
        "foreign_keys": 1,
        "synchronous": 2,
        "busy_timeout": 30_000,
        "journal_mode": expected,
    }
    database.close()


@pytest.mark.parametrize(
    ("version", "mode"),
    [
        ((3, 40, 1), "truncate"),
        ((3, 44, 5), "truncate"),
        ((3, 44, 6), "wal"),
        ((3, 45, 0), "truncate"),
        ((3, 50, 6), "truncate"),
        ((3, 50, 7), "wal"),
        ((3, 51, 0), "truncate"),
        ((3, 51, 2), "truncate"),
        ((3, 51, 3), "wal"),
        ((3, 52, 0), "wal"),
    ],
)
def test_wal_only_where_its_reset_is_right(version: tuple[int, int, int], mode: str) -> None:
    assert connections.journal_mode(version) == mode


@pytest.mark.parametrize(("before", "after"), [("wal", "truncate"), ("truncate", "wal")])
def test_the_journal_follows_the_version(
    sqlite_url: str, monkeypatch: pytest.MonkeyPatch, before: str, after: str
) -> None:
    for mode in (before, after):
        monkeypatch.setattr(connections, "journal_mode", lambda _, mode=mode: mode)
        database = Database(sqlite_url)
        with database.write() as session:
            assert session.scalar(text("PRAGMA journal_mode")) == mode
            content.add_blob(session, P, sha(mode), 1)
        database.close()
    database = Database(sqlite_url)
    with database.read() as session:
        assert session.scalar(select(func.count()).select_from(Blob)) == 2
    database.close()


def test_postgresql_is_set_up(postgresql_url: str) -> None:
    database = Database(postgresql_url)
    with database.read() as session:
        names = ("idle_in_transaction_session_timeout", "lock_timeout", "transaction_isolation", "TimeZone")
        found = [session.scalar(text(f"SHOW {name}")) for name in names]
    assert found == ["15s", "30s", "repeatable read", "UTC"]
    with database.write() as session:
        assert session.scalar(text("SHOW transaction_isolation")) == "read committed"
        assert session.scalar(text("SHOW transaction_read_only")) == "off"
    database.close()


def test_a_reader_sees_one_snapshot(database: Database) -> None:
    def add() -> None:
        with database.write() as writer:
            content.add_blob(writer, P, sha(1), 1)

    with ThreadPoolExecutor(1) as pool:
        with database.read() as reader:
            assert content.find_blob(reader, P, sha(1)) is None
            writing = pool.submit(add)
            wait([writing], timeout=0.3)  # on SQLite without a log its commit waits for this reader
            assert content.find_blob(reader, P, sha(1)) is None
        writing.result(30)
    with database.read() as reader:
        assert content.find_blob(reader, P, sha(1)) is not None


def test_a_reader_cannot_write(database: Database) -> None:
    with pytest.raises(DBAPIError, match=r"read-?only"), database.read() as session:
        content.add_blob(session, P, sha(1), 1)
    with database.write() as session:  # on the same connection
        assert content.add_blob(session, P, sha(1), 1)


def test_a_writer_commits_all_or_nothing(database: Database) -> None:
    def fail() -> None:
        with database.write() as session:
            content.add_blob(session, P, sha(1), 1)
            raise KeyError("on purpose")

    with pytest.raises(KeyError):
        fail()
    with database.read() as session:
        assert content.find_blob(session, P, sha(1)) is None


def test_rows_outlive_their_session(database: Database) -> None:
    with database.write() as session:
        content.add_blob(session, P, sha(1), 7)
        written = content.find_blob(session, P, sha(1))
    with database.read() as session:
        read = content.find_blob(session, P, sha(1))
    assert written is not None
    assert read is not None
    assert written.bytes == read.bytes == 7


def test_foreign_keys_hold(database: Database) -> None:
    with pytest.raises(IntegrityError), database.write() as session:
        session.add(
            ArtifactFile(project_id=P, artifact_id="0" * 32, ordinal=0, name="n", sha256=sha(1), bytes=1)
        )
    with pytest.raises(IntegrityError), database.write() as session:
        content.add_blob(session, "nobody", sha(1), 1)
    with database.write() as session:
        content.add_blob(session, P, sha(1), 1)
    with pytest.raises(IntegrityError), database.write() as session:
        session.execute(delete(Project))


def test_clock(database: Database) -> None:
    with database.read() as session:
        first = clock(session)
        second = clock(session)
    assert abs(first - now().timestamp()) < 5
    assert second >= first


@pytest.mark.parametrize(
    ("url", "driver"),
    [
        ("postgresql://u:p@h/n", "postgresql+psycopg"),
        ("postgresql+psycopg://u:p@h:5433/n?sslmode=require", "postgresql+psycopg"),
        ("sqlite:///relative.sqlite", "sqlite"),
        ("sqlite:////absolute.sqlite", "sqlite"),
    ],
)
def test_addresses(url: str, driver: str) -> None:
    assert connections.spelled(url).drivername == driver
    assert ":p@" not in connections.shown(url)


@pytest.mark.parametrize(
    "url",
    [
        "",
        "nonsense",
        "sqlite://",
        "sqlite:///:memory:",
        "sqlite:///file:x?mode=memory&uri=true",
        "sqlite+aiosqlite:///x",
        "postgresql+psycopg2://h/n",
        "postgresql+asyncpg://h/n",
        "mysql://h/n",
        "nothing://h/n",
    ],
)
def test_other_addresses_are_refused(url: str) -> None:
    with pytest.raises(UnsupportedDatabase):
        Database(url)
