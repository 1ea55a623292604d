"""Jobs that nobody disturbs: the same reports and the same bytes as the command line's."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

from ninfer_core.identity import FileDigest, artifact_digest
from ninfer_core.opening import open_path
from ninfer_core.verify import asked, default_checks, verify
from service import campaigns, scheme_checks
from service.campaigns import Query, Start
from service.job_requests import Verify
from service.records import content, models
from service.scheme_checks import CheckScheme
from tests.build import recipe, tensor, write_checkpoint
from tests.worker.material import COUNT, Material, command, report
from tests.worker.rig import PROJECT, Rig, until


def stored(rig: Rig, job: models.Job) -> tuple[models.Artifact, list[models.ArtifactFile]]:
    """The artifact of a job, and its files."""
    with rig.parts.database.read() as session:
        artifact = content.artifact(session, job.artifact_id or "")
        assert artifact is not None
        return artifact, content.files(session, artifact.id)


def objects(rig: Rig, artifact: models.Artifact) -> list[models.Object]:
    """What is listed of it."""
    with rig.parts.database.read() as session:
        query = select(models.Object).where(models.Object.artifact_id == artifact.id)
        return list(session.scalars(query.order_by(models.Object.ordinal)))


@pytest.fixture(scope="module")
def checkpoint(shared: Rig, material: Material) -> str:
    """The material's checkpoint in the service."""
    return shared.checkpoint(material.folder)


def test_conversion_makes_the_bytes_of_the_command_line(
    shared: Rig, material: Material, checkpoint: str
) -> None:
    job = shared.finished(shared.convert(checkpoint, material.document))
    assert (job.state, job.error) == ("passed", None)
    artifact, files = stored(shared, job)
    assert [file.name for file in files] == ["out.ninfer"]
    assert shared.parts.blobs.path(files[0].sha256).read_bytes() == material.artifact.read_bytes()
    assert (artifact.origin, artifact.listing, artifact.object_count) == ("converted", "listed", COUNT + 3)
    rows = shared.rows(job.id)
    conversion = rows["conversions"][0]
    made = [row["document"] for row in rows["conversion_objects"]]
    findings = [row["document"] for row in rows["conversion_findings"]]
    assert {**conversion["document"], "objects": made, "findings": findings} == material.conversion
    assert (conversion["verdict"], conversion["artifact_id"]) == ("written", artifact.id)
    until("its folder is gone", lambda: not (shared.settings.data / "work" / job.id).exists())


def test_conversion_in_parts(shared: Rig, material: Material, checkpoint: str, tmp_path: Path) -> None:
    limit = 1 << 20
    out = tmp_path / "parts.ninfer"
    sources = ("--checkpoint", material.folder, "--recipe", material.recipe)
    command("convert", *sources, "--out", out, "--revision", "3", "--max-file-bytes", str(limit))
    from service.job_requests import Convert, Output

    text = material.recipe.read_bytes()
    asked = Convert(text, {"base": checkpoint}, Output(3, limit, "parts.ninfer"))
    job = shared.finished(shared.job(asked))
    assert (job.state, job.error) == ("passed", None)
    artifact, files = stored(shared, job)
    assert len(files) > 3
    for file in files:
        assert shared.parts.blobs.path(file.sha256).read_bytes() == (tmp_path / file.name).read_bytes()
    digests = [FileDigest(file.name, file.bytes, file.sha256) for file in files]
    assert artifact.digest == artifact_digest("ninfer", digests)


@pytest.mark.parametrize("parity", [False, True], ids=["plain", "parity"])
@pytest.mark.parametrize("which", ["artifact", "damaged"])
def test_report_is_that_of_the_command_line(
    shared: Rig, material: Material, checkpoint: str, which: str, parity: bool
) -> None:
    path: Path = getattr(material, which)
    expected = report(path, material, parity=parity, code=0 if which == "artifact" else 1)
    artifact = shared.push(path)
    against = (checkpoint, material.document) if parity else ()
    job = shared.finished(shared.verify(artifact.digest, *against))
    assert job.error is None
    assert shared.report(job.id) == expected
    assert job.state == expected["verdict"]
    run = shared.rows(job.id)["runs"][0]
    errors = [finding for finding in expected["findings"] if finding["severity"] == "error"]
    assert (run["verdict"], run["errors"]) == (expected["verdict"], len(errors))
    assert run["advisories"] == len(expected["findings"]) - len(errors)


def test_report_of_a_checkpoint(shared: Rig, material: Material) -> None:
    path = material.folder / "model.safetensors"
    expected = report(path, material, parity=False)
    artifact = shared.push(path, "safetensors")
    job = shared.finished(shared.verify(artifact.digest))
    assert shared.report(job.id) == expected


