"""`ninfer-gate targets`: the list, one target in full, a document of one's own."""

import json
from pathlib import Path

import pytest

from ninfer_core.targets import TARGETS, Target
from service.cli import app
from tests.targets.build import document


def run(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    """Exit code, standard output and standard error of one command in this process."""
    code = app.run(["targets", *map(str, arguments)])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


@pytest.mark.parametrize("words", [(), ("list",)])
def test_the_list_names_every_registered_target(capsys: pytest.CaptureFixture[str], words: tuple[str, ...]):
    code, out, _ = run(capsys, *words)
    assert code == 0
    for target in TARGETS:
        line = next(line for line in out.splitlines() if line.strip().startswith(target.identity))
        assert target.inventory_sha256 in line
        assert f"{len(target.objects):,}" in line
    code, out, _ = run(capsys, *words, "--json", "-")
    listed = json.loads(out)
    assert (code, listed["schema"], listed["verdict"]) == (0, "ninfer-gate/targets/1", "passed")
    assert [item["digest"] for item in listed["targets"]] == [target.digest for target in TARGETS]
    assert all(item["registered"] for item in listed["targets"])


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.identity)
def test_a_target_in_full(capsys: pytest.CaptureFixture[str], target: Target):
    code, out, _ = run(capsys, "show", target.identity, "--json", "-")
    (shown,) = json.loads(out)["targets"]
    assert code == 0
    assert len(shown["inventory"]) == shown["objects"] == shown["tensors"] + shown["resources"]
    stated = target.document["checks"]
    assert shown["checks"] == {name: stated[name] for name in shown["checks"]}
    assert len(shown["views"]) == stated["views"]["bindings"]
    assert len(shown["aliases"]) == stated["aliases"]["bindings"]
    assert shown["recipe_registered"]
    code, out, _ = run(capsys, "show", target.identity)
    assert code == 0
    assert all(item.name in out for item in target.objects)


def test_a_long_list_can_be_cut(capsys: pytest.CaptureFixture[str]):
    code, out, _ = run(capsys, "show", "mini-hybrid/mixed", "--limit", 2)
    assert code == 0
    assert "and 112 objects more" in out
    assert "text/token_embedding  " not in out


def test_a_document_of_ones_own(capsys: pytest.CaptureFixture[str], tmp_path: Path):
    path = tmp_path / "own.json"
    path.write_text(json.dumps(document()))
    code, out, _ = run(capsys, "check", path)
    assert code == 0
    assert "target passed" in out
    assert "not registered" in out
    code, out, _ = run(capsys, "show", path, "--json", "-")
    (shown,) = json.loads(out)["targets"]
    assert (code, shown["registered"], shown["model_id"]) == (0, False, "own")
    # What `show` prints under `checks` may stand in the document.
    path.write_text(json.dumps(document(checks=shown["checks"])))
    code, out, _ = run(capsys, "check", path)
    assert code == 0
    assert "its own checks agree" in out


def test_every_fault_of_a_document(capsys: pytest.CaptureFixture[str], tmp_path: Path):
    path = tmp_path / "own.json"
    path.write_text(json.dumps(document(colour="red", layouts={"BF16": "x"}, container_versions=[3])))
    code, out, _ = run(capsys, "check", path)
    assert code == 1
    assert "target FAILED: 3 errors" in out
    for slug in ("member_unexpected", "layout_unknown", "value_invalid"):
        assert f"target.{slug}" in out
    code, out, _ = run(capsys, "check", path, "--json", "-")
    answer = json.loads(out)
    assert (code, answer["verdict"], answer["targets"], len(answer["findings"])) == (1, "failed", [], 3)
    assert run(capsys, "show", path)[0] == 1


def test_what_gives_no_answer(capsys: pytest.CaptureFixture[str], tmp_path: Path):
    for words in (("show", "nope/nope"), ("check", tmp_path), ("check", tmp_path / "nope"), ("show", "")):
        code, _, err = run(capsys, *words)
        assert (code, bool(err)) == (2, True), words
        assert run(capsys, *words, "--json", "-")[0] == 2
    assert "qwen3.6-27b/nvfp4" in run(capsys, "show", "nope/nope")[2]
    assert run(capsys, "--json", "-", "show", "mini-hybrid/mixed")[0] == 2
    assert run(capsys, "nonsense")[0] == 2


def test_names_out_of_a_document_move_no_cursor(capsys: pytest.CaptureFixture[str], tmp_path: Path):
    path = tmp_path / "own.json"
    hostile = "a\u202eb\u2028c[bold]d\u009be"
    entry = {"tensor": hostile, "shape": [1], "format": "BF16", "bundle": hostile}
    members = {"objects": [entry], "views": None, "recipe_id": hostile, "target_key": hostile}
    root = document(**members, aliases=[{"role": hostile + "/role", "objects": [hostile]}])
    root["identity"]["model_id"] = hostile
    path.write_text(json.dumps(root))
    for words in ("show", "check"):
        code, out, _ = run(capsys, words, path)
        assert code == 0
        assert not set("\u202e\u2028\u009b") & set(out)
        assert "[bold]" in out
