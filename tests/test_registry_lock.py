"""The lock of the registries: nothing changes its meaning under an old name, and no retired name comes back."""

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import ninfer_core.retired
from ninfer_core.containers.ninfer import read_artifact
from ninfer_core.errors import UnknownName
from ninfer_core.findings import Findings
from ninfer_core.formats import BF16, FORMATS
from ninfer_core.governance.entries import GOVERNED, Governed, meanings
from ninfer_core.governance.specifications import ENCODER_TEXTS, FORMAT_TEXTS, LAYOUT_TEXTS
from ninfer_core.identity import canonical_digest
from ninfer_core.registry import Closed
from ninfer_core.registry_lock import LOCK, SCHEMA, compare, main, read_lock, with_new
from ninfer_core.rejected_names import why_not
from ninfer_core.retired import Retired, read_retired
from tests.recipes.build import RULE, document, parsed
from tests.sources.build import MemoryFiles

PAGE = Path(__file__).resolve().parent.parent / "docs" / "registry.md"
HELD = meanings()
RETIRED = {
    "registry": "numeric format",
    "name": "Q3G64_F16S",
    "spellings": ["q3_g64_fp16"],
    "digest": "sha256:" + "0" * 64,
    "date": "2026-05-04",
    "reason": "no recipe used it any more",
}


@pytest.fixture
def retired(monkeypatch: pytest.MonkeyPatch) -> None:
    """One format was retired."""
    former = read_retired({"retired": [RETIRED]})
    monkeypatch.setattr(ninfer_core.retired, "retired_names", lambda: former)


def test_the_lock_holds_every_meaning() -> None:
    lock = read_lock()
    assert lock["schema"] == SCHEMA
    found = compare(lock, HELD)
    assert not found.new, "run `python -m ninfer_core.registry_lock --write`"
    assert not found.refused
    assert len(lock["entries"]) == len(HELD) == sum(len(one.registry) for one in GOVERNED)


def test_every_registry_that_files_name_is_governed() -> None:
    assert [one.registry.what for one in GOVERNED] == [
        "numeric format",
        "layout",
        "encoder profile",
        "compute profile",
    ]
    assert {*FORMAT_TEXTS, *LAYOUT_TEXTS, *ENCODER_TEXTS} <= {meaning.name for meaning in HELD}


@pytest.mark.parametrize("meaning", HELD, ids=lambda meaning: meaning.name)
def test_another_text_or_answer_under_an_old_name_fails(meaning: Any) -> None:
    lock = read_lock()
    for other in (
        replace(meaning, specification=meaning.specification + " "),
        replace(meaning, vectors=[*meaning.vectors, 0]),
        replace(meaning, version=meaning.version + 1),
    ):
        (line,) = compare(lock, [one if one is not meaning else other for one in HELD]).refused
        assert meaning.name in line
        assert meaning.digest in line
        assert other.digest in line


def test_the_digest_is_that_of_the_canonical_document() -> None:
    first = HELD[0]
    document = {
        "name": "BF16",
        "version": 1,
        "specification": first.specification,
        "vectors": first.vectors,
    }
    assert first.digest == canonical_digest(document)
    assert len({meaning.digest for meaning in HELD}) == len(HELD)


