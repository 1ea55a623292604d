"""A checkpoint, its recipe, and what the command line makes and says of them: what every run of a worker is held to."""

import json
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np

from service.cli.app import run
from tests.build import recipe, tensor, write_checkpoint

CANONICAL = "MAXABS_F16_RECIP_RNE_V1"
COUNT, SHAPE = 24, (256, 512)
LARGE = (3072, 1024)  # cut by rows
_FORMATS = ("Q4G64_F16S", "Q5G64_F16S", "Q6G64_F16S", "W8G32_F16S")


@dataclass(frozen=True)
class Material:
    """Of one conversion and of verifications of what it makes."""

    folder: Path  # the checkpoint
    document: dict[str, Any]  # the recipe
    recipe: Path
    artifact: Path  # as `ninfer-gate convert` writes it
    conversion: dict[str, Any]  # and what it says
    damaged: Path  # the artifact with some words changed


def command(*arguments: str | Path, code: int = 0) -> None:
    """Run the command line, in this process: loading it again and again would take longer than what it does."""
    assert run([str(argument) for argument in arguments]) == code


def report(path: Path, material: Material, *, parity: bool, code: int = 0) -> dict[str, Any]:
    """What the command line says of an artifact."""
    out = path.with_name(f"{path.name}.{'parity' if parity else 'plain'}.json")
    against = ("--source", material.folder, "--recipe", material.recipe) if parity else ()
    out.unlink(missing_ok=True)
    command("verify", path, *against, "--json", out, code=code)
    document: dict[str, Any] = json.loads(out.read_text())
    return document


def make(base: Path) -> Material:
    """All of it in a folder: two dozen small tensors and a large one, for about thirty shards a job."""
    rng = np.random.default_rng(5)
    folder = base / "checkpoint"
    folder.mkdir()
    shapes = {**{f"layer{index}": SHAPE for index in range(COUNT)}, "large": LARGE}
    write_checkpoint(
        folder,
        {
            name: ("F32", rng.normal(0, 0.05, shape).astype("<f4").view("<u4"))
            for name, shape in shapes.items()
        },
    )
    (folder / "tokenizer.json").write_bytes(b'{"a": 1}')
    rules: list[dict[str, Any]] = [
        {"object": f"w/{name}", "value": tensor(name, shape, "F32"), "encode": CANONICAL, "format": fmt}
        for (name, shape), fmt in zip(shapes.items(), cycle(_FORMATS), strict=False)
    ]
    rules.append(
        {
            "object": "n/cast",
            "value": {"op": "cast", "to": "BF16", "of": tensor("layer0", SHAPE, "F32")},
            "encode": "copy_words",
            "format": "BF16",
        }
    )
    resources = [{"object": "tokenizer", "from": "base", "file": "tokenizer.json", "encode": "copy_bytes"}]
    document = recipe(rules, resources)
    path = base / "recipe.json"
    path.write_text(json.dumps(document))
    artifact = base / "out.ninfer"
    said = base / "conversion.json"
    command("convert", "--checkpoint", folder, "--recipe", path, "--out", artifact, "--json", said)
    content = bytearray(artifact.read_bytes())
    for place in range(len(content) // 4, len(content) - 20_000, len(content) // 40):
        content[place : place + 20_000] = b"\xff" * 20_000
    damaged = base / "damaged" / "out.ninfer"
    damaged.parent.mkdir()
    damaged.write_bytes(content)
    return Material(folder, document, path, artifact, json.loads(said.read_text()), damaged)
