"""One small checkpoint, its artifact and a damaged copy, made once for all tests of the command line."""

import shutil
from pathlib import Path

import pytest

from tests.cli import build


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with `checkpoint/`, `recipe.json` in it, `good.ninfer` and `bad.ninfer`; tests read it only."""
    folder = tmp_path_factory.mktemp("cli")
    checkpoint = folder / "checkpoint"
    checkpoint.mkdir()
    build.checkpoint(checkpoint)
    done = build.run(
        "convert", "--checkpoint", checkpoint, "--recipe", checkpoint / "recipe.json",
        "--out", folder / "good.ninfer",
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    shutil.copyfile(folder / "good.ninfer", folder / "bad.ninfer")
    build.change_byte(folder / "bad.ninfer", "matrix", 6 * 2 * 64 - 1, 0x55)  # a padding lane of the last row
    return folder
