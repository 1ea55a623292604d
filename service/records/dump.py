"""Every row of the records as lines of JSON, out of one snapshot and back into an empty database, whichever kind either is.

Values are written as the models read them, so that a dump of SQLite fits PostgreSQL. Live workers are left out: the ones
that run when a dump is read back are others. A dump says at which revision its tables are; it is read back into tables
of that revision, which are then brought up to date as any others are.
"""

import gzip
import json
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from sqlalchemy import Connection, DateTime, Table, column, inspect, select, table, update
from sqlalchemy.engine import Engine
from sqlalchemy.exc import DBAPIError
from sqlalchemy.orm import Session

from service.records import attempts, connections, schema
from service.records.errors import DatabaseNotEmpty, DatabaseUnreachable, RevisionOther
from service.records.models import Base, Blob, Job, Upload, Worker
from service.records.rows import batches
from service.records.types import Utc, now
from service.records.uploads import OPEN

_LEFT_OUT: Final = frozenset((Worker.__tablename__,))
_ROWS: Final = 2_000
_WAIT_SECONDS: Final = 30


def tables() -> list[Table]:
    """Those that a dump holds, each after the ones that it refers to."""
    return [item for item in Base.metadata.sorted_tables if item.name not in _LEFT_OUT]


class Snapshot:
    """The records as they were at one moment; `connection` reads nothing else."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def write(self, made: Table, path: Path) -> int:
        """Write a table into a new file, its columns in the first line; how many rows."""
        statement = select(made).execution_options(yield_per=_ROWS)
        count = 0
        with gzip.open(path, "xt", encoding="ascii", compresslevel=1) as file:
            file.write(json.dumps([item.name for item in made.columns]) + "\n")
            for row in self._connection.execute(statement):
                file.write(json.dumps(list(row), allow_nan=True, default=_spelled) + "\n")
                count += 1
        return count

    def blobs(self) -> Iterator[tuple[str, int]]:
        """(sha256, bytes) of every content that a project holds, each once."""
        query = select(Blob.sha256, Blob.bytes).distinct().order_by(Blob.sha256)
        yield from self._connection.execute(query.execution_options(yield_per=_ROWS))


def held_of(session: Session, wanted: list[str]) -> list[str]:
    """Those of `wanted` that a project holds now, in their order."""
    found: set[str] = set()
    for some in batches(wanted):
        found.update(session.scalars(select(Blob.sha256).where(Blob.sha256.in_(some))))
    return [sha256 for sha256 in wanted if sha256 in found]


@contextmanager
def snapshot(url: str, scratch: Path) -> Iterator[Snapshot]:
    """The records at this moment, while others go on writing. Raises: DatabaseUnreachable, RevisionOther.

    Of SQLite a copy is made in `scratch`: copying pages holds writers up for as short as it gets, reading rows would not.
    """
    source = connections.engine(url)
    copy = scratch / "snapshot.sqlite"
    try:
        if source.dialect.name == "sqlite":
            _copy_pages(source, copy)
            source.dispose()
            source = connections.engine(f"sqlite:///{copy}")
        with connections.readers(source).connect() as connection:
            found = schema.current(connection)
            if found != schema.head():
                raise RevisionOther(connections.shown(url), found, schema.head())
            yield Snapshot(connection)
    except (DBAPIError, sqlite3.Error) as error:
        why = str(getattr(error, "orig", error)).strip()
        raise DatabaseUnreachable(connections.shown(url), why) from error
    finally:
        source.dispose()
        for left in scratch.glob("snapshot.sqlite*"):
            left.unlink(missing_ok=True)


def _copy_pages(source: Engine, copy: Path) -> None:
    # Not read-only: what a writer that was killed has left half done is rolled back by whoever comes next.
    path = Path(source.url.database or "").absolute()
    live = sqlite3.connect(f"{path.as_uri()}?mode=rw", timeout=_WAIT_SECONDS, uri=True)
    try:
        made = sqlite3.connect(copy)
        try:
            live.backup(
                made
            )  # in one go: between two, a writer would make it begin again, and there is always one
        finally:
            made.close()
    finally:
        live.close()


def require_empty(url: str) -> None:
    """Raises: DatabaseNotEmpty unless there is no table at all; DatabaseUnreachable."""
    made = connections.engine(url)
    try:
        # An SQLite file that is not there is empty, and is not made by looking.
        missing = made.dialect.name == "sqlite" and not Path(made.url.database or "").exists()
        if not missing and inspect(made).get_table_names():
            raise DatabaseNotEmpty(connections.shown(url))
    except DBAPIError as error:
        raise DatabaseUnreachable(connections.shown(url), str(error.orig).strip()) from error
    finally:
        made.dispose()


def read_back(url: str, revision: str, files: dict[str, Path]) -> dict[str, int]:
    """Make the tables of `revision` in an empty database, fill them and bring them up to date, all or nothing; rows by table.

    Raises: DatabaseNotEmpty, DatabaseUnreachable, DatabaseNewer, ReferencesBroken.
    """
    known = [item.name for item in tables() if item.name in files]
    order = known + sorted(set(files) - set(known))
    counts: dict[str, int] = {}

    def fill(connection: Connection) -> None:
        for name in order:
            counts[name] = _fill(connection, name, files[name])

    require_empty(url)
    schema.build(url, revision, fill, _settle)
    return counts


def _fill(connection: Connection, name: str, path: Path) -> int:
    model = Base.metadata.tables.get(name)
    there = {item["name"]: item["type"] for item in inspect(connection).get_columns(name)}
    count = 0
    with gzip.open(path, "rt", encoding="ascii") as lines:
        names = json.loads(lines.readline())
        types = {
            item: model.c[item].type if model is not None and item in model.c else there[item]
            for item in names
        }
        into = table(name, *(column(item, types[item]) for item in names))
        moments = [item for item in names if isinstance(types[item], Utc | DateTime)]
        for batch in batches((dict(zip(names, json.loads(line), strict=True)) for line in lines), _ROWS):
            for row in batch:
                for item in moments:
                    row[item] = None if row[item] is None else datetime.fromisoformat(row[item])
            connection.execute(into.insert(), batch)
            count += len(batch)
    return count


def _settle(session: Session) -> None:
    """After a restore: what lay outside of rows and content is gone, parts of uploads and segments of conversions.

    Uploads that were under way are over; jobs that had begun begin anew.
    """
    said = {"code": "upload_lost", "detail": "The service was restored from a backup; push it again."}
    session.execute(
        update(Upload).where(Upload.state.in_(OPEN)).values(state="failed", error=said, finished_at=now())
    )
    begun = select(Job.id, Job.epoch).where(Job.state == "running").order_by(Job.id)
    for job_id, epoch in session.execute(begun).all():
        attempts.begin_anew(session, job_id, epoch, "the service was restored from a backup")


def _spelled(value: Any) -> str:
    if isinstance(value, datetime):
        return value.isoformat()
    raise TypeError(f"a {type(value).__name__} is no JSON value")
