"""The database: sessions that read or write; `migrate`, `revision` and `head` tell and change the state of its tables."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

from sqlalchemy import Engine, func, select
from sqlalchemy.orm import Session, sessionmaker

from service.records import connections, schema
from service.records.schema import Migrated, head, migrate

__all__ = ["Database", "Migrated", "clock", "head", "migrate", "revision"]

_TURN_SECONDS = 30


class Database:
    """An engine and its sessions; rows stay usable when their session has ended."""

    def __init__(self, url: str) -> None:
        """Nothing is opened yet. Raises: UnsupportedDatabase."""
        self.address = connections.shown(url)  # without its password
        self.engine: Engine = connections.engine(url)
        self._writing = threading.Lock() if self.engine.dialect.name == "sqlite" else None
        self._read = sessionmaker(connections.readers(self.engine), expire_on_commit=False, autoflush=False)
        self._write = sessionmaker(connections.writers(self.engine), expire_on_commit=False)

    @contextmanager
    def read(self) -> Iterator[Session]:
        """A session over one snapshot, which cannot write. Keep it short: on SQLite it may hold writers up."""
        with self._read() as session:
            yield session

    @contextmanager
    def write(self) -> Iterator[Session]:
        """A session that is committed once, at the end; an exception rolls it back. Nothing is retried."""
        with self._turn(), self._write.begin() as session:
            yield session

    @contextmanager
    def _turn(self) -> Iterator[None]:
        """On SQLite, one thread of this process at a time: others that want to write would look for the lock again and again
        with longer and longer pauses, and the unlucky wait for seconds. Other processes are still met at the file.
        """
        waited = self._writing is not None and self._writing.acquire(timeout=_TURN_SECONDS)
        try:
            yield  # after so long a wait too: then the database says why
        finally:
            if waited and self._writing is not None:
                self._writing.release()

    def close(self) -> None:
        """Close every connection that is not in use."""
        self.engine.dispose()


def clock(session: Session) -> float:
    """Seconds since 1970 by the database's clock, one for all hosts; SQLite is on this host and has this host's."""
    if session.get_bind().dialect.name == "sqlite":
        return time.time()
    return float(session.execute(select(func.extract("epoch", func.clock_timestamp()))).scalar_one())


def moment(session: Session) -> datetime:
    """The same as a moment in UTC: what is compared with moments that other hosts wrote."""
    return datetime.fromtimestamp(clock(session), UTC)


def revision(database: Database) -> str | None:
    """The revision of the tables; None when there are none."""
    with connections.readers(database.engine).connect() as connection:
        # Alembic makes its table anew for every look: each would stay in the engine's cache of statements.
        return schema.current(connection.execution_options(compiled_cache=None))
