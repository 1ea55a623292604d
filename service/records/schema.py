"""Bringing the tables up to date: Alembic, configured here, with the migrations of the installed package."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, Engine
from sqlalchemy.exc import DBAPIError
from sqlalchemy.orm import Session

from service.records import connections, profiles
from service.records.errors import DatabaseNewer, DatabaseNotEmpty, DatabaseUnreachable, ReferencesBroken
from service.records.models import DEFAULT_PROJECT, Project
from service.records.types import now

_LOCK = 0x6E67_6D69_6772  # any number, the same in every process
_LOCK_SECONDS = (
    300  # how long another migration is waited for; a table is waited for less, see migrations/env.py
)


@dataclass(frozen=True, slots=True)
class Migrated:
    """The revisions of the tables before and after; `before` is None for a database that had none."""

    before: str | None
    after: str


def configuration(connection: Connection | None = None) -> Config:
    """Alembic's configuration, which needs no file; migrations run on `connection`, inside its transaction."""
    config = Config()
    config.set_main_option("script_location", str(files("migrations")).replace("%", "%%"))
    config.set_main_option("path_separator", "newline")
    config.set_main_option("file_template", "%%(year)d_%%(month).2d_%%(day).2d_%%(slug)s")
    config.attributes["connection"] = connection
    return config


@cache
def head() -> str:
    """The revision that this version needs."""
    revision = ScriptDirectory.from_config(configuration()).get_current_head()
    if revision is None:
        raise RuntimeError("the package `migrations` holds no revision")
    return revision


def current(connection: Connection) -> str | None:
    """The revision of the tables; None when there are none."""
    return MigrationContext.configure(connection).get_current_revision()


def migrate(url: str) -> Migrated:
    """Bring the tables to `head`, then make sure of the default project and the encoder profiles.

    All of it or nothing; of processes that call it at once, each waits for the one before.
    Raises: UnsupportedDatabase, DatabaseUnreachable, DatabaseNewer, ReferencesBroken, ProfileChanged.
    """
    engine = connections.engine(url)
    try:
        with _alone(engine, connections.shown(url)) as connection:
            before = current(connection)
            config = configuration(connection)
            known = {script.revision for script in ScriptDirectory.from_config(config).walk_revisions()}
            if before is not None and before not in known:
                raise DatabaseNewer(before)
            _bring_to_head(connection, config)
    finally:
        engine.dispose()
    return Migrated(before, head())


def _bring_to_head(connection: Connection, config: Config) -> None:
    if current(connection) != head():
        command.upgrade(config, "head")
    with Session(connection) as session:
        if session.get(Project, DEFAULT_PROJECT) is None:
            session.add(Project(id=DEFAULT_PROJECT, name=DEFAULT_PROJECT, created_at=now()))
        profiles.ensure(session)
        session.flush()


def build(
    url: str, revision: str, fill: Callable[[Connection], None], settle: Callable[[Session], None]
) -> None:
    """Make the tables of `revision` in a database without any, let `fill` write into them, bring them to `head`, `settle`.

    All of it or nothing. Raises: as `migrate`, and DatabaseNotEmpty.
    """
    engine = connections.engine(url)
    try:
        with _alone(engine, connections.shown(url)) as connection:
            if current(connection) is not None:
                raise DatabaseNotEmpty(connections.shown(url))
            config = configuration(connection)
            if revision not in {
                script.revision for script in ScriptDirectory.from_config(config).walk_revisions()
            }:
                raise DatabaseNewer(revision)
            command.upgrade(config, revision)
            fill(connection)
            _bring_to_head(connection, config)
            with Session(connection) as session:
                settle(session)
                session.flush()
    finally:
        engine.dispose()


@contextmanager
def _alone(engine: Engine, address: str) -> Iterator[Connection]:
    """A transaction that no other migration runs beside."""
    sqlite = engine.dialect.name == "sqlite"
    try:
        if sqlite and engine.url.database:
            Path(engine.url.database).parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        opened = connections.writers(engine).connect()
    except (DBAPIError, OSError) as error:
        raise DatabaseUnreachable(address, str(getattr(error, "orig", error)).strip()) from error
    with opened as connection:
        if sqlite:
            _set_foreign_keys(connection, False)
        with connection.begin():
            if not sqlite:
                connection.exec_driver_sql(f"SET LOCAL lock_timeout = '{_LOCK_SECONDS}s'")
                connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_LOCK})")
            yield connection
            if sqlite:
                _require_references(connection)
        if sqlite:
            _set_foreign_keys(connection, True)


def _set_foreign_keys(connection: Connection, on: bool) -> None:
    # SQLite changes a table by making it anew: with foreign keys on, dropping the old one deletes its children.
    # The switch does nothing inside a transaction, so this goes past SQLAlchemy, which would begin one.
    raw = connection.connection.driver_connection
    if raw is not None:
        raw.execute(f"PRAGMA foreign_keys = {int(on)}")


def _require_references(connection: Connection) -> None:
    broken = connection.exec_driver_sql("PRAGMA foreign_key_check").all()
    if broken:
        raise ReferencesBroken(tuple(sorted({row[0] for row in broken})))
