"""A backup, and the service that is made of it, on both databases; `make backup-test` takes one while a job runs."""

import json
import shutil
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

from service import backup as copies
from service.backup import EngineKnows, NotABackup
from service.blobs import BlobStore
from service.cli.backup import backup as backup_command
from service.cli.backup import restore as restore_command
from service.records import dump
from service.records.errors import DatabaseNotEmpty, RevisionOther
from service.records.models import DEFAULT_PROJECT, Audit, Base, Upload
from service.records.types import new_id, now
from service.settings import Settings
from tests.databases import PostgresServer
from tests.worker.material import Material
from tests.worker.rig import Rig, rig


def rows(made: Rig) -> dict[str, list[Any]]:
    """Every row of every table but live workers."""
    with made.parts.database.read() as session:
        return {
            table.name: sorted((tuple(row) for row in session.execute(select(table))), key=repr)
            for table in Base.metadata.sorted_tables
            if table.name != "workers"
        }


def silent(_line: str) -> None:
    """Nobody listens."""


def empty_url(made: Rig, server: PostgresServer, folder: Path, same: bool) -> str:
    """An empty database, of the same kind or of the other."""
    sqlite = made.settings.records_url.startswith("sqlite")
    return f"sqlite:///{folder / 'restored.sqlite'}" if sqlite is same else server.url(server.create())


def test_every_row_comes_back_as_it_was(
    disturbed: Rig, material: Material, postgres_server: PostgresServer, tmp_path: Path
) -> None:
    pushed = disturbed.push(material.artifact)
    if sqlite := disturbed.settings.records_url.startswith("sqlite"):
        disturbed.started()
        disturbed.finished(disturbed.verify(pushed.digest, checks=("structure", "statistics")))
        disturbed.workers[0].kill()
    at = now()
    with disturbed.parts.database.write() as session:
        said = {"actor": "a\0b\x1a\x1a0é", "detail": {"big": 2**80, "\ud800": [None, "\0"]}}
        session.add(Audit(id=new_id(), project_id=None, action="x", at=at, **said))
        facts = {"created_by": "x", "created_at": at, "expires_at": at, "protocol": "tus", "bytes": 5}
        session.add(Upload(id="1" * 32, project_id=DEFAULT_PROJECT, state="receiving", **facts))
    before = rows(disturbed)
    before.pop("uploads")
    copies.backup(disturbed.settings, disturbed.parts.blobs, tmp_path / "copy", False, silent)
    for same in (True, False) if sqlite else (False,):
        url = empty_url(disturbed, postgres_server, tmp_path, same=same)
        target = Settings(data=tmp_path / f"new-{same}", database_url=url)
        copies.restore(target, BlobStore(target.data), tmp_path / "copy", silent)
        with rig(target.data, url) as again:
            after = rows(again)
            with again.parts.database.read() as session:
                upload = session.get(Upload, "1" * 32)
        assert upload is not None
        assert (upload.state, upload.error["code"]) == ("failed", "upload_lost")
        assert len(after.pop("uploads")) == 1
        assert after == before


def test_a_backup_says_what_the_store_lost_and_copies_the_rest_once(
    alone: Rig, material: Material, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    alone.push(material.artifact)
    (kept,) = {path for path in (alone.settings.data / "blobs").glob("??/*") if len(path.name) == 64}
    small = tmp_path / "small"
    small.write_bytes(b"small")
    lost = alone.store(small).digest.removeprefix("sha256:")
    small.write_bytes(b"other")
    bad = alone.store(small).digest.removeprefix("sha256:")
    changes = {"data": alone.settings.data, "database_url": alone.settings.database_url}
    assert backup_command(changes, tmp_path / "copy", None) == 0
    assert backup_command(changes, tmp_path / "copy", None) == 0
    assert "0 of them new" in capsys.readouterr().err
    folders = [tmp_path / "copy", *(path for path in (tmp_path / "copy").rglob("*") if path.is_dir())]
    assert {path.stat().st_mode & 0o777 for path in folders} == {0o700}
    assert len(list((tmp_path / "copy").glob("records-*"))) == 1
    shutil.rmtree(tmp_path / "copy" / "content")
    (kept.parent.parent / lost[:2] / lost).unlink()
    damaged = kept.parent.parent / bad[:2] / bad
    damaged.chmod(0o600)
    damaged.write_bytes(b"wrong")
    assert backup_command(changes, tmp_path / "copy", None) == 1
    said = capsys.readouterr().err
    assert f"1 contents are missing and left out: {lost}" in said
    assert f"1 contents are damaged and left out: {bad}" in said
    assert {path.name for path in (tmp_path / "copy" / "content").glob("??/*")} == {kept.name}


def test_what_is_no_backup_or_no_empty_service_is_refused(
    alone: Rig, material: Material, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    alone.push(material.artifact)
    copy = tmp_path / "copy"
    copies.backup(alone.settings, alone.parts.blobs, copy, True, silent)
    new = Settings(data=tmp_path / "new")
    store = BlobStore(new.data)
    with pytest.raises(DatabaseNotEmpty):
        copies.restore(alone.settings, alone.parts.blobs, copy, silent)
    old = Settings(data=new.data, engine_database_url=alone.settings.engine_url)
    with pytest.raises(EngineKnows):
        copies.restore(old, store, copy, silent)
    with pytest.raises(NotABackup, match="missing"):
        copies.restore(new, store, tmp_path / "nothing", silent)
    manifest = json.loads((copy / copies.MANIFEST).read_text())
    for change in ({"schema": "other"}, {"tables": {"../x": {}}}, {"tables": 5}, {"records": "../.."}):
        (copy / copies.MANIFEST).write_text(json.dumps({**manifest, **change}))
        with pytest.raises(NotABackup):
            copies.restore(new, store, copy, silent)
    (copy / copies.MANIFEST).write_text(json.dumps(manifest))
    jobs = copy / manifest["records"] / "jobs.jsonl.gz"
    whole = jobs.read_bytes()
    jobs.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    assert restore_command({"data": new.data}, copy) == 2
    assert "is damaged: jobs.jsonl.gz" in capsys.readouterr().err
    jobs.write_bytes(whole)
    assert not Path(new.data, "records.sqlite").exists()
    (content,) = (copy / "content").glob("??/*")
    content.chmod(0o600)
    content.write_bytes(b"wrong")
    assert restore_command({"data": new.data}, copy) == 1
    assert content.name in capsys.readouterr().err


def test_tables_of_another_revision_are_refused(alone: Rig, tmp_path: Path) -> None:
    path = alone.settings.records_url.removeprefix("sqlite:///")
    file = sqlite3.connect(path)
    file.execute("UPDATE alembic_version SET version_num = 'older'")
    file.commit()
    file.close()
    with pytest.raises(RevisionOther), dump.snapshot(alone.settings.records_url, tmp_path):
        pass
    assert list(tmp_path.glob("*.sqlite*")) == []
