"""From the tables of the release before, with rows in every one of them, to those of this one; and old writers meanwhile."""

import gzip
import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from alembic import command
from alembic.script import ScriptDirectory
from sqlalchemy import Engine, MetaData, Table, event, inspect, select, text

from service.auth import authenticate, hashed, new_token, session_caller
from service.errors import Unauthorized
from service.records import connections, schema
from service.records.database import Database, Migrated, head, migrate
from service.records.dump import read_back
from service.records.models import Base
from service.records.tokens import find
from service.records.types import Json, Utc
from service.tokens import revoke

BEFORE = "2026_11_30_scheme_checks"  # the last revision of the release before this one
ROWS = 3
AT = datetime(2026, 11, 30, 12, tzinfo=UTC)
# What columns with a closed list of values may hold, and texts that are read as something.
CLOSED: dict[str, tuple[str, ...]] = {
    "state": ("queued", "running", "passed"),
    "level": ("quick", "full", "quick"),
    "outcome": ("passed", "failed", "passed"),
    "subject": ("parts", "struct", "parts"),
    "verdict": ("passed", "failed", "incomplete"),
    "basis": ("claimed", "converted", "verified"),
    "kind": ("recipe", "target", "format"),
    "listing": ("pending", "listed", "unreadable"),
    "type": ("verify", "convert", "compare"),
    "request": tuple(f'{{"sources":{{"base":"sha256:{digit * 64}"}}}}' for digit in "abc"),
}
ADDED_SINCE = ("campaigns", "imports", "trusts", "audit", "uploads", "doomed_blobs")


@pytest.fixture
def old(empty_url: str) -> Iterator[Engine]:
    """A database of the release before, without rows."""
    with at_the_release_before(empty_url) as engine:
        yield engine


@contextmanager
def at_the_release_before(url: str) -> Iterator[Engine]:
    """An empty database, with the tables of the release before."""
    engine = connections.engine(url)
    with connections.writers(engine).begin() as connection:
        command.upgrade(schema.configuration(connection), BEFORE)
    yield engine
    engine.dispose()


def tables_of(engine: Engine) -> list[Table]:
    """As they are, each after those that it refers to."""
    found = MetaData()
    found.reflect(engine)
    return [table for table in found.sorted_tables if table.name != "alembic_version"]


def row(table: Table, number: int, zoned: bool) -> dict[str, Any]:
    """A row that fits the rows of this number in the other tables; nothing that may be there is left out."""
    whole: dict[str, Any] = {}
    for column in table.columns:
        kind = str(column.type).partition("(")[0]
        digest = number + 10 * (column.name == "vectors_digest")
        if column.name == "ordinal" or column.name in ("seq", "number", "rank"):
            whole[column.name] = number
        elif column.name in CLOSED and (table.name, column.name) != ("objects", "kind"):
            whole[column.name] = CLOSED[column.name][number % ROWS]
        elif kind in ("INTEGER", "BIGINT"):
            whole[column.name] = 1_000 + number
        elif kind in ("FLOAT", "DOUBLE PRECISION", "DOUBLE_PRECISION"):
            whole[column.name] = number + 0.125
        elif kind == "BOOLEAN":
            whole[column.name] = number % 2 == 0
        elif kind in ("DATETIME", "TIMESTAMP"):
            moment = AT + timedelta(seconds=number)
            whole[column.name] = moment if zoned else moment.replace(tzinfo=None)
        elif column.name in ("sha256", "inventory_sha256"):
            whole[column.name] = f"{number:064x}"
        elif column.name.endswith("digest") or column.name == "plan":
            whole[column.name] = f"sha256:{digest:064x}"
        elif column.name == "id" or column.name.endswith("_id"):
            whole[column.name] = f"{number:032x}"
        else:
            whole[column.name] = f"{number}"
    return whole


