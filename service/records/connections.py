"""Engines for SQLite and PostgreSQL whose transactions mean the same on both.

A reader sees one snapshot and cannot write. A writer on SQLite takes the write lock with its first statement: to read
first and then to write fails under a plain BEGIN as soon as two processes do it.
"""

import sqlite3
import time
from typing import Any, Final

from sqlalchemy import URL, Connection, Engine, create_engine, event, make_url
from sqlalchemy.exc import ArgumentError, NoSuchModuleError

from service.records.errors import UnsupportedDatabase

WRITE: Final = "ninfer_gate_write"  # execution option of connections that write

_WAIT_SECONDS = 30
_IDLE_SECONDS = 15  # a frozen process elsewhere keeps its locks no longer than it is taken for alive
# As many threads as the HTTP server has, and some more; those used last first, since each keeps pages in memory.
_POOL: Final[dict[str, Any]] = {"pool_size": 10, "max_overflow": 40, "pool_use_lifo": True}


def spelled(url: str) -> URL:
    """The address with its driver. Raises: UnsupportedDatabase."""
    try:
        parsed = make_url(url)
        name, driver = parsed.get_backend_name(), parsed.get_driver_name()
    except (ArgumentError, NoSuchModuleError):
        raise UnsupportedDatabase(
            "the database's address is not understood; write sqlite:///FILE or postgresql://USER@HOST/NAME"
        ) from None
    if name == "postgresql" and parsed.drivername in ("postgresql", "postgresql+psycopg"):
        return parsed.set(drivername="postgresql+psycopg")
    if name != "sqlite" or driver != "pysqlite":
        raise UnsupportedDatabase(
            f"databases of the kind {parsed.drivername} are not supported: SQLite and PostgreSQL are"
        )
    if parsed.database in (None, "", ":memory:") or parsed.query:
        raise UnsupportedDatabase("SQLite needs a file, without options: its processes share it")
    return parsed


def shown(url: str) -> str:
    """The address without its password. Raises: UnsupportedDatabase."""
    return spelled(url).render_as_string(hide_password=True)


def engine(url: str) -> Engine:
    """An engine; connections with the execution option `WRITE` may write. Raises: UnsupportedDatabase."""
    address = spelled(url)
    # Errors name the statement and go to the log; what was to be stored does not.
    if address.get_backend_name() == "sqlite":
        made = create_engine(address, connect_args={"timeout": _WAIT_SECONDS}, hide_parameters=True, **_POOL)
        event.listen(made, "connect", _prepare_sqlite)
        event.listen(made, "begin", _begin_sqlite)
    else:
        made = create_engine(address, pool_pre_ping=True, hide_parameters=True, **_POOL)
        event.listen(made, "connect", _prepare_postgresql)
    return made


def readers(made: Engine) -> Engine:
    """The same connections for reading: one snapshot for each transaction, on SQLite by its nature."""
    if made.dialect.name == "sqlite":
        return made
    return made.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)


def writers(made: Engine) -> Engine:
    """The same connections for writing."""
    return made.execution_options(**{WRITE: True})


def journal_mode(version: tuple[int, int, int]) -> str:
    """`wal` where this SQLite resets its log without losing pages, else `truncate`."""
    # sqlite.org/wal.html, "the WAL-reset bug": fixed in 3.51.3, and in 3.50.7 and 3.44.6 of their branches.
    fixed = version >= (3, 51, 3) or (3, 50, 7) <= version < (3, 51) or (3, 44, 6) <= version < (3, 45)
    return "wal" if fixed else "truncate"


def _prepare_sqlite(connection: sqlite3.Connection, _record: Any) -> None:
    connection.isolation_level = None  # the driver begins nothing by itself: _begin_sqlite does
    connection.execute("PRAGMA foreign_keys = ON")
    connection.execute("PRAGMA synchronous = FULL")
    _set_journal_mode(connection, journal_mode(sqlite3.sqlite_version_info[:3]))


def _set_journal_mode(connection: sqlite3.Connection, mode: str) -> None:
    # Between WAL and the others the whole file is locked, and not every path there waits as it should.
    deadline = time.monotonic() + _WAIT_SECONDS
    while True:
        try:
            if connection.execute(f"PRAGMA journal_mode = {mode}").fetchone()[0] == mode:
                return
        except sqlite3.OperationalError:
            if time.monotonic() > deadline:
                raise
        if time.monotonic() > deadline:
            raise sqlite3.OperationalError(f"the journal mode {mode} could not be set")
        time.sleep(0.02)


def _begin_sqlite(connection: Connection) -> None:
    writes = connection.get_execution_options().get(WRITE, False)
    # A reader that wrote would be refused at random once others write too; so it is refused always.
    connection.exec_driver_sql(f"PRAGMA query_only = {0 if writes else 1}")
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def _prepare_postgresql(connection: Any, _record: Any) -> None:
    connection.execute(f"SET idle_in_transaction_session_timeout = '{_IDLE_SECONDS}s'")
    connection.execute(f"SET lock_timeout = '{_WAIT_SECONDS}s'")
    connection.execute("SET TIME ZONE 'UTC'")
    connection.commit()
