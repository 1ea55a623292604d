"""One small checkpoint, its artifact and a damaged copy, made once for all tests of the command line."""

import json
import os
import shutil
from pathlib import Path

import pytest

from tests.cli import build

GIB = 1 << 30


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


@pytest.fixture(scope="session")
def huge(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A sparse artifact that takes far longer to read than any test waits."""
    folder = tmp_path_factory.mktemp("huge")
    path = folder / "huge.ninfer"
    rows = 64 * GIB // 8192
    entry = {
        "name": "w", "kind": "tensor", "shape": [rows, 4096], "format": "BF16", "layout": "contiguous-le-v1",
        "offset": 0, "bytes": 64 * GIB,
    }  # fmt: skip
    directory = {"identity": {"model_id": "m", "weights_id": "w"}, "objects": [entry]}
    text = json.dumps(directory).encode()
    path.write_bytes(b"NINFER\0\2" + len(text).to_bytes(8, "little") + text)
    os.truncate(path, 4096 + 64 * GIB)
    return path
