"""`convert` and `decode`: written whole, refused with findings, or not at all; nothing is overwritten or left behind."""

import json
import os
import shutil
from pathlib import Path

import numpy as np
import pytest

from service.cli import app
from tests.cli import build
from tests.cli.test_verify import strict


def convert(
    capsys: pytest.CaptureFixture[str], checkpoint: Path, out: Path, *more: object
) -> tuple[int, str, str]:
    """Exit code, standard output and standard error of one conversion in this process."""
    recipe = checkpoint / "recipe.json"
    arguments = ["--checkpoint", checkpoint, "--recipe", recipe, "--out", out, *more]
    code = app.run(["convert", *map(str, arguments)])
    captured = capsys.readouterr()
    assert "Traceback" not in captured.err
    return code, captured.out, captured.err


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    """A checkpoint of this test's own."""
    folder = tmp_path / "checkpoint"
    folder.mkdir()
    return build.checkpoint(folder)


def test_the_same_input_gives_the_same_bytes(
    made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, _ = convert(
        capsys, made / "checkpoint", tmp_path / "again.ninfer", "--json", "-", "--threads", 1
    )
    document = strict(out)
    assert (code, document["verdict"], document["schema"]) == (0, "written", "ninfer-gate/conversion/1")
    assert (tmp_path / "again.ninfer").read_bytes() == (made / "good.ninfer").read_bytes()
    assert sorted(os.listdir(tmp_path)) == ["again.ninfer", "again.ninfer.provenance.json"]


def test_revision_3_in_parts_has_the_same_content(
    made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    roots = set()
    for name, options in (
        ("a", []),
        ("b", ["--revision", 3]),
        ("c", ["--revision", 3, "--max-file-bytes", 8192]),
    ):
        code, out, _ = convert(
            capsys, made / "checkpoint", tmp_path / f"{name}.ninfer", *options, "--json", "-"
        )
        assert code == 0
        document = strict(out)
        roots.add(document["artifact"]["content_root"])
        assert app.run(["verify", str(tmp_path / f"{name}.ninfer")]) == 0
        capsys.readouterr()
    assert len(document["artifact"]["files"]) == 4
    assert len(roots) == 1


def test_what_exists_is_never_overwritten(
    made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "o.ninfer"
    out.write_text("mine")
    code, _, err = convert(capsys, made / "checkpoint", out)
    assert code == 2
    assert "never overwritten. Name another file, or move that one away." in err
    assert "may write to it" not in err
    assert out.read_text() == "mine"


@pytest.mark.parametrize("value", [np.nan, np.inf, 3e38])
def test_a_source_that_cannot_be_encoded_is_refused(
    checkpoint: Path, tmp_path: Path, value: float, capsys: pytest.CaptureFixture[str]
) -> None:
    matrix = np.ones((6, 130), np.float32)
    matrix[4, 70] = value
    tensors = {"matrix": matrix, "zeros": np.zeros((3, 64), np.float32), "vector": np.ones(3000, np.float32)}
    build.safetensors(checkpoint / "model.safetensors", tensors)
    code, out, _ = convert(capsys, checkpoint, tmp_path / "o.ninfer", "--json", "-")
    document = strict(out)
    assert (code, document["verdict"]) == (1, "refused")
    (finding,) = document["findings"]
    assert (finding["object"], finding["where"]["row"], finding["where"]["group"]) == ("matrix", 4, 1)
    code, out, _ = convert(capsys, checkpoint, tmp_path / "o.ninfer")
    assert code == 1
    assert "nothing was written" in out
    assert f"explain {finding['code']}" in out
    assert os.listdir(tmp_path) == ["checkpoint"]


def test_a_recipe_that_does_not_fit_is_refused(
    checkpoint: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    recipe = checkpoint / "recipe.json"
    good = recipe.read_text()
    for text in ("[]", good.replace("[6, 130]", "[6, 131]"), good.replace('"Q4G64_F16S"', '"Q4_K"')):
        recipe.write_text(text)
        code, out, _ = convert(capsys, checkpoint, tmp_path / "o.ninfer", "--json", "-")
        document = strict(out)
        assert (code, document["verdict"]) == (1, "refused")
        assert document["findings"]
    assert os.listdir(tmp_path) == ["checkpoint"]


@pytest.mark.parametrize(
    "options",
    [
        ["--revision", 1],
        ["--revision", 4],
        ["--max-file-bytes", 0],
        ["--revision", 3, "--max-file-bytes", 100],
    ],
)
def test_options_that_make_no_sense(
    made: Path, tmp_path: Path, options: list[object], capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = convert(capsys, made / "checkpoint", tmp_path / "o.ninfer", *options, "--json", "-")
    document = strict(out)
    assert (code, document["verdict"], document["schema"]) == (2, "error", "ninfer-gate/conversion/1")
    assert err
    assert os.listdir(tmp_path) == []


def test_a_folder_that_is_not_there(made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = convert(capsys, made / "checkpoint", tmp_path / "none" / "o.ninfer")
    assert code == 2
    assert "none" in err


def test_there_is_no_encoder_menu() -> None:
    shown = build.run("convert", "--help").stdout
    assert not {"--format", "--encoder", "--encode", "--profile", "--layout"} & set(shown.split())


def decode(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    """Exit code, standard output and standard error of one decoding."""
    code = app.run(["decode", *map(str, arguments)])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_decoded_values_are_near_the_source(
    made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "x.npy"
    code, shown, _ = decode(capsys, made / "good.ninfer", "matrix", "--out", out)
    assert code == 0
    assert "float32 [6, 130]" in shown
    values = np.load(out, allow_pickle=False)
    source = np.random.default_rng(7).standard_normal((6, 130)).astype(np.float32)
    assert values.dtype == np.float32
    assert np.abs(values - source).max() < 0.5
    code, _, _ = decode(capsys, made / "good.ninfer", "vector", "--out", tmp_path / "v.npy")
    assert code == 0
    assert np.load(tmp_path / "v.npy").shape == (3000,)


def test_decode_never_overwrites_and_knows_what_it_has(
    made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "x.npy"
    for arguments in (
        [made / "good.ninfer", "no such object"],
        [made / "missing.ninfer", "matrix"],
        [made / "checkpoint" / "model.safetensors", "matrix"],
    ):
        code, _, err = decode(capsys, *arguments, "--out", out)
        assert code == 2
        assert err
    out.write_text("mine")
    assert decode(capsys, made / "good.ninfer", "matrix", "--out", out)[0] == 2
    assert out.read_text() == "mine"


def test_words_that_are_not_legal_are_not_decoded(
    made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "a.ninfer"
    shutil.copyfile(made / "good.ninfer", path)
    build.change_byte(path, "zeros", 0, 0x80)  # -128, which W8 does not have
    code, out, _ = decode(capsys, path, "zeros", "--out", tmp_path / "x.npy")
    assert code == 1
    assert "values.code_out_of_range" in out
    assert os.listdir(tmp_path) == ["a.ninfer"]


def test_the_report_of_a_conversion_in_a_file(
    made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "c.json"
    code, out, _ = convert(capsys, made / "checkpoint", tmp_path / "o.ninfer", "--json", target)
    assert code == 0
    assert json.loads(target.read_text())["verdict"] == "written"
    assert "WRITTEN" in out
