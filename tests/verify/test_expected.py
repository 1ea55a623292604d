"""An expected digest: right bytes are judged as ever, of others nothing is said but that."""

import hashlib
import json

import numpy as np
import pytest

from ninfer_core.errors import Usage
from ninfer_core.formats import BF16
from ninfer_core.verify.expected import read_digest, require_digest
from service.cli import app
from tests.build import EVERYTHING, legal_payload, run, write_artifact
from tests.verify.test_dialects import checkpoint


@pytest.fixture
def artifact(tmp_path):
    payload = legal_payload(BF16, (4, 4), np.random.default_rng(1))
    return write_artifact(tmp_path / "a.ninfer", {"w": (BF16, (4, 4), payload)})


def digest(path):
    return "sha256:" + hashlib.sha256(path.read_bytes()).hexdigest()


def test_the_expected_bytes_are_judged(artifact):
    report = run(artifact)
    assert require_digest(report, digest(artifact)) is report


def test_of_other_bytes_nothing_else_is_said(artifact):
    expected = digest(artifact)
    content = bytearray(artifact.read_bytes())
    content[7] = 9  # also no revision any more: that, too, is not said
    artifact.write_bytes(content)
    report = require_digest(run(artifact), expected)
    (finding,) = report.findings
    assert (finding.code, finding.expected, finding.found) == (
        "structure.digest_unexpected",
        expected,
        digest(artifact),
    )
    assert finding.where == {"file": "a.ninfer"}
    assert report.verdict == "failed"
    assert report.objects == ()
    outcomes = {check.name: check.outcome for check in report.checks}
    assert {outcomes[name] for name in EVERYTHING} == {"not_checked"}
    assert outcomes["parity"] == "not_asked"
    assert report.as_json()["artifact"]["digest"] == digest(artifact)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "0" * 64,
        "sha256:",
        "sha256:" + "A" * 64,
        "sha256:" + "0" * 63,
        "sha256:" + "0" * 65,
        "md5:" + "0" * 64,
    ],
)
def test_what_is_no_digest(text):
    with pytest.raises(Usage, match="digest"):
        read_digest(text)


def test_a_digest_is_read_as_reports_spell_it():
    text = "sha256:" + "0123456789abcdef" * 4
    assert read_digest(text) == text


def command(capsys, path, expected):
    code = app.run(["verify", str(path), "--expect", expected, "--json", "-"])
    return code, json.loads(capsys.readouterr().out)


def test_on_the_command_line(artifact, tmp_path, capsys):
    code, report = command(capsys, artifact, digest(artifact))
    assert (code, report["verdict"], report["findings"]) == (0, "passed", [])
    other = "sha256:" + "5" * 64
    code, report = command(capsys, artifact, other)
    assert (code, report["verdict"], report["objects"]) == (1, "failed", [])
    assert [(item["code"], item["expected"], item["found"]) for item in report["findings"]] == [
        ("structure.digest_unexpected", other, digest(artifact))
    ]
    code, report = command(capsys, artifact, other[:-1])
    assert (code, report["error"]["code"]) == (2, "usage")


def test_a_sharded_checkpoint_has_one_digest(tmp_path, capsys):
    for number, name in enumerate("ab", 1):
        checkpoint(tmp_path / f"model-0000{number}-of-00002.safetensors", {name: ("BF16", (4, 8))})
    named = {name: f"model-0000{number}-of-00002.safetensors" for number, name in enumerate("ab", 1)}
    index = tmp_path / "model.safetensors.index.json"
    index.write_text(json.dumps({"metadata": {}, "weight_map": named}))
    _, report = command(capsys, index, "sha256:" + "0" * 64)
    (finding,) = report["findings"]
    assert finding["where"]["files"] == [index.name, *named.values()]
    code, report = command(capsys, index, finding["found"])
    assert (code, report["verdict"]) == (0, "passed")
