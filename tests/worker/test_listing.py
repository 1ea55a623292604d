"""The objects of an artifact: listed in spite of passing faults, and there for whatever a run says of them."""

from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

from service.queue import listing_id
from service.records import content, models, runs
from tests.worker.inside import follow, inside
from tests.worker.material import COUNT, Material, report
from tests.worker.rig import Rig, until
from worker.workflows import listing, verify


def artifact_of(rig: Rig, artifact_id: str) -> models.Artifact:
    """The artifact as it is now."""
    with rig.parts.database.read() as session:
        found = content.artifact(session, artifact_id)
    assert found is not None
    return found


def objects(rig: Rig, artifact_id: str) -> list[dict[str, Any]]:
    """Its objects."""
    with rig.parts.database.read() as session:
        query = select(models.Object).where(models.Object.artifact_id == artifact_id)
        rows = session.scalars(query.order_by(models.Object.ordinal)).all()
    names = ("ordinal", "name", "name_key", "kind", "format", "layout", "entry")
    return [{name: getattr(row, name) for name in names} for row in rows]


def say_unreadable(rig: Rig, artifact_id: str) -> None:
    """As an earlier attempt may have said."""
    facts: dict[str, Any] = {"revision": None, "model_id": None, "weights_id": None}
    with rig.parts.database.write() as session:
        content.list_objects(session, artifact_id, rows=[], listing="unreadable", **facts)


def pages_of(rig: Rig, job_id: str) -> int:
    """How many results can be shown with their objects."""
    with rig.parts.database.read() as session:
        run = runs.by_job(session, job_id)
        assert run is not None
        return len(runs.results(session, run.id, limit=1_000).items)


def test_a_passing_fault_leaves_an_artifact_to_be_listed_later(alone: Rig, material: Material) -> None:
    artifact = alone.push(material.artifact)
    path = alone.parts.blobs.path(artifact.digest.removeprefix("sha256:"))
    away = path.rename(path.with_suffix(".away"))
    alone.started()
    first, second = listing_id(artifact.id), listing_id(artifact.id, 1)
    until("it was tried", lambda: alone.queue.status([first])[first] == "SUCCESS")
    assert artifact_of(alone, artifact.id).listing == "pending"
    until("it is to be tried again", lambda: alone.queue.status([second])[second] is not None)
    away.rename(path)
    until("it is listed", lambda: artifact_of(alone, artifact.id).listing == "listed")
    assert len(objects(alone, artifact.id)) == COUNT + 3


def test_attempts_have_an_end(alone: Rig, material: Material, monkeypatch: pytest.MonkeyPatch) -> None:
    artifact = alone.push(material.artifact)
    alone.parts.blobs.path(artifact.digest.removeprefix("sha256:")).unlink()
    asked: list[tuple[str, float | None]] = []

    def enqueue(workflow: str, id_: str, *_: str | int, delay_seconds: float | None = None) -> None:
        asked.append((id_, delay_seconds))

    monkeypatch.setattr(alone.queue, "enqueue", enqueue)
    with inside(alone) as context:
        for attempt in range(len(listing._AGAIN) + 1):
            listing._list(context, artifact.id, attempt)
    assert [id_ for id_, _ in asked] == [listing_id(artifact.id, n + 1) for n in range(len(listing._AGAIN))]
    delays = [delay or 0.0 for _, delay in asked]
    assert delays == sorted(delays)
    assert delays[0] >= 1
    assert artifact_of(alone, artifact.id).listing == "pending"


def test_what_is_no_directory_is_unreadable(alone: Rig, tmp_path: Path) -> None:
    path = tmp_path / "nothing.ninfer"
    path.write_bytes(b"nothing at all")
    artifact = alone.push(path)
    with inside(alone) as context:
        assert listing.list_if_possible(context.store, artifact.id)
    assert artifact_of(alone, artifact.id).listing == "unreadable"


@pytest.mark.parametrize("at_plan", [True, False], ids=["listed when planned", "out of the report"])
def test_a_verification_that_reads_a_directory_overrules_unreadable(
    disturbed: Rig, material: Material, monkeypatch: pytest.MonkeyPatch, at_plan: bool
) -> None:
    expected = report(material.damaged, material, parity=False, code=1)
    artifact = disturbed.push(material.damaged)
    say_unreadable(disturbed, artifact.id)
    if not at_plan:
        monkeypatch.setattr(verify, "list_if_possible", lambda *_: False)
    job_id = disturbed.verify(artifact.digest)
    with inside(disturbed) as context:
        follow(context, job_id)
    assert disturbed.row(job_id).state == "failed"
    assert disturbed.report(job_id) == expected
    assert pages_of(disturbed, job_id) == COUNT + 3
    found = artifact_of(disturbed, artifact.id)
    assert (found.listing, found.object_count, found.revision) == ("listed", COUNT + 3, 2)
    identity = expected["artifact"]["identity"]
    assert (found.model_id, found.weights_id) == (identity["model_id"], identity["weights_id"])


def test_rows_out_of_a_report_are_those_of_the_directory(
    alone: Rig, material: Material, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = {}
    for path in (material.artifact, material.damaged, material.folder / "model.safetensors"):
        artifact = alone.push(path, "safetensors" if path.suffix == ".safetensors" else "ninfer")
        with inside(alone) as context:
            assert listing.list_if_possible(context.store, artifact.id)
            rows[path] = objects(alone, artifact.id)
            job_id = alone.verify(artifact.digest)
            seen: list[Any] = []
            save = verify._save
            monkeypatch.setattr(verify, "_save", lambda *args: seen.append(args[2]) or save(*args))  # noqa: B023
            follow(context, job_id)
            monkeypatch.undo()
        made = [listing._reported(artifact, item) for item in seen[0].objects]
        names = ("ordinal", "name", "kind", "format", "layout", "entry")
        assert [{name: getattr(row, name) for name in names} for row in made] == [
            {name: row[name] for name in names} for row in rows[path]
        ]


def test_results_of_objects_that_were_never_listed_have_rows(alone: Rig, material: Material) -> None:
    """The file that was listed had fewer: what lies on the disk now is another one."""
    artifact = alone.push(material.artifact)
    facts: dict[str, Any] = {"revision": 2, "model_id": None, "weights_id": None}
    one = models.Object(ordinal=0, name="first", entry={})
    with alone.parts.database.write() as session:
        content.list_objects(session, artifact.id, rows=[one], listing="listed", **facts)
    job_id = alone.verify(artifact.digest)
    with inside(alone) as context:
        follow(context, job_id)
    assert pages_of(alone, job_id) == COUNT + 3
    assert objects(alone, artifact.id)[0]["name"] == "first"
