"""Small checkpoints, recipes and artifacts for tests of the command line, and the installed command itself."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

COMMAND = Path(sys.executable).with_name("ninfer-gate")
PROFILE = "MAXABS_F16_RECIP_RNE_V1"
_DTYPES = {"float32": "F32", "uint16": "BF16", "int64": "I64"}


def run(*arguments: object, environment: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """One run of the installed command."""
    return subprocess.run(
        [str(COMMAND), *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env={**os.environ, **(environment or {})},
    )


def safetensors(path: Path, tensors: Mapping[str, np.ndarray[Any, Any]]) -> None:
    """A safetensors file that holds `tensors` in order."""
    header: dict[str, Any] = {}
    payload = b""
    for name, values in tensors.items():
        raw = values.tobytes()
        header[name] = {
            "dtype": _DTYPES[values.dtype.name],
            "shape": list(values.shape),
            "data_offsets": [len(payload), len(payload) + len(raw)],
        }
        payload += raw
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(len(text).to_bytes(8, "little") + text + payload)


def recipe(tensors: Mapping[str, tuple[tuple[int, ...], str, str]]) -> dict[str, Any]:
    """A recipe that makes each object of (shape, source dtype, format) from the source tensor of its name."""
    source = {
        "repository": "none",
        "revision": "none",
        "license": "none",
        "kind": "safetensors-file",
        "file": "model.safetensors",
        "exact_tensor_names": False,
    }
    rules = []
    for name, (shape, dtype, fmt) in tensors.items():
        value = {"op": "tensor", "from": "base", "name": name, "shape": list(shape), "dtype": dtype}
        encode = PROFILE if "G" in fmt else "copy_words"
        rules.append({"object": name, "value": value, "encode": encode, "format": fmt})
    return {
        "schema": "ninfer-recipe/1",
        "identity": {"model_id": "test-model", "weights_id": "test-weights"},
        "recipe_id": "test-v1",
        "sources": {"base": source},
        "resources": [],
        "rules": rules,
    }


def checkpoint(folder: Path) -> Path:
    """A checkpoint and `recipe.json` in `folder`: one grouped matrix, one grouped matrix of zeros, one vector."""
    generator = np.random.default_rng(7)
    matrix = generator.standard_normal((6, 130)).astype(np.float32)
    vector = generator.standard_normal(3000).astype(np.float32)
    zeros = np.zeros((3, 64), np.float32)
    safetensors(folder / "model.safetensors", {"matrix": matrix, "zeros": zeros, "vector": vector})
    document = recipe(
        {
            "matrix": ((6, 130), "F32", "Q4G64_F16S"),
            "zeros": ((3, 64), "F32", "W8G32_F16S"),
            "vector": ((3000,), "F32", "FP32"),
        }
    )
    document["restrictions"] = [
        {"scope": {"encode": PROFILE}, "rule": "canonical_group_shape", "basis": "derived"}
    ]
    (folder / "recipe.json").write_text(json.dumps(document))
    return folder


def directory(path: Path) -> tuple[dict[str, Any], int]:
    """The directory of a revision 2 file, and where its payload begins."""
    content = path.read_bytes()
    end = 16 + int.from_bytes(content[8:16], "little")
    return json.loads(content[16:end]), (end + 4095) // 4096 * 4096


def change_byte(path: Path, name: str, index: int, value: int) -> None:
    """Write `value` at byte `index` of the object called `name`."""
    members, base = directory(path)
    entry = next(entry for entry in members["objects"] if entry["name"] == name)
    content = bytearray(path.read_bytes())
    content[base + entry["offset"] + index] = value
    path.write_bytes(content)


def renamed(path: Path, old: str, new: str) -> None:
    """Give an object of a revision 2 file another name; the payload stays where the directory says."""
    content = path.read_bytes()
    members, base = directory(path)
    for entry in members["objects"]:
        if entry["name"] == old:
            entry["name"] = new
    text = json.dumps(members).encode()
    payload = content[base:]
    head = content[:8] + len(text).to_bytes(8, "little") + text
    path.write_bytes(head + bytes(-len(head) % 4096) + payload)