def fill(engine: Engine, tables: list[Table], numbers: range) -> None:
    """Rows of these numbers in every table."""
    zoned = engine.dialect.name != "sqlite"
    with connections.writers(engine).begin() as connection:
        for table in tables:
            connection.execute(table.insert(), [row(table, number, zoned) for number in numbers])


def rows(engine: Engine, tables: list[Table]) -> dict[str, list[Any]]:
    """The columns that `tables` know, of every row."""
    with connections.readers(engine).connect() as connection:
        return {
            table.name: sorted(map(tuple, connection.execute(select(table))), key=repr) for table in tables
        }


def test_rows_of_every_table_live_on(old: Engine, empty_url: str) -> None:
    tables = tables_of(old)
    fill(old, tables, range(ROWS))
    before = rows(old, tables)
    assert all(len(found) == ROWS for found in before.values())
    assert {table.name for table in tables}.isdisjoint(ADDED_SINCE)
    assert migrate(empty_url) == Migrated(BEFORE, head())
    after = rows(old, tables)
    after["projects"] = [item for item in after["projects"] if item[0] != "default"]
    known = {item[:2] for item in before["encoder_profiles"]}
    after["encoder_profiles"] = [item for item in after["encoder_profiles"] if item[:2] in known]
    assert after == before
    database = Database(empty_url)
    with database.read() as session:
        for mapper in Base.registry.mappers:  # every row is one that the models can read
            found = session.scalars(select(mapper.class_)).all()
            assert found or mapper.local_table.name in (*ADDED_SINCE, *new_tables(tables)), mapper
        token = find(session, f"{0:064x}", AT - timedelta(days=1))
        assert token is not None
        assert (token.scopes, len(token.id)) == ("admin", 32)
        states = dict(session.execute(text("SELECT lane, count(*) FROM jobs GROUP BY lane")).all())
        assert states == {"interactive": ROWS}
    database.close()


def new_tables(tables: list[Table]) -> set[str]:
    """Those that the release before had not."""
    return set(Base.metadata.tables) - {table.name for table in tables}


def test_writers_of_the_release_before_go_on(old: Engine, empty_url: str) -> None:
    """A worker that was started before the migration writes rows without the columns that it does not know; so do clients."""
    tables = tables_of(old)
    fill(old, tables, range(ROWS))
    secret = "ng_" + "a" * 43
    columns = "sha256, kind, created_at, project_id"
    insert_token = text(f"INSERT INTO tokens ({columns}) VALUES (:sha256, :kind, :at, :project_id)")  # noqa: S608  ours
    with connections.writers(old).begin() as connection:
        values = {
            "sha256": hashed(secret),
            "kind": "api",
            "at": "2026-11-30 00:00:00",
            "project_id": f"{1:032x}",
        }
        connection.execute(insert_token, values)
    migrate(empty_url)
    database = Database(empty_url)
    caller = authenticate(database, secret)
    assert (caller.project_id, caller.may("admin"), caller.may("read")) == (f"{1:032x}", True, True)
    fill(old, tables, range(ROWS, 2 * ROWS))
    page_session = {**values, "sha256": hashed("page"), "kind": "session"}
    with connections.writers(old).begin() as connection:
        connection.execute(insert_token, page_session)
    # Its API opens page sessions, which may do what every token of the project may, as they could before.
    seen = session_caller(database, "page")
    assert (seen.project_id, seen.may("admin"), len(seen.token_id or "")) == (f"{1:032x}", True, 32)
    reader = new_token(database, f"{1:032x}", ("read",))
    seen = session_caller(database, "page")
    assert (seen.may("admin"), seen.may("read")) == (False, True)
    # By which token it was opened nobody knows: it ends with any.
    revoke(database, f"{1:032x}", "tests", authenticate(database, reader).token_id or "")
    with pytest.raises(Unauthorized):
        session_caller(database, "page")
    database.close()


