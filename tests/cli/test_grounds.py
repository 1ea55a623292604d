"""`verify --target`, `--recipe`, `--sample`, `--expect`: what is picked, what is refused, and what no option makes green."""

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from service.cli import app
from tests import mini_hybrid
from tests.cli.test_verify import parity, strict, verify
from tests.mini_hybrid_artifact import DATA, artifact
from tests.verify.test_mini_hybrid import RECIPE_ID, options

RECIPE, TARGET = DATA / "mini-hybrid.mixed.recipe.json", DATA / "mini-hybrid.mixed.target.json"


@pytest.fixture(scope="module")
def mini(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("mini") / "mini.ninfer"
    path.write_bytes(artifact())
    return path


def outcomes(report: dict[str, Any]) -> dict[str, str]:
    return {check["name"]: check["outcome"] for check in report["checks"]}


@pytest.mark.parametrize("target", ["auto", mini_hybrid.IDENTITY, str(TARGET)])
@pytest.mark.parametrize("recipe", ["auto", RECIPE_ID, str(RECIPE)])
def test_documents_are_picked_named_or_files(
    target: str, recipe: str, mini: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, _ = verify(capsys, mini, "--target", target, "--recipe", recipe, "--json", "-")
    report = strict(out)
    assert (code, report["verdict"]) == (0, "passed")
    assert report["recipe"]["recipe_id"] == RECIPE_ID
    assert report["recipe"]["target_digest"] == report["target"]["digest"]
    stated = json.loads(TARGET.read_text())["checks"]
    assert report["target"]["inventory_sha256"] == stated["inventory_sha256"]
    assert report["target"]["registered"]
    assert {"inventory", "restrictions", "relations"} <= {
        name for name, outcome in outcomes(report).items() if outcome == "passed"
    }


def test_revision_3_in_parts_is_known_by_its_inventory(
    mini_checkpoint: mini_hybrid.MiniHybrid, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "mini.ninfer"
    made = ["--recipe", RECIPE_ID, "--out", str(out), "--revision", "3", "--max-file-bytes", "1500000"]
    assert app.run(["convert", *options(mini_checkpoint), *made]) == 0
    assert len(list(tmp_path.glob("*.ninfer*"))) > 2
    capsys.readouterr()
    chosen = ["--target", "auto", "--recipe", "auto", *options(mini_checkpoint)]
    code, text, _ = verify(capsys, out, *chosen, "--json", "-")
    report = strict(text)
    # Revision 3 states no identity; that the contract was not stated for it is an advisory.
    assert (code, report["verdict"]) == (0, "passed")
    assert set(outcomes(report).values()) == {"passed"}
    assert report["target"]["model_id"] == "mini-hybrid"
    assert {finding["severity"] for finding in report["findings"]} <= {"advisory"}
    golden = {entry["name"]: entry["sha256"] for entry in mini_hybrid.document("golden")["objects"]}
    assert {item["name"]: item["sha256"] for item in report["objects"]} == golden


def test_without_a_registered_document_nothing_else_fails(
    made: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, _ = verify(capsys, made / "good.ninfer", "--target", "auto", "--recipe", "auto", "--json", "-")
    report = strict(out)
    assert (code, report["verdict"]) == (3, "incomplete")
    found = outcomes(report)
    assert {name for name, outcome in found.items() if outcome == "not_checked"} == {
        "inventory",
        "restrictions",
        "relations",
    }
    assert {found[name] for name in ("structure", "layout", "values", "statistics")} == {"passed"}
    reasons = {check["name"]: check["reason"] for check in report["checks"]}
    assert reasons["inventory"].startswith("no registered target")
    assert reasons["restrictions"] == reasons["relations"]
    assert reasons["relations"] == "no registered recipe for the identity of this artifact"
    assert report["target"] is None


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["--canonical"], "--target"),
        (["--canonical", "--target", "auto", "--checks", "values"], "inventory"),
        (["--sample", "1%"], "--source"),
        (["--seed", "4"], "--sample"),
        (["--sample", "0"], "above 0"),
        (["--sample", "1"], "1% for one row in a hundred"),
        (["--sample", "101%"], "at most 1"),
        (["--sample", "nan"], "at most 1"),
        (["--sample", "some"], "'some'"),
        (["--expect", "ab" * 32], "sha256:"),
        (["--expect", "sha256:" + "AB" * 32], "lower-case"),
        (["--target", "mini-hybrid/other"], "registered are mini-hybrid/mixed"),
        (["--recipe", "no_such_recipe"], RECIPE_ID),
        (["--target", ""], "--target"),
        (["--recipe", ""], "--recipe"),
    ],
    ids=" ".join,
)
def test_options_that_say_nothing_are_refused(
    arguments: list[str], word: str, made: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if "--sample" in arguments and word != "--source":
        arguments = [*arguments, *map(str, parity(made))]
    code, out, err = verify(capsys, made / "good.ninfer", *arguments, "--json", "-")
    assert code == 2
    assert word in err
    assert strict(out)["error"]["code"] == "usage"


def test_a_sample_of_what_is_not_compared_is_refused(made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = verify(capsys, made / "good.ninfer", *parity(made), "--sample", "1%", "--checks", "values")
    assert code == 2
    assert "parity" in err


def test_an_expected_digest(made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = made / "good.ninfer"
    right = hashlib.sha256(path.read_bytes()).hexdigest()
    assert verify(capsys, path, "--expect", f"sha256:{right}")[0] == 0
    # Also where no check reads an object: then the digest is taken all the same.
    code, out, _ = verify(capsys, path, "--expect", f"sha256:{right}", "--checks", "structure", "--json", "-")
    assert (code, strict(out)["artifact"]["digest"]) == (0, f"sha256:{right}")
    code, out, _ = verify(capsys, path, "--expect", "sha256:" + "0" * 64, "--json", "-")
    report = strict(out)
    assert (code, [item["code"] for item in report["findings"]]) == (1, ["structure.digest_unexpected"])
    assert "passed" not in outcomes(report).values()


def test_what_a_checkpoint_cannot_be_asked_stays_unchecked(
    made: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A target or a recipe says nothing of a safetensors file: giving one is no way to a pass."""
    path = made / "checkpoint" / "model.safetensors"
    for option, value, check in (
        ("--target", mini_hybrid.IDENTITY, "inventory"),
        ("--recipe", made / "checkpoint" / "recipe.json", "restrictions"),
    ):
        code, out, _ = verify(capsys, path, option, value, "--json", "-")
        assert (code, outcomes(strict(out))[check]) == (3, "not_checked")


@pytest.mark.parametrize("wrong", [0, 1])
def test_a_pinned_length_alone_is_a_pin(
    wrong: int, mini: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    document = json.loads(RECIPE.read_text())
    for resource in document["resources"]:
        del resource["sha256"]
    first = document["resources"][0]
    first["bytes"] += wrong
    path = tmp_path / "recipe.json"
    path.write_text(json.dumps(document))
    code, out, _ = verify(capsys, mini, "--recipe", path, "--json", "-")
    found = [(finding["code"], finding["rule"], finding["object"]) for finding in strict(out)["findings"]]
    assert (code, found) == (wrong, [("restrictions.resource_pin", "C9", first["object"])] * wrong)
