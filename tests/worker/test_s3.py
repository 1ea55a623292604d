"""Jobs of services whose content lies in a bucket: on several machines, and while its server fails or damages it."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from service.blobs import S3Store
from service.records import models
from tests.s3 import S3Server
from tests.worker.material import Material
from tests.worker.rig import Rig, rig, until


@pytest.fixture
def made(tmp_path: Path, s3_settings: dict[str, Any]) -> Iterator[Rig]:
    """A service without a worker, whose jobs have a few shards."""
    with rig(tmp_path / "data", shard_bytes=2 << 20, cache_bytes=64 << 20, **s3_settings) as service:
        yield service


def another_machine(service: Rig, folder: Path) -> None:
    """A worker with a folder of its own, and the same databases."""
    settings = service.settings
    service.start(
        NINFER_GATE_DATA=str(folder),
        NINFER_GATE_DATABASE_URL=settings.records_url,
        NINFER_GATE_ENGINE_DATABASE_URL=settings.engine_url,
    )


def bucket_of(service: Rig) -> str:
    return str(service.settings.store).split("/")[2]


def key_of(service: Rig, digest: str) -> str:
    store = service.parts.blobs
    assert isinstance(store, S3Store)
    return f"gate/{store.key(digest.removeprefix('sha256:'))}"


def alarms(service: Rig) -> list[dict[str, Any]]:
    lines = [
        json.loads(line)
        for worker in service.workers
        for line in worker.text().splitlines()
        if "blob.damaged" in line
    ]
    return [line for line in lines if line["event"] == "blob.damaged"]


def test_machines_share_what_they_make(made: Rig, material: Material, s3: S3Server, tmp_path: Path) -> None:
    for name in ("a", "b"):
        another_machine(made, tmp_path / name)
    s3.fail(status=500, times=3, method="GET", key="/blobs/")
    s3.fail(status=503, times=3, method="PUT", key="/work/")
    s3.fail(cut=True, times=2, method="GET", key="/blobs/")
    checkpoint = made.checkpoint(material.folder)
    converted = made.finished(made.convert(checkpoint, material.document))
    assert converted.state == "passed"
    with made.parts.database.read() as session:
        artifact = session.get(models.Artifact, converted.artifact_id)
        assert artifact is not None
    expected = material.artifact.read_bytes()
    assert s3.get(bucket_of(made), key_of(made, artifact.digest)) == expected
    until("segments are cleared", lambda: not list(made.parts.blobs.works()), 30)
    assert s3.unfinished(bucket_of(made)) == 0
    assert alarms(made) == []


def test_damage_is_found_and_told_from_what_happened_on_the_way(
    made: Rig, material: Material, s3: S3Server, tmp_path: Path
) -> None:
    another_machine(made, tmp_path / "a")
    artifact = made.push(material.artifact)
    bucket, key = bucket_of(made), key_of(made, artifact.digest)
    whole = s3.get(bucket, key)

    assert made.finished(made.verify(artifact.digest)).state == "passed"
    damaged = bytearray(whole)
    damaged[-7] ^= 1
    s3.put(bucket, key, bytes(damaged))  # the cache has it whole, and is no witness of what lies there now
    job = made.finished(made.verify(artifact.digest))
    assert job.state == "failed"
    changed = [one for one in made.report(job.id)["findings"] if one["code"] == "structure.file_changed"]
    assert len(changed) == 1
    assert artifact.digest.removeprefix("sha256:") in changed[0]["message"]
    assert [alarm["sha256"] for alarm in alarms(made)] == [artifact.digest.removeprefix("sha256:")]

    made.store(material.artifact)  # pushed again
    assert s3.get(bucket, key) == whole
    assert made.finished(made.verify(artifact.digest)).state == "passed"


def test_what_happens_on_the_way_is_no_verdict(
    made: Rig, material: Material, s3: S3Server, tmp_path: Path
) -> None:
    artifact = made.push(material.artifact)
    away = s3.fail(status=403, key="/blobs/")
    job = made.verify(artifact.digest)
    another_machine(made, tmp_path / "a")
    until("the store was asked", lambda: away.seen)
    assert made.row(job).state in ("queued", "running")
    s3.mend()
    assert made.finished(job).state == "passed"

    artifact = made.push(material.damaged)
    flipped = s3.fail(method="GET", key="/blobs/", flip=True)
    job = made.verify(artifact.digest)
    until("it was read wrongly", lambda: flipped.seen)
    s3.mend()  # the cache has some of it wrong
    assert made.finished(job).state == "failed"  # for the words that are damaged in what was pushed
    codes = {one["code"] for one in made.report(job)["findings"]}
    assert "structure.file_changed" not in codes
    assert alarms(made) == []
