"""Findings: a closed list of codes, and memory that a hostile file cannot spend."""

import pytest

from ninfer_core.errors import UnknownName
from ninfer_core.findings import MAX_CHARACTERS, MAX_PER_CODE, Findings, clip


def test_only_registered_codes():
    with pytest.raises(UnknownName):
        Findings().add("values.no_such_code", "")


def test_many_findings_of_a_code_are_counted_beyond_the_limit():
    findings = Findings()
    for index in range(MAX_PER_CODE + 5):
        findings.add("structure.member_missing", str(index))
    findings.add("structure.member_type", "another code is still listed")
    assert len(findings) == MAX_PER_CODE + 1
    assert findings.unlisted == {"structure.member_missing": 5}
    whole = Findings()
    whole.extend(findings)
    assert whole.unlisted == findings.unlisted


def test_texts_are_clipped_and_the_whole_is_bounded():
    findings = Findings()
    for _ in range(60_000):
        findings.add(
            "structure.member_type",
            "m" * 5000,
            object="n" * 5000,
            where={"path": "p" * 5000, "list": ["x" * 5000] * 100},
            expected="e" * 5000,
            found="f" * 5000,
        )
    findings.add("values.scale_invalid", "the first of a code is always listed")
    assert findings.items[-1].code == "values.scale_invalid"
    total = sum(len(item.message) + len(item.expected) + len(item.found) for item in findings)
    assert total < MAX_CHARACTERS + 10_000
    assert sum(findings.unlisted.values()) + len(findings) == 60_001
    assert len(findings.items[0].object or "") < 1100
    assert len(findings.items[0].where["list"]) == 64


def test_clipped_text_is_unicode_and_keeps_both_ends():
    assert clip("short") == "short"
    assert clip("a\ud800b") == "a\\ud800b"
    assert clip("a" * 900 + "b" * 900) == "a" * 500 + " … 800 characters … " + "b" * 500


def test_blame():
    findings = Findings()
    findings.add("recipe.schema_unknown", "")
    findings.add("structure.json_syntax", "")
    findings.blame("source")
    assert [(item.about, item.check) for item in findings] == [("recipe", "recipe"), ("source", "source")]
