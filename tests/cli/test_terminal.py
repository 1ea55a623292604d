"""What a person sees on a terminal: colours, a bar while it works, lines that fit, and Ctrl-C."""

import json
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

from ninfer_core.kernels.registry import KERNELS
from tests.cli import build
from tests.cli.terminal import Terminal

GIB = 1 << 30


@pytest.mark.parametrize("columns", [80, 140])
def test_a_report_fits_the_window(made: Path, tmp_path: Path, columns: int) -> None:
    path = tmp_path / "a.ninfer"
    shutil.copyfile(made / "bad.ninfer", path)
    build.renamed(path, "matrix", "text/layers/3/attention/" + "very_long_name/" * 6 + "query_key")
    for command in (["verify", path], ["inspect", path], ["formats"], ["explain", "parity.code_mismatch"]):
        terminal = Terminal(*command, columns=columns)
        code = terminal.finish()
        assert code == (1 if command[0] == "verify" else 0)
        assert max(map(len, terminal.lines)) <= columns, terminal.text
        assert "Traceback" not in terminal.text


@pytest.mark.parametrize("columns", [60, 80, 120])
def test_names_of_kernels_are_whole_at_every_width(columns: int) -> None:
    terminal = Terminal("kernels", columns=columns)
    assert terminal.finish() == 0
    shown = {word for line in terminal.lines for word in line.split()}
    assert {kernel.name for kernel in KERNELS} <= shown
    assert max(map(len, terminal.lines)) <= columns


def test_a_long_cell_goes_on_in_its_own_column() -> None:
    terminal = Terminal("formats", columns=60)
    assert terminal.finish() == 0
    assert all(line.startswith("  ") for line in terminal.lines if line.strip()), terminal.text
    assert max(map(len, terminal.lines)) <= 60


def test_digests_are_short_on_a_terminal_and_whole_when_piped(made: Path) -> None:
    terminal = Terminal("verify", made / "good.ninfer")
    assert terminal.finish() == 0
    digest = json.loads(build.run("verify", made / "good.ninfer", "--json", "-").stdout)["artifact"]["digest"]
    assert digest not in terminal.text
    assert digest[:15] in terminal.text
    piped = build.run("verify", made / "good.ninfer").stdout
    assert digest in piped
    assert "\x1b" not in piped
    assert all(line == line.rstrip() for line in piped.splitlines())


def test_colours_can_be_turned_off(made: Path) -> None:
    coloured = Terminal("verify", made / "good.ninfer")
    coloured.finish()
    assert "\x1b[1;32mPASSED" in coloured.raw
    plain = Terminal("verify", made / "good.ninfer", no_color=True)
    plain.finish()
    assert "32m" not in plain.raw
    assert "PASSED" in plain.raw


def test_ctrl_c_stops_at_once_and_says_what_is_kept(huge: Path) -> None:
    terminal = Terminal("verify", huge, columns=100)
    terminal.read_until(lambda text: "GB" in text and "/s" in text)
    assert "verify" in terminal.text
    terminal.interrupt()
    begin = time.monotonic()
    assert terminal.finish() == 130
    assert time.monotonic() - begin < 10
    assert "Nothing is kept" in terminal.text
    assert "Traceback" not in terminal.text


def test_an_interrupted_conversion_leaves_nothing(tmp_path: Path) -> None:
    rows = 4 * GIB // 16384
    header = json.dumps({"w": {"dtype": "F32", "shape": [rows, 4096], "data_offsets": [0, 4 * GIB]}}).encode()
    source = tmp_path / "model.safetensors"
    source.write_bytes(len(header).to_bytes(8, "little") + header)
    os.truncate(source, 8 + len(header) + 4 * GIB)
    recipe = tmp_path / "recipe.json"
    recipe.write_text(json.dumps(build.recipe({"w": ((rows, 4096), "F32", "Q4G64_F16S")})))
    out = tmp_path / "o.ninfer"
    terminal = Terminal("convert", "--checkpoint", tmp_path, "--recipe", recipe, "--out", out, columns=100)
    terminal.read_until(lambda text: "MB/s" in text or "GB/s" in text)
    terminal.interrupt()
    assert terminal.finish() == 130
    assert "Nothing is kept" in terminal.text
    assert sorted(os.listdir(tmp_path)) == ["model.safetensors", "recipe.json"]


def test_an_interrupted_run_still_gives_one_document(huge: Path) -> None:
    process = subprocess.Popen(
        [str(build.COMMAND), "verify", str(huge), "--json", "-"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    _wait_for_threads(process.pid)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert process.returncode == 130
    assert json.loads(out)["verdict"] == "cancelled"
    assert "Nothing is kept" in err


def _wait_for_threads(pid: int) -> None:
    """Until the process has opened the artifact, so that it is at work and not still starting."""
    end = time.monotonic() + 30
    while time.monotonic() < end:
        if any(
            "huge.ninfer" in os.readlink(link)
            for link in Path(f"/proc/{pid}/fd").iterdir()
            if link.is_symlink()
        ):
            return
        time.sleep(0.05)
