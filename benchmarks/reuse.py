"""A second verification of the same artifact, by the service, over the first: how long its job takes, and what is read.

`python -m benchmarks.reuse [--gigabytes N] [--folder DIR]`. A synthetic checkpoint is converted by the service, then
verified twice with every check, against its target, its recipe and the checkpoint. The bytes are those that the worker
asks the system for (`rchar` of `/proc/PID/io`, its database included). Exits 1 when the second takes over 5 % of the first.
"""

import argparse
import json
import re
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.service import Service, serving
from ninfer_core.verify import CHECKS
from service.client import Client, Document

LIMIT = 0.05
ENCODE = "MAXABS_F16_RECIP_RNE_V1"
ROWS, COLUMNS = 4096, 5120
IDS = 4096
FORMATS = ("W8G32_F16S", "Q6G64_F16S", "Q4G64_F16S")
LAYOUT = "row-split-k128-v1"


@dataclass(frozen=True)
class Subject:
    """A checkpoint in a folder, and the documents that say what is made of it."""

    folder: Path
    recipe: dict[str, Any]
    target: dict[str, Any]


@dataclass(frozen=True)
class Measured:
    """One job: seconds from its creation and from its start to its end, and bytes that the worker read meanwhile."""

    job: Document
    created: float
    started: float
    read: int


def subject(folder: Path, size: int) -> Subject:
    """BF16 matrices for an artifact of about `size` bytes, row numbers that a tokenizer speaks of, and its resource."""
    folder.mkdir()
    each = ROWS * COLUMNS * 0.79  # bytes of a weight, on average of the formats
    names = [f"layer{index}" for index in range(max(3, round(size / each)))]
    tokenizer = {"added_tokens_decoder": {str(place): {"special": True} for place in range(8)}}
    (folder / "tokenizer_config.json").write_text(json.dumps(tokenizer))
    _write(folder / "model.safetensors", names)
    claims = {"repository": "synthetic", "revision": "1", "license": "none"}
    source = {**claims, "kind": "safetensors-file", "file": "model.safetensors", "exact_tensor_names": True}
    formats = [FORMATS[index % len(FORMATS)] for index in range(len(names))]
    rules = [
        {
            "object": f"text/{name}",
            "value": _tensor(name, [ROWS, COLUMNS], "BF16"),
            "encode": ENCODE,
            "format": fmt,
        }
        for name, fmt in zip(names, formats, strict=True)
    ]
    rules.append(
        {"object": "text/ids", "value": _tensor("ids", [IDS], "I32"), "encode": "copy_words", "format": "I32"}
    )
    resource = "frontend/tokenizer_config.json"
    identity = {"model_id": "benchmark", "weights_id": "reuse"}
    recipe = {
        "schema": "ninfer-recipe/1",
        "identity": identity,
        "recipe_id": "benchmark-reuse-v1",
        "sources": {"base": source},
        "resources": [
            {"object": resource, "from": "base", "file": "tokenizer_config.json", "encode": "copy_bytes"}
        ],
        "rules": rules,
        "restrictions": [
            {"scope": {"encode": ENCODE}, "rule": "canonical_group_shape", "basis": "derived"},
            {"scope": {"object": "text/ids"}, "rule": "unique", "basis": "contract"},
            {
                "scope": {"object": "text/ids"},
                "rule": "contains_special_ids",
                "from": resource,
                "basis": "derived",
            },
        ],
    }
    target = {
        "schema": "ninfer-target/1",
        "identity": identity,
        "layouts": {"I32": "contiguous-le-v1", **dict.fromkeys(FORMATS, LAYOUT)},
        "objects": [
            {"resource": resource, "encoding": "raw-bytes-v1"},
            *(
                {"tensor": f"text/{name}", "shape": [ROWS, COLUMNS], "format": fmt}
                for name, fmt in zip(names, formats, strict=True)
            ),
            {"tensor": "text/ids", "shape": [IDS], "format": "I32"},
        ],
    }
    return Subject(folder, recipe, target)


def _tensor(name: str, shape: Sequence[int], dtype: str) -> dict[str, Any]:
    return {"op": "tensor", "from": "base", "name": name, "shape": list(shape), "dtype": dtype}


