"""An expected digest: right bytes are judged as ever, of others nothing is said but that."""

import hashlib

import numpy as np
import pytest

from ninfer_core.errors import Usage
from ninfer_core.formats import BF16
from ninfer_core.verify.expected import read_digest, require_digest
from tests.build import EVERYTHING, legal_payload, run, write_artifact


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
