"""Every mutated artifact fails and names its object; every control passes; so do the field cases."""

import json
from typing import Any

import pytest

from tests.build import run
from tests.vectors.load import HERE

FOLDER = HERE / "golden" / "invalid"
ENTRIES = json.loads((FOLDER / "manifest.json").read_text())
CASES = json.loads((HERE / "cases" / "manifest.ninfer.json").read_text())["cases"]


def test_nothing_is_left_out():
    assert len(ENTRIES) == 432
    assert len(CASES) == 38


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry["id"])
def test_verdict(entry: dict[str, Any]):
    report = run(FOLDER / entry["file"])
    json.dumps(report.as_json(), allow_nan=False).encode()
    errors = [finding for finding in report.findings if finding.severity == "error"]
    advisories = [finding for finding in report.findings if finding.severity == "advisory"]
    if entry["verdict"] == "valid":
        assert not errors
        assert report.verdict == "passed"
        if entry["advisory"] != "optional":
            assert bool(advisories) == (entry["advisory"] == "expected")
        return
    assert report.verdict == "failed"
    assert errors
    if entry["object"]:
        assert any(
            finding.object == entry["object"] or str(finding.object).startswith("objects[")
            for finding in errors
        )


# What the cases call a finding, and what this project calls it.
OURS = {
    "framing_revision_unsupported": "structure.revision_unsupported",
    "directory_member_unexpected": "structure.member_unexpected",
    "object_member_unexpected": "structure.member_unexpected",
    "object_member_missing": "structure.member_missing",
    "object_member_type": "structure.member_type",
    "json_length_zero": "structure.json_length_zero",
    "scale_nan": "values.block_scale_invalid",
    "zero_scale_nonzero_code": "values.zero_scale_nonzero_code",
    "scale_invalid": "values.scale_invalid",
    "padding_nonzero": "layout.padding_nonzero",
    "all_zero_tensor": "statistics.all_zero",
}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["file"].split("/")[1])
def test_field_case(case: dict[str, Any]):
    report = run(HERE / "cases" / case["file"])
    errors = [finding for finding in report.findings if finding.severity == "error"]
    assert report.verdict == ("failed" if case["expected"] in ("reject", "fail") else "passed")
    assert bool(errors) == (case["expected"] in ("reject", "fail"))
    if "finding" in case:
        code = OURS.get(case["finding"], f"structure.{case['finding']}")
        found = [finding for finding in report.findings if finding.code == code]
        assert found, [finding.code for finding in report.findings]
        where = case.get("where", {})
        named = where.get("object", where.get("tensor"))
        assert named is None or found[0].object == named
        for key in (
            "row",
            "group",
            "column",
            "word",
            "missing_bytes",
            "overlaps",
            "cursor",
            "alignment",
            "positions",
        ):
            assert key not in where or found[0].where[key] == where[key], key