def _write(path: Path, names: Sequence[str]) -> None:
    """Matrices of one safetensors file: normal numbers, each matrix from another place of one pool."""
    weights = ROWS * COLUMNS
    entries: dict[str, Any] = {}
    end = 0
    for name, dtype, shape, size in (
        *((name, "BF16", [ROWS, COLUMNS], 2 * weights) for name in names),
        ("ids", "I32", [IDS], 4 * IDS),
    ):
        entries[name] = {"dtype": dtype, "shape": shape, "data_offsets": [end, end + size]}
        end += size
    head = json.dumps(entries).encode()
    normal = np.random.default_rng(1).normal(0, 0.02, weights + 4096 * len(names)).astype("<f4")
    pool = (normal.view("<u4") >> 16).astype("<u2")
    with path.open("wb") as file:
        file.write(len(head).to_bytes(8, "little") + head)
        for number in range(len(names)):
            file.write(pool[4096 * number :][:weights].tobytes())
        file.write(np.arange(IDS, dtype="<i4").tobytes())


def measured(service: Service, client: Client, request: Document) -> Measured:
    """Do a job. Exits where it does not pass."""
    before = _read(service)
    job = client.wait(client.start(request)["id"])
    read = _read(service) - before
    if job["state"] != "passed":
        sys.exit(f"the job ended as {job['state']}: {job['error']}")
    moments = [datetime.fromisoformat(job[name]) for name in ("created_at", "started_at", "finished_at")]
    created, started, finished = moments
    return Measured(job, (finished - created).total_seconds(), (finished - started).total_seconds(), read)


def _read(service: Service) -> int:
    """Bytes that the workers have asked for until now."""
    return sum(
        int(found[1])
        for pid in service.children()
        if (found := re.search(r"rchar: (\d+)", Path(f"/proc/{pid}/io").read_text()))
    )


def rows(service: Service, client: Client, made: Subject) -> Iterator[tuple[str, Measured]]:
    """The conversion, then both verifications; each is checked to be what it is taken for."""
    target = client.request("POST", "/v1/targets", json=made.target)["digest"]
    checkpoint = client.push_checkpoint(made.folder)["id"]
    shared = {"recipe": made.recipe, "checkpoints": {"base": checkpoint}, "target": target}
    conversion = measured(service, client, {"type": "convert", **shared})
    yield "convert", conversion
    verify = {
        "type": "verify",
        "artifact": conversion.job["artifact"],
        "checks": list(CHECKS),
        "canonical": True,
        **shared,
    }
    for name, extent in (("verify", "full"), ("verify again", "reused")):
        done = measured(service, client, verify)
        report = client.report(done.job["run"])
        held = report["coverage"]["bytes"]
        if held[extent] != held["total"] or any(check["outcome"] != "passed" for check in report["checks"]):
            sys.exit(f"{name} was to be {extent}: {report['coverage']} {report['checks']}")
        yield name, done


def main() -> None:
    """Measure; exit 1 when the limit is not met."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--gigabytes", type=float, default=2, help="size of the artifact")
    parser.add_argument("--folder", type=Path, help="where the files go (default: the temporary folder)")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=arguments.folder) as name:
        folder = Path(name)
        made = subject(folder / "checkpoint", int(arguments.gigabytes * 1e9))
        with serving(folder / "data") as service, Client(service.address, service.token) as client:
            found = {}
            for what, done in rows(service, client, made):
                found[what] = done
                moments = " ".join(
                    f"{done.job[f'{word}_at'][11:23]}" for word in ("created", "started", "finished")
                )
                print(
                    f"{what:<14}{done.created:9.3f} s   {done.started:9.3f} s from its start   "
                    f"{done.read:>15,} bytes read   {moments}",
                    flush=True,
                )
    first, second = found["verify"], found["verify again"]
    ratio = max(second.created / first.created, second.started / first.started)
    fine = ratio < LIMIT
    print(f"again / first  {100 * ratio:.2f} % (< {100 * LIMIT:.0f} %) {'ok' if fine else 'TOO SLOW'}")
    sys.exit(0 if fine else 1)


if __name__ == "__main__":
    main()
