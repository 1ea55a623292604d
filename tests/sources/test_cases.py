"""The cases that every build must get right: each by its verdict, its code and its place."""

import json
from pathlib import Path
from typing import Any

import pytest

from ninfer_core.findings import Finding, Findings
from ninfer_core.io import DiskFiles
from ninfer_core.sources import detect, open_checkpoint

CASES = Path(__file__).parent.parent / "vectors" / "cases"
ENTRIES = json.loads((CASES / "manifest.safetensors.json").read_text())["cases"]
CODES = {  # the suggested names for which ours differ
    "tensor_name_duplicate": "json_member_duplicate",
    "not_the_file_pointer_stub": "pointer_stub",
}


def judge(place: Path) -> Findings:
    findings = Findings()
    folder = place if place.is_dir() else place.parent
    with DiskFiles(folder, None if place.is_dir() else [place.name]) as files:
        checkpoint = open_checkpoint(files, *detect(files), findings)
        assert (checkpoint is None) == bool(findings.errors)
    return findings


def located(finding: Finding, where: dict[str, Any]) -> bool:
    ours = {**finding.where, "declared_size": finding.where.get("bytes")}
    return all(ours.get(key) == value for key, value in where.items())


@pytest.mark.parametrize("case", ENTRIES, ids=lambda case: Path(case["file"]).name)
def test_case(case: dict[str, Any]) -> None:
    findings = judge(CASES / case["file"])
    if case["expected"] == "accept":
        assert not list(findings)
        return
    code = "structure." + CODES.get(case["finding"], case["finding"])
    assert {finding.code for finding in findings} == {code}
    assert bool(findings.errors) == (case["expected"] == "reject")
    assert any(located(finding, case.get("where", {})) for finding in findings)


def test_every_stored_case_is_listed() -> None:
    listed = {case["file"] for case in ENTRIES}
    stored = {f"safetensors/{path.name}" for path in (CASES / "safetensors").iterdir()}
    stored |= {f"sharded/{path.name}" for path in (CASES / "sharded").iterdir()}
    assert listed == stored


def test_pointer_keeps_digest_and_size() -> None:
    (finding,) = judge(CASES / "safetensors" / "lfs_pointer.safetensors")
    assert finding.where["bytes"] == 4987196936
    assert len(finding.where["sha256"]) == 64
