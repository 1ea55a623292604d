"""From nothing to the models, by one process or several, and what is refused."""

import os
import shutil
import sqlite3
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from alembic import command
from sqlalchemy import func, inspect, select, text

from ninfer_core.encoders import PROFILES
from service.cli.migrate import migrate as migrate_command
from service.records import connections, content, schema
from service.records.database import Database, Migrated, head, migrate, revision
from service.records.errors import DatabaseNewer, DatabaseUnreachable, ProfileChanged, ReferencesBroken
from service.records.models import DEFAULT_PROJECT, Base, EncoderProfile, Project, Result, Run
from service.records.types import now
from tests.service.records.build import in_processes, sha


def test_tables_equal_the_models(database: Database) -> None:
    with connections.writers(database.engine).begin() as connection, warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*expression-based index 'ix_.*_worst'", UserWarning)
        command.check(schema.configuration(connection))


def test_sqlite_tables_equal_the_models_to_the_letter(sqlite_url: str, tmp_path: Path) -> None:
    made = connections.writers(connections.engine(f"sqlite:///{tmp_path / 'models.sqlite'}"))
    Base.metadata.create_all(made)
    made.dispose()

    def described(path: Path) -> dict[str, Any]:
        file = sqlite3.connect(path)
        tables = [row[0] for row in file.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        query = "SELECT name, sql FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL"
        indexes = dict(file.execute(query).fetchall())
        columns = {
            table: sorted(row[1:] for row in file.execute(f"PRAGMA table_info({table})"))
            for table in tables
            if table != "alembic_version"
        }
        file.close()
        return columns | indexes

    assert described(Path(sqlite_url.removeprefix("sqlite:///"))) == described(tmp_path / "models.sqlite")


def test_every_constraint_has_a_name(database: Database) -> None:
    inspector = inspect(database.engine)
    for table in Base.metadata.tables:
        named = [inspector.get_pk_constraint(table), *inspector.get_foreign_keys(table)]
        named += inspector.get_unique_constraints(table)
        assert all(constraint["name"] for constraint in named), table


def test_from_nothing_and_again(empty_url: str) -> None:
    database = Database(empty_url)
    assert revision(database) is None
    assert migrate(empty_url) == Migrated(None, head())
    assert migrate(empty_url) == Migrated(head(), head())
    assert revision(database) == head()
    with database.read() as session:
        assert [project.id for project in session.scalars(select(Project))] == [DEFAULT_PROJECT]
        recorded = [(profile.name, profile.version) for profile in content.profiles(session)]
    assert recorded == sorted((profile.name, profile.version) for profile in PROFILES)
    database.close()


def test_rows_of_the_first_tables_live_on(empty_url: str) -> None:
    engine = connections.engine(empty_url)
    at, id_ = "2026-11-30 00:00:00", "1" * 32
    rows = {
        "projects": {"id": DEFAULT_PROJECT, "name": DEFAULT_PROJECT, "created_at": at},
        "artifacts": {
            "id": id_,
            "project_id": DEFAULT_PROJECT,
            "digest": "d",
            "kind": "ninfer",
            "entry": "e",
            "bytes": 1,
            "origin": "pushed",
            "listing": "listed",
            "created_at": at,
        },
        "jobs": {
            "id": id_,
            "project_id": DEFAULT_PROJECT,
            "type": "verify",
            "state": "passed",
            "request": "{}",
            "request_digest": "d",
            "cancel_requested": False,
            "created_at": at,
        },
        "runs": {
            "id": id_,
            "project_id": DEFAULT_PROJECT,
            "job_id": id_,
            "artifact_id": id_,
            "checks": "[]",
            "created_at": at,
        },
        "results": {
            "run_id": id_,
            "project_id": DEFAULT_PROJECT,
            "ordinal": 0,
            "outcome": "passed",
            "metrics": "{}",
        },
    }
    with connections.writers(engine).begin() as connection:
        command.upgrade(schema.configuration(connection), "2026_11_30_first_tables")
        for table, values in rows.items():
            named = ", ".join(f":{name}" for name in values)
            connection.execute(text(f"INSERT INTO {table} ({', '.join(values)}) VALUES ({named})"), values)  # noqa: S608  our own
    engine.dispose()
    assert migrate(empty_url) == Migrated("2026_11_30_first_tables", head())
    database = Database(empty_url)
    with database.read() as session:
        (run,) = session.scalars(select(Run))
        assert (run.canonical, run.full, run.target, run.reuse) == (False, False, None, None)
        (result,) = session.scalars(select(Result))
        assert (result.coverage, result.reuse_key) == (None, None)
        assert content.find_artifact(session, DEFAULT_PROJECT, "d") is not None
    database.close()


def test_two_processes_at_once(empty_url: str) -> None:
    done = in_processes(migrate, [empty_url, empty_url])
    assert sorted(done, key=lambda one: one.before or "") == [
        Migrated(None, head()),
        Migrated(head(), head()),
    ]
    database = Database(empty_url)
    with database.read() as session:
        assert session.scalar(select(func.count()).select_from(Project)) == 1
        assert session.scalar(text("SELECT count(*) FROM alembic_version")) == 1
    database.close()


def test_a_migration_that_fails_leaves_nothing(empty_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: Any) -> None:
        raise KeyError("on purpose")

    monkeypatch.setattr(schema.profiles, "ensure", fail)
    with pytest.raises(KeyError):
        migrate(empty_url)
    database = Database(empty_url)
    assert inspect(database.engine).get_table_names() == []
    database.close()
    monkeypatch.undo()
    assert migrate(empty_url) == Migrated(None, head())


def test_newer_tables_are_refused(database: Database, database_url: str) -> None:
    with database.write() as session:
        session.execute(text("UPDATE alembic_version SET version_num = '2099_01_01_later'"))
    with pytest.raises(DatabaseNewer, match="2099_01_01_later") as error:
        migrate(database_url)
    assert error.value.revision == revision(database) == "2099_01_01_later"


@pytest.mark.parametrize(
    ("column", "what"), [("specification_digest", "specification"), ("vectors_digest", "known answers")]
)
def test_a_changed_meaning_under_an_old_name_is_refused(
    database: Database, database_url: str, column: str, what: str
) -> None:
    with database.write() as session:
        for profile in session.scalars(select(EncoderProfile)):
            setattr(profile, column, "sha256:" + "0" * 64)
    with pytest.raises(ProfileChanged, match=f"MAXABS_F16_RECIP_RNE_V1 version 1 .*{what}"):
        migrate(database_url)


def test_profiles_of_other_versions_stay(database: Database, database_url: str) -> None:
    with database.write() as session:
        facts = {"specification": "s", "specification_digest": "sha256:1", "vectors_digest": "sha256:2"}
        session.add(EncoderProfile(name="OLD", version=1, first_seen_at=now(), **facts))
    migrate(database_url)
    with database.read() as session:
        assert ("OLD", 1) in {(profile.name, profile.version) for profile in content.profiles(session)}


def test_broken_references_are_found_on_sqlite(sqlite_url: str) -> None:
    file = sqlite3.connect(sqlite_url.removeprefix("sqlite:///"))
    file.execute(
        "INSERT INTO blobs (project_id, sha256, bytes, created_at) "
        "VALUES ('nobody', ?, 1, '2026-11-30 00:00:00.000000')",
        [sha(1)],
    )
    file.commit()
    file.close()
    with pytest.raises(ReferencesBroken, match="blobs"):
        migrate(sqlite_url)


def test_sqlite_makes_its_folder(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b" / "c%20 é?.sqlite"
    migrate(f"sqlite:///{quote(str(path))}")
    assert path.stat().st_size > 0
    assert (tmp_path / "a" / "b").stat().st_mode & 0o077 == 0


def test_unreachable(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no database, but long enough to be looked at as one " * 100)
    for url in (
        f"sqlite:///{tmp_path / 'file' / 'below'}",
        f"sqlite:///{tmp_path / 'file'}",
        f"postgresql://user:secret@/name?host={tmp_path}",
    ):
        with pytest.raises(DatabaseUnreachable) as error:
            migrate(url)
        assert "secret" not in str(error.value)


def test_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert migrate_command({"data": tmp_path / "data", "database_url": None}) == 0
    first = capsys.readouterr().out.splitlines()
    assert first[0].endswith(f"records.sqlite: made the tables, at revision {head()}.")
    assert first[1].endswith("engine.sqlite: the tables of the durable engine are up to date.")
    assert migrate_command({"data": tmp_path / "data", "database_url": None}) == 0
    assert f"up to date, at revision {head()}." in capsys.readouterr().out
    assert migrate_command({"data": tmp_path / "data", "database_url": "mysql://h/n"}) == 2
    assert "mysql are not supported" in capsys.readouterr().err


def test_the_next_migration_can_be_drafted(tmp_path: Path) -> None:
    root = Path(__file__).resolve().parents[3]
    shutil.copytree(
        root / "migrations", tmp_path / "migrations", ignore=shutil.ignore_patterns("__pycache__")
    )
    subprocess.run(
        [sys.executable, "-m", "migrations", "nothing so far"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(root), *sys.path])},
        check=True,
        capture_output=True,
    )
    drafts = list((tmp_path / "migrations" / "versions").glob("*_nothing_so_far.py"))
    assert len(drafts) == 1
    draft = drafts[0].read_text()
    assert f"down_revision = {head()!r}" in draft
    assert "op." not in draft
