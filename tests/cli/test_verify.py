"""`verify`: verdicts, exit codes, what is asked and unchecked, and JSON that is nothing but JSON."""

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from service.cli import app
from tests.cli import build

ARTIFACT_MEMBERS = {"kind", "revision", "identity", "name", "digest", "content_root", "bytes", "files"}
CHECKS = [
    "structure",
    "layout",
    "values",
    "statistics",
    "restrictions",
    "inventory",
    "relations",
    "source",
    "parity",
]


def strict(text: str) -> dict[str, Any]:
    """The document, which must be the only thing in `text` and hold no NaN."""

    def refuse(word: str) -> None:
        raise AssertionError(word)

    document = json.loads(text, parse_constant=refuse)
    assert text.count("\n") == 1
    assert text.isascii()
    assert isinstance(document, dict)
    return document


def verify(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    """Exit code, standard output and standard error of one verification in this process."""
    code = app.run(["verify", *map(str, arguments)])
    captured = capsys.readouterr()
    assert "Traceback" not in captured.err
    return code, captured.out, captured.err


def parity(made: Path) -> list[object]:
    """The options that ask for parity with the checkpoint."""
    return ["--source", made / "checkpoint", "--recipe", made / "checkpoint" / "recipe.json"]


def test_a_good_file_passes(made: Path) -> None:
    done = build.run("verify", made / "good.ninfer", *parity(made), "--json", "-")
    report = strict(done.stdout)
    assert (done.returncode, report["verdict"], done.stderr) == (0, "passed", "")
    assert set(report["artifact"]) >= ARTIFACT_MEMBERS
    assert [(check["name"], check["outcome"]) for check in report["checks"]] == [
        (name, "not_asked" if name in ("inventory", "relations") else "passed") for name in CHECKS
    ]
    assert report["recipe"]["recipe_id"] == "test-v1"
    assert [item["evidence"] for item in report["objects"]] == [
        "derived-exact",
        "derived-exact",
        "copied-exact",
    ]
    assert report["coverage"]["objects"] == {"full": 3, "sampled": 0, "reused": 0, "none": 0, "total": 3}


def test_a_damaged_file_fails(made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = verify(capsys, made / "bad.ninfer", "--json", "-")
    report = strict(out)
    assert (code, report["verdict"]) == (1, "failed")
    assert {finding["object"] for finding in report["findings"] if finding["severity"] == "error"} == {
        "matrix"
    }
    code, out, _ = verify(capsys, made / "bad.ninfer")
    assert code == 1
    code_line = next(line for line in out.splitlines() if "Next: ninfer-gate explain layout." in line)
    assert app.run(["explain", code_line.split()[-1]]) == 0
    assert out.splitlines()[0].split() == ["FAILED", str(made / "bad.ninfer")]
    assert "FAILED in" in out.splitlines()[-1]


def test_a_foreign_file_is_an_answer(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for content in (b"", b"GGUF" + bytes(64), b"version https://git-lfs.github.com/spec/v1\n", b"NINFER\0\2"):
        path = tmp_path / "x.ninfer"
        path.write_bytes(content)
        code, out, _ = verify(capsys, path, "--json", "-")
        report = strict(out)
        assert (code, report["verdict"]) == (1, "failed")
        assert verify(capsys, path)[0] == 1


def test_a_source_without_a_recipe_is_incomplete(made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = verify(capsys, made / "good.ninfer", "--source", made / "checkpoint", "--json", "-")
    report = strict(out)
    assert (code, report["verdict"]) == (3, "incomplete")
    unchecked = {
        check["name"]: check["reason"] for check in report["checks"] if check["outcome"] == "not_checked"
    }
    assert unchecked == dict.fromkeys(("source", "parity"), "no recipe was given")
    code, out, _ = verify(capsys, made / "good.ninfer", "--source", made / "checkpoint")
    assert code == 3
    assert out.splitlines()[-1].endswith("not wholly checked: source, parity.")


def test_a_recipe_alone_says_something_of_the_words(made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = verify(
        capsys, made / "good.ninfer", "--recipe", made / "checkpoint/recipe.json", "--json", "-"
    )
    outcomes = {check["name"]: check["outcome"] for check in strict(out)["checks"]}
    assert code == 0
    assert outcomes == {
        **dict.fromkeys(("structure", "layout", "values", "statistics", "restrictions"), "passed"),
        **dict.fromkeys(("inventory", "relations", "source", "parity"), "not_asked"),
    }


def test_a_recipe_that_demands_nothing_is_no_pass_of_a_demand(
    made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    document = json.loads((made / "checkpoint/recipe.json").read_text())
    del document["restrictions"]
    recipe = tmp_path / "recipe.json"
    recipe.write_text(json.dumps(document))
    code, out, _ = verify(capsys, made / "good.ninfer", "--recipe", recipe, "--json", "-")
    checks = {check["name"]: check for check in strict(out)["checks"]}
    assert code == 0
    for name, reason in (
        ("restrictions", "the recipe demands nothing of stored words"),
        ("relations", "the recipe relates no objects to each other"),
    ):
        assert (checks[name]["outcome"], checks[name]["coverage"]) == ("not_asked", "none")
        assert checks[name]["reason"] == reason


def test_parity_alone_without_a_source_is_incomplete(made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert verify(capsys, made / "good.ninfer", "--checks", "parity")[0] == 3


def test_only_the_checks_that_were_asked(made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = verify(capsys, made / "good.ninfer", *parity(made), "--checks", "values", "--json", "-")
    assert "leaves parity out" in err
    outcomes = {check["name"]: check["outcome"] for check in strict(out)["checks"]}
    assert code == 0
    assert outcomes == {name: "passed" if name in ("structure", "values") else "not_asked" for name in CHECKS}


def test_faults_of_recipe_and_source_fail(
    made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (made / "checkpoint" / "recipe.json").read_text()
    for name, content, check in (
        ("syntax", "{", "recipe"),
        ("schema", text.replace("ninfer-recipe/1", "ninfer-recipe/9"), "recipe"),
        ("dtype", text.replace('"F32"', '"F16"', 1), "source"),
        ("identity", text.replace("test-model", "other-model"), "parity"),
    ):
        recipe = tmp_path / f"{name}.json"
        recipe.write_text(content)
        code, out, _ = verify(
            capsys, made / "good.ninfer", "--source", made / "checkpoint", "--recipe", recipe, "--json", "-"
        )
        report = strict(out)
        assert (code, report["verdict"]) == (1, "failed"), name
        assert check in {finding["check"] for finding in report["findings"]}, name
        outcomes = {check["name"]: check["outcome"] for check in report["checks"]}
        needs_sources = {"source": "failed", "parity": "not_checked"}
        if check == "parity":
            needs_sources = {"source": "passed", "parity": "failed"}
        needs_recipe = {"restrictions": "passed", "relations": "not_asked"}
        if check == "recipe":
            needs_recipe = dict.fromkeys(needs_recipe, "not_checked")
        own = dict.fromkeys(("structure", "layout", "values", "statistics"), "passed")
        assert outcomes == {**own, **needs_recipe, **needs_sources, "inventory": "not_asked"}, name
        assert all(item["outcome"] != "failed" for item in report["objects"]), name


def test_the_file_of_a_source_stands_for_its_folder(made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    recipe = made / "checkpoint" / "recipe.json"
    file = f"base={made / 'checkpoint' / 'model.safetensors'}"
    assert verify(capsys, made / "good.ninfer", "--source", file, "--recipe", recipe)[0] == 0
    code, _, err = verify(capsys, made / "good.ninfer", "--source", recipe, "--recipe", recipe)
    assert code == 2
    assert "model.safetensors" in err


def test_a_role_that_the_recipe_lacks_is_a_slip_of_the_command_line(
    made: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    recipe = made / "checkpoint" / "recipe.json"
    arguments = ["--source", f"draft={made / 'checkpoint'}", "--recipe", recipe, "--json", "-"]
    code, out, err = verify(capsys, made / "good.ninfer", *arguments)
    assert code == 2
    assert strict(out)["error"]["code"] == "usage"
    assert "no role 'draft'" in err
    assert "'base'" in err


@pytest.mark.parametrize(
    "arguments",
    [
        ["missing.ninfer"],
        ["."],
        ["good.ninfer", "--checks", "vaules"],
        ["good.ninfer", "--checks", ","],
        ["good.ninfer", "--source", "="],
        ["good.ninfer", "--source", "a", "--source", "base=b"],
        ["good.ninfer", "--input", "no_equals_sign"],
        ["good.ninfer", "--source", "missing", "--recipe", "checkpoint/recipe.json"],
        ["good.ninfer", "--source", "checkpoint", "--recipe", "missing.json"],
        ["good.ninfer", "--source", "checkpoint", "--recipe", "checkpoint"],
        ["good.ninfer", "--threads", "0"],
        ["good.ninfer", "--threads", "many"],
        ["good.ninfer", "--no-such-option"],
        ["good.ninfer", "another.ninfer"],
        [],
    ],
)
def test_no_answer_is_two_and_still_json(
    made: Path, arguments: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(made)
    code, out, err = verify(capsys, *arguments, "--json", "-")
    report = strict(out)
    assert (code, report["verdict"]) == (2, "error")
    assert set(report["error"]) == {"code", "message"}
    assert err.strip()
    code, out, err = verify(capsys, *arguments)
    assert (code, out) == (2, "")
    assert "--help" in err or "Check" in err or "help" in err


def test_permission_denied(
    made: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(path: Path, *_: object) -> int:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(
        "ninfer_core.io.os.open", refuse
    )  # the tests may run as a user whom nothing is denied
    code, out, err = verify(capsys, made / "good.ninfer")
    assert (code, out) == (2, "")
    assert "Permission denied" in err
    assert "good.ninfer" in err


def test_our_own_fault_is_explained_without_a_traceback(
    made: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise ZeroDivisionError("by design")

    monkeypatch.setattr("service.cli.verify.run_checks", fail)
    code, out, err = verify(capsys, made / "good.ninfer", "--json", "-")
    assert (code, strict(out)["error"]["code"]) == (2, "internal")
    assert "--debug" in err
    assert app.run(["--debug", "verify", str(made / "good.ninfer")]) == 2
    assert "Traceback" in capsys.readouterr().err


def test_json_in_a_file_appears_whole_beside_the_table(
    made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "report.json"
    assert verify(capsys, made / "bad.ninfer", "--json", target)[0] == 1
    code, out, _ = verify(capsys, made / "good.ninfer", "--json", target)
    assert code == 0
    assert json.loads(target.read_text())["verdict"] == "passed"
    assert "PASSED" in out
    assert os.listdir(tmp_path) == ["report.json"]


def test_json_never_replaces_an_input(made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    artifact = tmp_path / "a.ninfer"
    shutil.copyfile(made / "good.ninfer", artifact)
    before = artifact.read_bytes()
    for target in (artifact, tmp_path, tmp_path / "none" / "report.json"):
        assert verify(capsys, artifact, "--json", target)[0] == 2
    assert artifact.read_bytes() == before
    assert os.listdir(tmp_path) == ["a.ninfer"]


def test_a_folder_means_the_one_artifact_in_it(
    made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copyfile(made / "good.ninfer", tmp_path / "a.ninfer")
    (tmp_path / "notes.txt").write_text("beside it")
    assert verify(capsys, tmp_path)[0] == 0
    assert verify(capsys, made / "checkpoint")[0] == 0
    shutil.copyfile(made / "good.ninfer", tmp_path / "b.ninfer")
    assert verify(capsys, tmp_path)[0] == 2


def test_safetensors_have_no_layout_or_values(made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = made / "checkpoint" / "model.safetensors"
    code, out, _ = verify(capsys, path, "--json", "-")
    report = strict(out)
    assert (code, report["verdict"], report["artifact"]["kind"]) == (0, "passed", "safetensors")
    assert verify(capsys, path)[0] == 0
    assert verify(capsys, path, *parity(made))[0] == 3
