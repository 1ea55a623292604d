"""Comparisons by workers: what the command line says, whoever does it, and what happens when a file is not what it was."""

import json
from pathlib import Path
from typing import Any

import pytest

from service import comparisons
from service.comparisons import Compare
from tests.worker.inside import follow, inside
from tests.worker.material import Material, command
from tests.worker.rig import PROJECT, Rig, rig


@pytest.fixture
def made(tmp_path: Path) -> Any:
    with rig(tmp_path / "data", shard_bytes=400_000) as built:
        yield built


def ask(rig: Rig, a: Path, b: Path) -> str:
    """A new comparison; its id."""
    return rig.job(Compare(rig.push(a).digest, rig.push(b).digest))


def document(rig: Rig, job_id: str) -> Any:
    """As the API puts it together."""
    return json.loads("".join(comparisons.report(rig.parts, PROJECT, job_id)))


def said(a: Path, b: Path, out: Path, code: int) -> Any:
    """What the command line says."""
    command("diff", a, b, "--json", out, code=code)
    return json.loads(out.read_text())


def test_the_document_is_that_of_the_command_line(made: Rig, material: Material, tmp_path: Path) -> None:
    for a, b, code, verdict in (
        (material.artifact, material.damaged, 1, "different"),
        (material.artifact, material.artifact, 0, "identical"),
    ):
        with inside(made) as context:
            job_id = ask(made, a, b)
            follow(context, job_id)
        job = made.row(job_id)
        assert (job.state, job.error) == ("passed", None)
        found = document(made, job_id)
        assert found == said(a, b, tmp_path / "x.json", code)
        assert found["verdict"] == verdict
        assert made.shards_done(job_id) > 10
        view = comparisons.comparison(made.parts, PROJECT, job_id)
        assert (view.comparison.verdict, view.state) == (verdict, "passed")
        assert view.comparison.summary


def test_errors_of_structure_fail_the_job(made: Rig, material: Material, tmp_path: Path) -> None:
    cut = tmp_path / "cut.ninfer"
    cut.write_bytes(material.artifact.read_bytes()[:-300_000])
    with inside(made) as context:
        job_id = ask(made, material.artifact, cut)
        follow(context, job_id)
    assert made.row(job_id).state == "failed"
    found = document(made, job_id)
    assert found == said(material.artifact, cut, tmp_path / "x.json", 2)
    assert {finding["side"] for finding in found["findings"]} == {"b"}
    assert found["totals"]["objects"]["unreadable"] > 0


def test_a_stored_file_that_is_not_what_was_stored(made: Rig, material: Material) -> None:
    with inside(made) as context:
        job_id = ask(made, material.artifact, material.damaged)
        b = comparisons.comparison(made.parts, PROJECT, job_id).b
        path = made.parts.blobs.path(b.removeprefix("sha256:"))
        content = bytearray(path.read_bytes())
        content[-1] ^= 1
        path.chmod(0o644)
        path.write_bytes(content)
        follow(context, job_id)
    assert made.row(job_id).state == "failed"
    findings = document(made, job_id)["findings"]
    assert [(finding["side"], finding["code"]) for finding in findings] == [("b", "structure.file_changed")]


def test_a_missing_file_is_an_error(made: Rig, material: Material) -> None:
    with inside(made) as context:
        job_id = ask(made, material.artifact, material.damaged)
        b = comparisons.comparison(made.parts, PROJECT, job_id).b
        made.parts.blobs.path(b.removeprefix("sha256:")).unlink()
        follow(context, job_id)
    job = made.row(job_id)
    assert (job.state, job.error["code"]) == ("error", "cannot_read")


@pytest.mark.parametrize("step", ["plan", "wait", "merge"])
def test_cancelled_on_the_way(made: Rig, material: Material, step: str) -> None:
    from service import jobs

    with inside(made) as context:
        job_id = ask(made, material.artifact, material.damaged)
        follow(context, job_id, **{step: lambda: jobs.cancel(made.parts, PROJECT, job_id, "tests")})
    assert made.row(job_id).state == "cancelled"
    view = comparisons.comparison(made.parts, PROJECT, job_id)
    assert view.comparison.verdict is None
    assert not view.answered
