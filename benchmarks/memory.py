"""Peak memory of whole processes on 4 GB artifacts, whatever the shape of their largest tensor.

`python -m benchmarks.memory [--gigabytes N] [--folder DIR]`. Artifacts and checkpoints are sparse files; converting
writes 4 GB of real bytes. Exits 1 when a process needs more than the limit.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ninfer_core.containers.writer import Heading, TensorSpec, blueprint
from ninfer_core.formats import FORMATS
from ninfer_core.layouts import canonical_layout

CLI = (sys.executable, "-m", "service.cli")
LIMIT_MB = 600
CANONICAL = "MAXABS_F16_RECIP_RNE_V1"


def shapes(total: int) -> list[tuple[str, tuple[int, ...]]]:
    """Formats and shapes of about `total` bytes: many rows, and one row (or one stripe) that is everything."""
    return [
        ("Q4G64_F16S", (total // 17 // 512, 16384)),
        ("W8G32_F16S", (1, total // 17 * 16 // 128 * 128 + 1)),
        ("FP8_E4M3FN_ROW_BF16S", (2, total // 2)),
        ("NVFP4", (128, total // 9 * 16 // 128 // 64 * 64)),
        ("FP32", (total // 4,)),
    ]


def sparse_artifact(
    path: Path, shapes: Sequence[tuple[str, tuple[int, ...]]], file_bytes: int | None = None
) -> list[Path]:
    """Tensors of zero words, which every format allows (one of NVFP4 alone, with divisor one); each a format and a shape.

    One file of revision 2, or as many of revision 3 as it takes with `file_bytes` for each; all of them, the entry first.
    """
    heading = Heading("memory", shapes[0][0], {"text": {"config": {}}}, {})
    specs = [
        TensorSpec(f"w{number}" if number else "w", shape, FORMATS[name], canonical_layout(FORMATS[name]))
        for number, (name, shape) in enumerate(shapes)
    ]
    files = blueprint(path.name, specs, heading, 2 if file_bytes is None else 3, file_bytes).files
    for file in files:
        with path.with_name(file.name).open("wb") as out:
            out.write(file.header)
            out.truncate(file.bytes)
            if shapes[0][0] == "NVFP4":
                out.seek(file.bytes - 4)
                out.write(bytes([0, 0, 0x80, 0x3F]))
    return [path.with_name(file.name) for file in files]


def sparse_checkpoint(
    folder: Path, dtype: str, shape: Sequence[int], value: Any, encode: str, fmt: str
) -> Path:
    """A safetensors file of zeros and a recipe for its one tensor."""
    size = {"BF16": 2, "F32": 4}[dtype]
    for length in shape:
        size *= length
    head = json.dumps({"w": {"dtype": dtype, "shape": list(shape), "data_offsets": [0, size]}}).encode()
    with (folder / "model.safetensors").open("wb") as out:
        out.write(len(head).to_bytes(8, "little") + head)
        out.truncate(8 + len(head) + size)
    claims = {"repository": "synthetic", "revision": "1", "license": "none"}
    source = {**claims, "kind": "safetensors-file", "file": "model.safetensors", "exact_tensor_names": True}
    document = {
        "schema": "ninfer-recipe/1",
        "identity": {"model_id": "memory", "weights_id": fmt},
        "recipe_id": "memory-v1",
        "sources": {"base": source},
        "resources": [],
        "rules": [{"object": "w", "value": value, "encode": encode, "format": fmt}],
    }
    (folder / "recipe.json").write_text(json.dumps(document))
    return folder / "recipe.json"


def measure(what: str, arguments: Sequence[object]) -> bool:
    """Run the command, print its peak resident memory, say whether it passed and stayed under the limit."""
    start = time.perf_counter()
    process = subprocess.Popen([*CLI, *map(str, arguments)], stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    peak = usage.ru_maxrss / 1000
    fine = process.returncode == 0 and peak < LIMIT_MB
    verdict = "ok" if fine else f"TOO MUCH (exit {process.returncode})"
    print(f"{what:<58}{peak:>8.0f} MB{time.perf_counter() - start:>9.1f} s  {verdict}", flush=True)
    return fine


def main() -> None:
    """Measure every shape; exit 1 when one is over the limit."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--gigabytes", type=float, default=4, help="size of each artifact")
    parser.add_argument("--folder", type=Path, help="where the files go (default: the temporary folder)")
    arguments = parser.parse_args()
    total = int(arguments.gigabytes * 1e9)
    fine = []
    with tempfile.TemporaryDirectory(dir=arguments.folder) as name:
        folder = Path(name)
        for fmt, shape in shapes(total):
            sparse_artifact(folder / "a.ninfer", [(fmt, shape)])
            fine.append(measure(f"verify {fmt} {list(shape)}", ["verify", folder / "a.ninfer"]))
            (folder / "a.ninfer").unlink()
        side = int((total * 16 // 17) ** 0.5) // 128 * 128
        jobs: list[tuple[str, tuple[int, int], str, str, str]] = [
            ("BF16", (side, side), "tensor", CANONICAL, "W8G32_F16S"),
            ("F32", (1, total // 4), "tensor", "copy_words", "FP32"),
            ("BF16", (side // 4, side // 4), "transpose", CANONICAL, "Q6G64_F16S"),
        ]
        for dtype, size, operation, encode, fmt in jobs:
            value: dict[str, Any] = {
                "op": "tensor",
                "from": "base",
                "name": "w",
                "shape": list(size),
                "dtype": dtype,
            }
            if operation == "transpose":
                value = {"op": "transpose", "axes": [1, 0], "of": value}
            recipe = sparse_checkpoint(folder, dtype, size, value, encode, fmt)
            out = folder / "a.ninfer"
            what = f"{fmt} {list(size)} of a {operation} of {dtype}"
            fine.append(
                measure(
                    f"convert {what}", ["convert", "--checkpoint", folder, "--recipe", recipe, "--out", out]
                )
            )
            fine.append(measure(f"parity {what}", ["verify", out, "--source", folder, "--recipe", recipe]))
            out.unlink(missing_ok=True)
    sys.exit(0 if all(fine) else 1)


if __name__ == "__main__":
    main()