def test_new_entries_are_added_and_nothing_is_overwritten(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "lock.json"
    lock = read_lock()
    lock["entries"] = lock["entries"][1:]
    lock["entries"][0]["digest"] = "sha256:" + "1" * 64
    path.write_text(json.dumps(lock))
    assert main([], path) == 1
    assert read_lock(path) == lock
    assert main(["--write"], path) == 1  # one meaning still differs
    after = read_lock(path)
    assert after["entries"][:-1] == lock["entries"]
    assert (after["entries"][-1]["name"], after["entries"][-1]["digest"]) == (HELD[0].name, HELD[0].digest)
    assert "BF16: new" in capsys.readouterr().out
    assert main(["--all"], path) == 2


def test_an_entry_taken_out_without_a_retirement_is_found() -> None:
    found = compare(read_lock(), HELD[1:])
    assert found.gone == ("numeric format BF16 is locked, and neither registered nor retired",)


def test_another_registry_needs_no_change_of_the_mechanism() -> None:
    schemes = Governed(
        Closed("scheme", SimpleNamespace(name="Q4_K", text="256 weights a block")),
        lambda scheme: (1, scheme.text, [1, 2]),
    )
    held = meanings((*GOVERNED, schemes))
    found = compare(read_lock(), held)
    assert [(one.registry, one.name) for one in found.new] == [("scheme", "Q4_K")]
    assert not compare(with_new(read_lock(), found.new), held).new


def test_a_retired_name_is_never_registered_again(retired: None) -> None:
    for name in ("Q3G64_F16S", "q3_g64_fp16"):
        with pytest.raises(ValueError, match="retired on 2026-05-04"):
            Closed("numeric format", BF16, SimpleNamespace(name=name))
    assert Closed("layout", SimpleNamespace(name="Q3G64_F16S")).names == ("Q3G64_F16S",)
    lock = {**read_lock(), "retired": [RETIRED]}
    again = replace(HELD[0], name="q3_g64_fp16")
    found = compare(lock, [*HELD, again])
    assert found.new == ()
    assert len(found.reused) == 1


def test_a_retired_name_says_so_wherever_it_is_met(retired: None) -> None:
    with pytest.raises(UnknownName, match="no recipe used it any more"):
        FORMATS["Q3G64_F16S"]
    reason = why_not("Q3G64_F16S")
    assert reason is not None
    assert "retired on 2026-05-04" in reason


def test_a_file_that_uses_a_retired_name_is_told_so(retired: None, monkeypatch: pytest.MonkeyPatch) -> None:
    entry = {"name": "w", "kind": "tensor", "shape": [1, 1], "format": "Q3G64_F16S", "layout": "old-v1"}
    root = {
        "identity": {"model_id": "tiny", "weights_id": "test"},
        "objects": [{**entry, "offset": 0, "bytes": 1}],
    }
    text = json.dumps(root).encode()
    file = (b"NINFER\0\x02" + len(text).to_bytes(8, "little") + text).ljust(4096, b"\0") + b"\0"
    former = read_retired({"retired": [RETIRED, {**RETIRED, "registry": "layout", "name": "old-v1"}]})
    monkeypatch.setattr(ninfer_core.retired, "retired_names", lambda: former)
    findings = Findings()
    read_artifact(MemoryFiles.of({"w.ninfer": file}), "w.ninfer", findings)
    messages = {finding.code: finding.message for finding in findings}
    for code, name in (("format_unregistered", "Q3G64_F16S"), ("layout_unregistered", "old-v1")):
        assert f"{name} was retired on 2026-05-04" in messages[f"structure.{code}"]


def test_a_recipe_that_uses_a_retired_name_is_told_so(retired: None, monkeypatch: pytest.MonkeyPatch) -> None:
    former = read_retired(
        {"retired": [RETIRED, {**RETIRED, "registry": "encoder profile", "name": "OLD_V1"}]}
    )
    monkeypatch.setattr(ninfer_core.retired, "retired_names", lambda: former)
    _, _, findings = parsed(document([{**RULE, "format": "Q3G64_F16S", "encode": "OLD_V1"}]))
    messages = {finding.code: finding.message for finding in findings}
    for code, name in (("format_unknown", "Q3G64_F16S"), ("encoder_unknown", "OLD_V1")):
        assert f"{name} was retired on 2026-05-04" in messages[f"recipe.{code}"]


def test_the_list_of_retired_names_is_read_from_the_lock() -> None:
    assert ninfer_core.retired.retired_names() == read_retired(read_lock())
    assert read_retired({"retired": [RETIRED]}) == (
        Retired(**{**RETIRED, "spellings": ("q3_g64_fp16",)}),  # type: ignore[arg-type]
    )
    assert LOCK.name == "registry.lock.json"


def test_the_page_names_every_entry_with_its_record() -> None:
    page = PAGE.read_text(encoding="utf-8")
    flat = " ".join(page.split())
    for meaning in HELD:
        assert f"`{meaning.name}`" in page, meaning.name
        assert meaning.digest in page, meaning.name
        assert " ".join(meaning.specification.split()) in flat, meaning.name
    for one in ninfer_core.retired.retired_names():
        assert one.name in page
        assert one.digest in page
