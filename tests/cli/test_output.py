"""Where documents may go, what becomes of a bad command line, and what is said when the outcome cannot be told."""

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from ninfer_core.errors import CannotWrite, Usage
from service.cli import app
from service.cli.output import DOCUMENT_BEGUN, JsonTarget
from tests.cli import build
from tests.cli.test_verify import parity, strict


def run(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    """Exit code, standard output and standard error of one command in this process."""
    code = app.run([*map(str, arguments)])
    captured = capsys.readouterr()
    assert "Traceback" not in captured.err
    return code, captured.out, captured.err


def conversion(made: Path, out: Path) -> list[object]:
    """The arguments of the usual conversion."""
    checkpoint = made / "checkpoint"
    return ["convert", "--checkpoint", checkpoint, "--recipe", checkpoint / "recipe.json", "--out", out]


@pytest.mark.parametrize("name", ["o.ninfer", "./o.ninfer", "../w/o.ninfer", "link", "o.ninfer.part-0001"])
def test_json_never_takes_the_name_of_the_output(
    made: Path, tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "w"
    folder.mkdir()
    if name == "link":
        (folder / "link").symlink_to("o.ninfer")
    before = os.listdir(folder)
    arguments = conversion(made, folder / "o.ninfer")
    code, out, err = run(capsys, *arguments, "--json", f"{folder}/{name}")
    assert (code, out) == (2, "")
    assert "that --out names" in err
    assert os.listdir(folder) == before


@pytest.mark.parametrize(
    "content", ["an older report", "{}", '{"schema": "ninfer-recipe/1"}', " ", '{"a":1,']
)
def test_json_replaces_nothing_but_our_documents(
    made: Path, tmp_path: Path, content: str, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "x.json"
    target.write_text(content)
    for arguments in (
        ["verify", made / "good.ninfer"],
        ["inspect", made / "good.ninfer"],
        ["formats"],
        conversion(made, tmp_path / "o.ninfer"),
    ):
        code, out, err = run(capsys, *arguments, "--json", target)
        assert (code, out) == (2, "")
        assert "exists and is no document of ninfer-gate; it is not overwritten" in err
    assert target.read_text() == content
    assert os.listdir(tmp_path) == ["x.json"]


def test_json_replaces_what_we_wrote(made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "x.json"
    target.touch()
    for arguments in (
        ["formats"],
        ["inspect", made / "good.ninfer"],
        ["verify", made / "good.ninfer"],
        conversion(made, tmp_path / "o.ninfer"),
        ["verify", "missing.ninfer"],
    ):
        code, _, _ = run(capsys, *arguments, "--json", target)
        assert code == (2 if "missing.ninfer" in arguments else 0)
        assert json.loads(target.read_text())["schema"].startswith("ninfer-gate/")


def test_the_source_of_a_conversion_survives_json(
    made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(made / "checkpoint", tmp_path / "c")
    for name in ("model.safetensors", "recipe.json"):
        before = (tmp_path / "c" / name).read_bytes()
        arguments = ["verify", made / "good.ninfer", "--source", tmp_path / "c"]
        assert run(capsys, *arguments, "--json", tmp_path / "c" / name)[0] == 2
        assert (tmp_path / "c" / name).read_bytes() == before


def test_a_file_that_appeared_meanwhile_is_kept(tmp_path: Path) -> None:
    target = JsonTarget(tmp_path / "x.json")
    (tmp_path / "x.json").write_text("mine")
    with pytest.raises(Usage):
        target.write({})
    assert (tmp_path / "x.json").read_text() == "mine"


def test_pieces_make_one_document(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def pieces() -> Iterator[str]:
        yield '{"schema": "ninfer-gate/x/1", "n": ['
        yield ", ".join(map(str, range(1000)))
        yield "]}"

    JsonTarget(tmp_path / "x.json").write(pieces())
    text = (tmp_path / "x.json").read_text()
    assert len(strict(text)["n"]) == 1000
    DOCUMENT_BEGUN.set(False)
    JsonTarget(None).write(pieces())
    JsonTarget(None).write({"second": "documents spoil the first"})
    assert capsys.readouterr().out == text


def test_pieces_that_fail_leave_the_older_document(tmp_path: Path) -> None:
    def pieces() -> Iterator[str]:
        yield "{"
        raise OSError(28, "No space left on device")

    target = JsonTarget(tmp_path / "x.json")
    target.write({"schema": "ninfer-gate/x/1"})
    before = (tmp_path / "x.json").read_text()
    with pytest.raises(CannotWrite, match="No space left"):
        target.write(pieces())
    assert (tmp_path / "x.json").read_text() == before
    assert os.listdir(tmp_path) == ["x.json"]


def test_a_report_that_cannot_be_written_does_not_undo_the_artifact(
    made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("service.cli.output._write_to", full)
    out = tmp_path / "o.ninfer"
    code, shown, err = run(capsys, *conversion(made, out), "--json", tmp_path / "x.json")
    assert code == 2
    assert "WRITTEN" in shown
    assert "o.ninfer was written, but its report was not" in err
    assert "No space left" in err
    assert sorted(os.listdir(tmp_path)) == ["o.ninfer", "o.ninfer.provenance.json"]
    assert run(capsys, "verify", out)[0] == 0


@pytest.mark.parametrize("options", [[], ["--json", "-"]])
def test_standard_output_is_full(made: Path, tmp_path: Path, options: list[str]) -> None:
    out = tmp_path / "o.ninfer"
    command = [build.COMMAND, *conversion(made, out), *options]
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [*map(str, command)], stdout=full, stderr=subprocess.PIPE, text=True, timeout=60, check=False
        )
    assert done.returncode == 2
    assert "was written, but its report was not" in done.stderr
    assert "Exception" not in done.stderr
    assert sorted(os.listdir(tmp_path)) == ["o.ninfer", "o.ninfer.provenance.json"]


@pytest.mark.parametrize(
    "arguments",
    [
        ["verify", ""],
        ["inspect", ""],
        ["decode", "", "x", "--out", "x.npy"],
        ["decode", "good.ninfer", "vector", "--out", ""],
        ["verify", "good.ninfer", "--source", ""],
        ["verify", "good.ninfer", "--source", "base="],
        ["verify", "good.ninfer", "--recipe", ""],
        ["verify", "good.ninfer", "--json", ""],
        ["convert", "--source", "checkpoint", "--recipe", "checkpoint/recipe.json", "--out", ""],
        ["convert", "--source", "checkpoint", "--recipe", "", "--out", "new.ninfer"],
        ["convert", "--source", "", "--recipe", "checkpoint/recipe.json", "--out", "new.ninfer"],
    ],
)
def test_an_empty_value_is_not_the_current_folder(
    made: Path, arguments: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(made)
    before = sorted(os.listdir(made))
    code, out, err = run(capsys, *arguments)
    assert (code, out) == (2, "")
    assert "is empty" in err or "is not [ROLE=]DIR" in err
    if "decode" not in arguments and "--json" not in arguments:
        document = strict(run(capsys, *arguments, "--json", "-")[1])
        assert document["error"]["code"] == "usage"
    assert sorted(os.listdir(made)) == before


@pytest.mark.parametrize(
    "options",
    [
        ["--source", "missing"],
        ["--source", "base=missing", "--checks", "values"],
        ["--recipe", "missing.json"],
        ["--recipe", "missing.json", "--checks", "structure"],
        ["--source", "checkpoint", "--input", "counts=missing"],
    ],
)
def test_every_path_that_is_given_must_be_there(
    made: Path, options: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(made)
    code, out, err = run(capsys, "verify", "good.ninfer", *options, "--json", "-")
    document = strict(out)
    assert (code, document["verdict"], document["error"]["code"]) == (2, "error", "cannot_read")
    assert "missing" in err


@pytest.mark.parametrize(
    "arguments",
    [
        ["verify", "a", "b\u202ec\x1b[2Jd"],
        ["verify", "a", "--no\u202e\x1b[2J"],
        ["verify", "a", "--threads", "\u202e\x1b[2J\nError: all is well"],
        ["\u202e\x1b[2J"],
    ],
)
def test_a_slip_is_explained_in_harmless_characters(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = run(capsys, *arguments)
    assert (code, out) == (2, "")
    assert not {"\u202e", "\x1b"} & set(err)
    assert "\\u202e" in err or "--threads" in arguments  # whose value is not repeated
    assert err.startswith("Usage: ninfer-gate")
    assert "--help" in err or "-h" in err
    assert len([line for line in err.splitlines() if line.startswith("Error: ")]) == 1
    code, out, _ = run(capsys, *arguments, "--json", "-")
    assert strict(out)["error"]["code"] == "usage"


def test_no_arguments_give_help(capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = run(capsys)
    assert code == 2
    assert "verify" in err
    assert len(err.splitlines()) > 10


def test_the_report_of_verify_is_one_line_and_the_same_in_a_file(
    made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["verify", made / "good.ninfer", *parity(made), "--json"]
    _, out, _ = run(capsys, *arguments, "-")
    run(capsys, *arguments, tmp_path / "x.json")
    assert strict(out) == json.loads((tmp_path / "x.json").read_text())