def test_half_of_what_parity_needs_is_no_pass(shared: Rig, material: Material, checkpoint: str) -> None:
    artifact = shared.push(material.artifact)
    job = shared.finished(shared.verify(artifact.digest, checkpoint, None))
    assert job.state == "incomplete"
    reasons = [check["reason"] for check in shared.report(job.id)["checks"] if check["name"] == "parity"]
    assert reasons == ["no recipe was given"]
    with_parity = ("structure", "parity")
    job = shared.finished(shared.verify(artifact.digest, None, material.document, with_parity))
    reasons = [check["reason"] for check in shared.report(job.id)["checks"] if check["name"] == "parity"]
    assert (job.state, reasons) == ("incomplete", ["no source was given"])


def test_a_recipe_alone_asks_what_it_demands_and_not_parity(
    shared: Rig, material: Material, checkpoint: str
) -> None:
    artifact = shared.push(material.artifact)
    job = shared.finished(shared.verify(artifact.digest, None, material.document))
    outcomes = {check["name"]: check["outcome"] for check in shared.report(job.id)["checks"]}
    assert (job.state, outcomes["layout"]) == ("passed", "passed")
    assert outcomes["restrictions"] == outcomes["relations"] == "not_asked"  # it demands and relates nothing
    assert outcomes["parity"] == outcomes["source"] == "not_asked"


def test_a_file_that_is_nothing(shared: Rig, material: Material, tmp_path: Path) -> None:
    path = tmp_path / "nothing.ninfer"
    path.write_bytes(b"nothing at all")
    expected = report(path, material, parity=False, code=1)
    artifact = shared.push(path)
    job = shared.finished(shared.verify(artifact.digest))
    assert shared.report(job.id) == expected
    artifact, _ = stored(shared, job)
    assert (artifact.listing, job.state) == ("unreadable", "failed")


def test_a_refused_conversion_fails_and_makes_nothing(shared: Rig, tmp_path: Path) -> None:
    import numpy as np

    words = np.zeros((4, 64), "<u4")
    words[2, 3] = 0x7FC00000
    folder = write_checkpoint(tmp_path, {"w": ("F32", words)})
    rules = [
        {
            "object": "w",
            "value": tensor("w", (4, 64), "F32"),
            "encode": "MAXABS_F16_RECIP_RNE_V1",
            "format": "Q4G64_F16S",
        }
    ]
    checkpoint = shared.checkpoint(folder)
    job = shared.finished(shared.convert(checkpoint, recipe(rules)))
    assert (job.state, job.artifact_id, job.error) == ("failed", None, None)
    rows = shared.rows(job.id)
    assert [row["code"] for row in rows["conversion_findings"]] == ["convert.source_not_finite"]
    assert rows["conversions"][0]["verdict"] == "refused"
    # One whose recipe asks for what the checkpoint does not hold is refused before any shard is made.
    rules[0]["value"] = tensor("v", (4, 64), "F32")
    job = shared.finished(shared.convert(checkpoint, recipe(rules)))
    rows = shared.rows(job.id)
    assert (job.state, rows["shards"]) == ("failed", [])
    assert "source.tensor_missing" in [row["code"] for row in rows["conversion_findings"]]
    assert rows["conversions"][0]["document"]["recipe"] is None


def test_a_conversion_keeps_what_binding_told(shared: Rig, tmp_path: Path) -> None:
    import numpy as np

    words = np.zeros((4, 64), "<u4")
    folder = write_checkpoint(tmp_path, {"w": ("F32", words), "spare": ("F32", words)})
    document = recipe(
        [{"object": "w", "value": tensor("w", (4, 64), "F32"), "encode": "copy_words", "format": "FP32"}]
    )
    job = shared.finished(shared.convert(shared.checkpoint(folder), document))
    rows = shared.rows(job.id)
    assert (job.state, rows["conversions"][0]["verdict"]) == ("passed", "written")
    found = [(row["code"], row["severity"]) for row in rows["conversion_findings"]]
    assert found == [("source.tensor_unaccounted", "advisory")]


def test_what_cannot_be_asked_is_an_error(shared: Rig, material: Material, checkpoint: str) -> None:
    from service.job_requests import Convert, Output

    text = material.recipe.read_bytes()
    job = shared.finished(shared.job(Convert(text, {"base": checkpoint}, Output(2, 1000, "small.ninfer"))))
    assert job.state == "error"
    assert job.error is not None
    assert job.error["code"] == "usage"


def test_content_that_is_gone_is_an_error(shared: Rig, tmp_path: Path) -> None:
    path = tmp_path / "gone.ninfer"
    path.write_bytes(os.urandom(5000))
    artifact = shared.push(path)
    until("it is listed", lambda: stored_listing(shared, artifact.digest) != "pending")
    shared.parts.blobs.path(artifact.digest.removeprefix("sha256:")).unlink()
    job = shared.finished(shared.verify(artifact.digest))
    assert job.state == "error"
    assert job.error is not None
    assert job.error["code"] == "cannot_read"


