"""The provenance record that a worker keeps of a conversion: the one of the command line, and what the client claimed."""

import hashlib
import json
from pathlib import Path

import rfc8785

from service import checkpoints
from service.contents import NamedDigest
from service.job_requests import Convert, Output
from service.records import conversions
from tests.worker.inside import follow, inside
from tests.worker.material import Material
from tests.worker.rig import PROJECT, rig


def test_the_record_is_that_of_the_command_line(tmp_path: Path, material: Material) -> None:
    with rig(tmp_path / "data", shard_bytes=400_000) as made:
        files = [
            NamedDigest(path.name, made.store(path).digest) for path in sorted(material.folder.iterdir())
        ]
        pushed, _ = checkpoints.push(
            made.parts, PROJECT, files, repository="a/b", revision="0123", license="MIT"
        )
        request = Convert(
            json.dumps(material.document).encode(),
            {"base": pushed.id},
            Output(2, None, material.artifact.name),
        )
        with inside(made) as context:
            job_id = made.job(request)
            follow(context, job_id)
        assert made.row(job_id).state == "passed"
        with made.parts.database.read() as session:
            row = conversions.by_job(session, job_id)
        assert row is not None
        assert row.record is not None
        content = made.parts.blobs.path(row.record.removeprefix("sha256:")).read_bytes()
    assert row.record == f"sha256:{hashlib.sha256(content).hexdigest()}"
    record = json.loads(content)
    assert rfc8785.dumps(record) == content
    beside = material.artifact.with_name(f"{material.artifact.name}.provenance.json")
    expected = json.loads(beside.read_text())
    assert record["sources"]["base"]["claimed"].pop("by_client") == {
        "repository": "a/b",
        "revision": "0123",
        "license": "MIT",
    }
    assert expected["sources"]["base"]["claimed"].pop("by_client") is None
    for one in (record, expected):
        assert one["made"].pop("seconds") > 0
    assert record == expected
