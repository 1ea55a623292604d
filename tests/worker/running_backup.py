"""A backup that is taken while a job runs, on both databases: the service that is made of it ends the job with equal rows.

Not collected by `make test`, for it takes a minute: `make backup-test` runs it.
"""

from pathlib import Path

from service import backup as copies
from service.blobs import BlobStore
from service.settings import Settings
from tests.databases import PostgresServer
from tests.worker.material import Material
from tests.worker.rig import Rig, rig, until
from tests.worker.test_backup import empty_url, silent


def test_a_service_of_a_backup_ends_what_was_running(
    disturbed: Rig, material: Material, postgres_server: PostgresServer, tmp_path: Path
) -> None:
    """On the other kind of database: what goes from one to the other goes from one to itself."""
    disturbed.push(material.artifact)  # or either service would make an artifact of its own
    running = disturbed.convert(disturbed.checkpoint(material.folder), material.document)
    disturbed.started()
    until("some of it is done", lambda: disturbed.shards_done(running))
    settings, blobs = disturbed.settings, disturbed.parts.blobs
    manifest = copies.backup(settings, blobs, tmp_path / "copy", True, silent)
    assert manifest["content"]["missing"]["count"] == manifest["content"]["damaged"]["count"] == 0
    assert manifest["content"]["files"] == manifest["content"]["copied"] >= 2
    assert disturbed.finished(running).state == "passed"  # it went on all the while
    wanted = disturbed.rows(running)

    url = empty_url(disturbed, postgres_server, tmp_path, same=False)
    new = Settings(data=tmp_path / "new", database_url=url)
    told = copies.restore(new, BlobStore(new.data), tmp_path / "copy", silent)
    assert told["content"]["copied"] == manifest["content"]["files"]
    with rig(tmp_path / "new", url, shard_bytes=settings.shard_bytes) as again:
        assert again.row(running).state == "running"
        again.started()
        assert again.finished(running).state == "passed"
        found = again.rows(running)
    assert (wanted["jobs"][0].pop("epoch"), found["jobs"][0].pop("epoch")) == (0, 1)  # it began anew
    assert found == wanted