def stored_listing(rig: Rig, digest: str) -> str:
    """How far an artifact's listing is."""
    with rig.parts.database.read() as session:
        artifact = content.find_artifact(session, PROJECT, digest)
    assert artifact is not None
    return artifact.listing


def test_content_that_is_no_longer_what_was_stored_does_not_pass(
    shared: Rig, material: Material, tmp_path: Path
) -> None:
    content_ = bytearray(material.artifact.read_bytes())
    content_[9] ^= 0  # the same content under another name makes no other artifact: change what nobody checks
    copy = tmp_path / "copy.ninfer"
    copy.write_bytes(bytes(content_) + bytes(512))
    artifact = shared.push(copy)
    first = shared.finished(shared.verify(artifact.digest))
    path = shared.parts.blobs.path(artifact.digest.removeprefix("sha256:"))
    path.chmod(0o644)
    content_ = bytearray(path.read_bytes())
    content_[-1] = 1  # behind every object
    path.write_bytes(content_)
    job = shared.finished(shared.verify(artifact.digest))
    findings = shared.report(job.id)["findings"]
    changed = [finding for finding in findings if finding["code"] == "structure.file_changed"]
    assert (job.state, len(changed)) == ("failed", 1), (first.state, findings)
    assert artifact.digest.removeprefix("sha256:") in changed[0]["message"]


def test_objects_are_listed_when_an_artifact_comes(shared: Rig, material: Material) -> None:
    expected = report(material.artifact, material, parity=False)["objects"]
    artifact = shared.push(material.artifact)
    until("it is listed", lambda: stored_listing(shared, artifact.digest) == "listed")
    found: list[dict[str, Any]] = [
        {"ordinal": row.ordinal, "name": row.name, "kind": row.kind, **row.entry}
        for row in objects(shared, artifact)
    ]
    assert found == [{name: entry[name] for name in found[0]} for entry in expected]


def test_events_count_up_and_end_with_the_state(shared: Rig, material: Material) -> None:
    artifact = shared.push(material.artifact)
    job = shared.finished(shared.verify(artifact.digest))
    events = shared.events(job.id)
    assert [number for number, _, _ in events] == list(range(1, len(events) + 1))
    assert events[0][2] == "state:queued"
    assert events[-1][2] == "state:final"
    assert shared.shards_done(job.id) == len([event for event in events if event[1] == "progress"])
    assert job.objects == COUNT + 3


def test_names_that_no_database_likes_are_kept(shared: Rig, tmp_path: Path) -> None:
    """NUL, half a surrogate pair, the escape of the records: each in a name of an object."""
    names = ["nul\0", "half\ud800", "sub\x1a0", "é", "a" * 300]
    entries = {
        name: {"dtype": "F32", "shape": [1], "data_offsets": [4 * index, 4 * index + 4]}
        for index, name in enumerate(names)
    }
    head = json.dumps(entries).encode()
    path = tmp_path / "names.safetensors"
    path.write_bytes(len(head).to_bytes(8, "little") + head + bytes(4 * len(names)))
    artifact = shared.push(path, "safetensors")
    job = shared.finished(shared.verify(artifact.digest))
    assert job.error is None
    with open_path(path) as opened:
        expected = verify(opened, asked(default_checks("safetensors"))).as_json()
    assert shared.report(job.id) == json.loads(json.dumps(expected))


def test_a_struct_type_is_checked_by_a_worker(shared: Rig, tmp_path: Path) -> None:
    path = tmp_path / "type.json"
    path.write_text(json.dumps({"types": [{"array": {"element": "UINT8", "dimension": 9}}], "root": 0}))
    job = shared.finished(shared.job(CheckScheme(struct=shared.store(path).digest)))
    assert (job.state, job.error) == ("passed", None)
    assert scheme_checks.one(shared.parts, PROJECT, job.id).check.document["size_bytes"] == 9


def test_a_campaign_verifies_what_it_finds_and_is_done(shared: Rig, material: Material) -> None:
    pushed = shared.push(material.artifact)
    asked = Start("all", Query(kind="ninfer"), Verify("", checks=("structure",), full=True))
    found = campaigns.preview(shared.parts, PROJECT, asked)
    view = campaigns.begin(shared.parts, PROJECT, asked, "a test")

    def done() -> campaigns.CampaignView | None:
        now = campaigns.view(shared.parts, PROJECT, view.campaign.id)
        return now if now.campaign.state == "done" else None

    over = until("the campaign is done", done)
    assert over.campaign.selected == sum(over.counts.values()) == found >= 1
    made = campaigns.jobs_of(shared.parts, PROJECT, view.campaign.id, limit=100, cursor=None).items
    assert [item.job.state for item in made if item.artifact == pushed.digest] == ["passed"]
