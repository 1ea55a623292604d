"""`diff`: exit codes, a table with the worst first, one sentence that says whether it matters, and strict JSON."""

import json
import os
from pathlib import Path

import numpy as np
import pytest

from ninfer_core.formats import BF16, FP32, Q4G64_F16S, W8G32_F16S
from service.cli import app
from service.cli.diff_view import percent
from tests.build import write_artifact
from tests.cli import build
from tests.cli.terminal import Terminal
from tests.cli.test_verify import strict
from tests.compare.build import finite_payload

LONG = "text/layers/3/attention/" + "very_long_name/" * 6 + "query_key"
HOSTILE = "x\x1b[31m\u202ey"


def payload(fmt, shape, seed):
    return fmt, shape, finite_payload(fmt, shape, np.random.default_rng(seed))


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Two artifacts with an object of every status that whole files can have."""
    folder = tmp_path_factory.mktemp("diff")
    same, moved = payload(BF16, (9,), 1), payload(BF16, (9,), 2)
    matrix = payload(Q4G64_F16S, (3, 100), 3)
    padded = (Q4G64_F16S, (3, 100), matrix[2].copy())
    padded[2][63] = 1  # the last physical lanes of the first row
    a = {
        "same": same,
        "old": moved,
        "padded": matrix,
        LONG: payload(FP32, (3, 100), 4),
        HOSTILE: same,
        "gone": matrix,
    }
    b = {"same": same, "new": moved, "padded": padded, LONG: payload(W8G32_F16S, (3, 100), 5), HOSTILE: moved}
    b["shape"], a["shape"] = payload(BF16, (4,), 6), payload(BF16, (5,), 6)
    return write_artifact(folder / "a.ninfer", a), write_artifact(folder / "b.ninfer", b, 3)


def diff(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    """Exit code, standard output and standard error of one comparison in this process."""
    code = app.run(["diff", *map(str, arguments)])
    captured = capsys.readouterr()
    assert "Traceback" not in captured.err
    return code, captured.out, captured.err


def test_the_worst_first(two: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = diff(capsys, *two)
    assert (code, err) == (1, "")
    table = out[out.index("  object ") :].splitlines()
    names = [line.split("  ")[1].strip() for line in table[1:8]]
    assert set(names[2:4]) == {LONG, "x\\x1b[31m\\u202ey"}  # by their error
    assert names[:2] + names[4:] == ["gone", "shape", "old", "new", "padded"]
    assert "FP32 → W8G32_F16S" in out
    assert "old: has the same content as new of B" in out
    assert "shape: another shape: [5] in A, [4] in B" in out
    assert "\x1b" not in out
    assert not any(line.startswith("  same ") for line in table)
    last = out.rstrip().rsplit("\n", 1)[1]
    assert last.startswith("  DIFFERENT in ")
    assert "B lacks 2 objects of A and has 1 that A has not (1 only under another name)" in last
    assert "the values of 2 objects differ, at worst with an NMSE of " in last
    assert last.endswith("of 1 object the difference has no measure.")


def test_as_many_as_wanted(two: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = diff(capsys, *two, "--worst", 1)
    assert "  gone " in out
    assert "  padded " not in out
    assert "… and 6 objects more; --worst N shows more, --json FILE has them all" in out
    _, out, _ = diff(capsys, *two, "--all")
    assert "  padded " in out
    assert any(line.startswith("  same ") for line in out.splitlines())
    assert "more;" not in out


def test_json_alone(two: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = diff(capsys, *two, "--json", "-")
    document = strict(out)
    assert (code, err, document["verdict"]) == (1, "", "different")
    assert document["schema"] == "ninfer-gate/comparison/1"
    statuses = {item["name"]: item["status"] for item in document["objects"]}
    assert statuses == {
        "same": "identical",
        "old": "removed",
        "gone": "removed",
        "padded": "re-packed",
        LONG: "re-encoded",
        HOSTILE: "changed",
        "shape": "changed",
        "new": "added",
    }
    code, out, _ = diff(capsys, *two, "--json", tmp_path / "x.json", "--threads", 1)
    assert json.loads((tmp_path / "x.json").read_text()) == document
    assert "DIFFERENT" in out


def test_identical_content(made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = diff(capsys, made / "good.ninfer", made / "good.ninfer")
    assert code == 0
    assert "every one of 3 objects is identical: the content is the same." in out


def test_only_padding_differs(made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = diff(capsys, made / "good.ninfer", made / "bad.ninfer")
    assert code == 1
    assert "1 object differs in padding alone: no value does." in out


def test_what_cannot_be_read_is_no_answer(
    two: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = two[0].read_bytes()
    (tmp_path / "cut.ninfer").write_bytes(whole[: 4096 + 256 * 6 + 4])
    code, out, _ = diff(capsys, tmp_path / "cut.ninfer", tmp_path / "cut.ninfer")
    assert code == 2
    assert "INCOMPLETE" in out
    assert "Findings of A" in out
    assert "structure." in out


def test_no_answer(
    two: tuple[Path, Path], made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for arguments, code in (
        ([two[0], tmp_path / "missing.ninfer"], "cannot_read"),
        ([two[0], made / "checkpoint"], "usage"),
        ([two[0]], "usage"),
        ([two[0], ""], "usage"),
    ):
        exit_code, out, err = diff(capsys, *arguments, "--json", "-")
        document = strict(out)
        assert exit_code == 2
        assert (document["schema"], document["error"]["code"]) == ("ninfer-gate/comparison/1", code)
        assert err
    before = two[0].read_bytes()
    assert diff(capsys, *two, "--json", two[0])[0] == 2
    assert two[0].read_bytes() == before


@pytest.mark.parametrize("columns", [80, 140])
def test_a_comparison_fits_the_window(two: tuple[Path, Path], columns: int) -> None:
    terminal = Terminal("diff", *two, columns=columns)
    assert terminal.finish() == 1
    assert max(map(len, terminal.lines)) <= columns, terminal.text
    assert "SQNR dB" in terminal.text
    titles = next(line for line in terminal.lines if "SQNR dB" in line and "object" in line)
    assert ("max abs" in titles) == (columns == 140)
    assert ("columns left out at this width: " in terminal.text) == (columns == 80)
    assert "\x1b[1;33mDIFFERENT" in terminal.raw


def test_ctrl_c_leaves_nothing(huge: Path, tmp_path: Path) -> None:
    with huge.open("rb") as file:
        (tmp_path / "b.ninfer").write_bytes(file.read(4096))
    os.truncate(tmp_path / "b.ninfer", huge.stat().st_size)
    terminal = Terminal("diff", huge, tmp_path / "b.ninfer", columns=100)
    terminal.read_until(lambda text: "GB" in text and "/s" in text)
    terminal.interrupt()
    assert terminal.finish() == 130
    assert "Nothing is kept" in terminal.text


def test_the_help_teaches() -> None:
    done = build.run("diff", "--help")
    assert (
        "Exit codes: 0 identical, 1 different (objects, or what a reader goes by beside them: identity,"
        in " ".join(done.stdout.split())
    )


@pytest.mark.parametrize(
    ("share", "shown"),
    [(0.0, "0.00 %"), (1e-9, "<0.01 %"), (0.5, "50.00 %"), (1 - 1e-9, ">99.99 %"), (1.0, "100.00 %")],
)
def test_shares(share: float, shown: str) -> None:
    assert percent(share) == shown