def test_a_migration_waits_for_no_table_for_long(old: Engine, empty_url: str) -> None:
    if old.dialect.name == "sqlite":
        pytest.skip("SQLite has one lock, which is waited for as by any writer")
    said: list[str] = []
    statements = "before_cursor_execute"

    def hear(_connection: Any, _cursor: Any, statement: str, *_rest: Any) -> None:
        said.append(statement)

    event.listen(Engine, statements, hear)
    try:
        migrate(empty_url)
    finally:
        event.remove(Engine, statements, hear)
    changes = [
        place for place, word in enumerate(said) if word.lstrip().startswith(("ALTER", "CREATE", "DROP"))
    ]
    waits = [place for place, word in enumerate(said) if "lock_timeout = '10s'" in word]
    assert changes
    assert waits
    assert waits[0] < changes[0]
    assert not any("lock_timeout" in word for word in said[waits[0] + 1 :])


def test_there_is_one_line_of_revisions_and_the_release_is_on_it() -> None:
    scripts = ScriptDirectory.from_config(schema.configuration())
    assert scripts.get_heads() == [head()]
    line = [script.revision for script in scripts.walk_revisions()]
    assert BEFORE in line
    files = {path.stem for path in Path(scripts.dir, "versions").glob("2*.py")}
    assert files == set(line)


def test_nothing_is_changed_when_a_table_cannot_be_had(old: Engine, empty_url: str) -> None:
    """A migration that fails in its midst is undone whole, on both databases."""
    tables = tables_of(old)
    fill(old, tables, range(ROWS))
    before = rows(old, tables)
    with connections.writers(old).begin() as connection:
        connection.exec_driver_sql("CREATE TABLE campaigns (id INTEGER)")  # in the way of the last revision
    with pytest.raises(Exception, match="campaigns"):
        migrate(empty_url)
    with connections.writers(old).begin() as connection:
        assert schema.current(connection) == BEFORE
        connection.exec_driver_sql("DROP TABLE campaigns")
    assert {table.name for table in tables_of(old)} == {table.name for table in tables}
    assert rows(old, tables) == before
    assert "quota_bytes" not in {column["name"] for column in inspect(old).get_columns("projects")}
    assert migrate(empty_url) == Migrated(BEFORE, head())


def as_the_models_read(kind: Any, value: Any) -> Any:
    """What a dump holds of a value of this type."""
    if isinstance(kind, Utc):
        return (value if value.tzinfo else value.replace(tzinfo=UTC)).isoformat()
    return json.loads(value) if isinstance(kind, Json) else value


def test_a_dump_of_an_earlier_revision_is_read_back(tmp_path: Path) -> None:
    """Into tables of that revision, which are then brought up to date: what a backup of an older version needs."""
    with at_the_release_before(f"sqlite:///{tmp_path / 'old.sqlite'}") as engine:
        tables = tables_of(engine)
        fill(engine, tables, range(ROWS))
        before = rows(engine, tables)
    files = {}
    for table in tables:
        files[table.name] = tmp_path / f"{table.name}.jsonl.gz"
        names = [column.name for column in table.columns]
        known = Base.metadata.tables[table.name].c
        with gzip.open(files[table.name], "wt") as file:
            file.write(json.dumps(names) + "\n")
            for item in before[table.name]:
                values = [
                    as_the_models_read(known[name].type, value)
                    for name, value in zip(names, item, strict=True)
                ]
                file.write(json.dumps(values) + "\n")
    url = f"sqlite:///{tmp_path / 'back.sqlite'}"
    assert read_back(url, BEFORE, files) == {table.name: ROWS for table in tables}
    database = Database(url)
    with database.read() as session:
        states = session.execute(text("SELECT state, epoch, lane FROM jobs ORDER BY id")).all()
        names = session.execute(text("SELECT name FROM projects ORDER BY name")).scalars().all()
    assert states == [
        ("queued", 0, "interactive"),
        ("running", 1, "interactive"),
        ("passed", 0, "interactive"),
    ]
    assert names == ["0", "1", "2", "default"]
    database.close()
