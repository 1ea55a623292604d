"""The record that `convert` writes beside its output: claims apart from what was measured, whole or not at all."""

import hashlib
import json
import os
import platform
from pathlib import Path
from typing import Any

import pytest
import rfc8785

from ninfer_core.convert import Conversion
from service.cli import app
from tests.cli import build
from tests.cli.test_convert import convert

NAME = "a.ninfer.provenance.json"


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    """A checkpoint of this test's own."""
    folder = tmp_path / "checkpoint"
    folder.mkdir()
    return build.checkpoint(folder)


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def made_record(
    checkpoint: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], *options: object
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The record, and the report of the same conversion."""
    code, out, _ = convert(capsys, checkpoint, tmp_path / "a.ninfer", "--json", "-", *options)
    assert code == 0
    content = (tmp_path / NAME).read_bytes()
    record = json.loads(content)
    assert rfc8785.dumps(record) == content
    return record, json.loads(out)


def test_what_it_says(checkpoint: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    record, report = made_record(checkpoint, tmp_path, capsys)
    recipe = json.loads((checkpoint / "recipe.json").read_text())
    assert record["schema"] == "ninfer-gate/provenance-record/1"
    assert {name: record["artifact"][name] for name in report["artifact"]} == report["artifact"]
    assert record["artifact"]["digest"] == f"sha256:{sha256(tmp_path / 'a.ninfer')}"
    assert record["recipe"] == {"recipe_id": recipe["recipe_id"], **report["recipe"]}
    assert record["target"] is None
    assert record["accounting"] == report["accounting"]
    source = record["sources"]["base"]
    stated = recipe["sources"]["base"]
    assert source["claimed"] == {
        "by_client": None,
        "by_recipe": {name: stated[name] for name in ("repository", "revision", "license")},
    }
    files = {file["name"]: file for file in source["measured"]["files"]}
    assert "model.safetensors" in files
    for name, file in files.items():
        assert file == {
            "name": name,
            "bytes": (checkpoint / name).stat().st_size,
            "sha256": sha256(checkpoint / name),
        }
    assert source["measured"]["bytes"] == sum(file["bytes"] for file in files.values())
    for item, listed in zip(record["objects"], report["objects"], strict=True):
        for name in ("name", "bytes", "sha256", "identity"):
            assert item[name] == listed[name]
        assert item["evidence"] in ("copied-exact", "derived-exact")
        if item["kind"] == "tensor":
            assert (item["encoder"], item["sources"], item["moves"]) == (
                listed["encode"],
                listed["sources"],
                listed["moves"],
            )
    used = {item["encoder"] for item in record["objects"]} - {"copy_words", "copy_bytes"}
    assert {profile["name"] for profile in record["encoder_profiles"]} == used == {build.PROFILE}
    assert record["encoder_profiles"][0]["semantic_digest"].startswith("sha256:")


def test_nothing_of_people_and_places(
    checkpoint: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    record, _ = made_record(checkpoint, tmp_path, capsys)
    made = record["made"]
    assert made["command"] == (
        "ninfer-gate convert --recipe test-v1 --checkpoint base=DIR --out a.ninfer --revision 2"
    )
    assert made["environment"]["python"] == platform.python_version()
    assert set(made["host"]) == {"cpu", "cores"}
    assert made["seconds"] > 0
    text = (tmp_path / NAME).read_text()
    assert str(tmp_path) not in text
    assert platform.node() not in text or len(platform.node()) < 4


def test_the_same_but_for_the_time(
    checkpoint: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    records = []
    for name, threads in (("x", 1), ("y", 3)):
        (tmp_path / name).mkdir()
        record, _ = made_record(checkpoint, tmp_path / name, capsys, "--threads", threads)
        del record["made"]["seconds"]
        records.append(record)
    assert records[0] == records[1]


def test_a_taken_name_refuses_before_any_work(
    checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / NAME).write_text("mine")
    monkeypatch.setattr("service.cli.convert.bound", None)  # nothing is bound, so nothing is read
    code, _, err = convert(capsys, checkpoint, tmp_path / "a.ninfer")
    assert code == 2
    assert f"{NAME} exists and is never overwritten" in err
    assert (tmp_path / NAME).read_text() == "mine"
    assert sorted(os.listdir(tmp_path)) == [NAME, "checkpoint"]


def test_all_or_nothing(
    checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def taken(record: object) -> bytes:
        (tmp_path / NAME).write_text("somebody was quicker")
        return b"{}"

    monkeypatch.setattr("service.cli.recording.canonical", taken)
    code, _, err = convert(capsys, checkpoint, tmp_path / "a.ninfer")
    assert code == 2
    assert "never overwritten" in err
    assert sorted(os.listdir(tmp_path)) == [NAME, "checkpoint"]
    assert (tmp_path / NAME).read_text() == "somebody was quicker"


def test_a_refused_conversion_leaves_no_record(
    checkpoint: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    recipe = json.loads((checkpoint / "recipe.json").read_text())
    recipe["rules"] = recipe["rules"][:1]
    recipe["rules"][0]["value"]["name"] = "nothing"
    (checkpoint / "recipe.json").write_text(json.dumps(recipe))
    assert convert(capsys, checkpoint, tmp_path / "a.ninfer")[0] == 1
    assert os.listdir(tmp_path) == ["checkpoint"]


def test_the_report_does_not_take_its_name(
    checkpoint: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, err = convert(capsys, checkpoint, tmp_path / "a.ninfer", "--json", tmp_path / NAME)
    assert code == 2
    assert "is where the record of the file that --out names goes" in err
    assert os.listdir(tmp_path) == ["checkpoint"]


def test_the_folder_is_verified_all_the_same(
    checkpoint: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "out").mkdir()
    made_record(checkpoint, tmp_path / "out", capsys)
    assert app.run(["verify", str(tmp_path / "out")]) == 0
    capsys.readouterr()


def test_a_source_that_changes_while_it_is_hashed_is_refused(
    checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from ninfer_core.convert.draft import Draft

    compose = Draft.compose

    def changed(draft: Draft, *given: Any) -> Conversion:
        os.utime(checkpoint / "model.safetensors", (1, 1))
        return compose(draft, *given)

    monkeypatch.setattr(Draft, "compose", changed)
    code, out, _ = convert(capsys, checkpoint, tmp_path / "a.ninfer", "--json", "-")
    assert code == 1
    assert "source.changed" in out
    assert os.listdir(tmp_path) == ["checkpoint"]
