"""Whole files: a verification against the digests it must take anyway, and whole processes, in one run.

`python -m benchmarks.files [--quick] [--json FILE] [--folder DIR]`. The artifact holds every grouped format and is
read out of the page cache. The floor is the digests that every report holds, of the file and of every object, each
taken by hashlib on as many threads. A verification takes two of them in one reading where the processor can, so it is
held against these as well: a verification of the structure alone that is asked for digests takes exactly them.
"""

import argparse
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks.timing import Row, Table, paired, turn_by_turn
from ninfer_core.containers.ninfer import read_artifact
from ninfer_core.convert import convert
from ninfer_core.findings import Findings
from ninfer_core.io import CHUNK_BYTES, ByteSource, DiskFile, DiskFiles, chunks, sha256
from ninfer_core.opening import open_path
from ninfer_core.recipes import Plan, bind, parse_recipe
from ninfer_core.verify import asked, verify
from ninfer_core.verify.against import Against
from ninfer_core.verify.pool import Pool
from ninfer_core.verify.report import Report

ALL = ("structure", "layout", "values", "statistics")
FORMATS = ("Q4G64_F16S", "Q5G64_F16S", "Q6G64_F16S", "W8G32_F16S")
TENSORS = 80  # an artifact of 2 GB
CLI = (sys.executable, "-m", "service.cli")


def checkpoint(folder: Path, tensors: int, shape: tuple[int, int]) -> Plan:
    """A BF16 checkpoint of normally distributed weights, bound to a recipe that goes round the grouped formats."""
    rng = np.random.default_rng(1)
    block = rng.normal(0, 0.02, shape).astype(np.float32)
    words = (block.view(np.uint32) >> 16).astype("<u2")
    size = words.nbytes
    entries = {
        f"w{i}": {"dtype": "BF16", "shape": list(shape), "data_offsets": [i * size, (i + 1) * size]}
        for i in range(tensors)
    }
    head = json.dumps(entries).encode()
    with (folder / "model.safetensors").open("wb") as file:
        file.write(len(head).to_bytes(8, "little") + head)
        for i in range(tensors):
            file.write(np.roll(words, i, axis=0).tobytes())
    rules = [
        {
            "object": f"w/{i}",
            "value": {"op": "tensor", "from": "base", "name": f"w{i}", "shape": list(shape), "dtype": "BF16"},
            "encode": "MAXABS_F16_RECIP_RNE_V1",
            "format": FORMATS[i % len(FORMATS)],
        }
        for i in range(tensors)
    ]
    source = {
        "repository": "synthetic",
        "revision": "1",
        "license": "none",
        "kind": "safetensors-file",
        "file": "model.safetensors",
        "exact_tensor_names": True,
    }
    document = {
        "schema": "ninfer-recipe/1",
        "identity": {"model_id": "benchmark", "weights_id": "mixed"},
        "recipe_id": "benchmark-v1",
        "sources": {"base": source},
        "resources": [],
        "rules": rules,
    }
    (folder / "recipe.json").write_text(json.dumps(document))
    findings = Findings()
    recipe = parse_recipe(json.dumps(document).encode(), findings)
    plan = bind(recipe, {"base": DiskFiles(folder)}, {}, findings) if recipe is not None else None
    if plan is None:
        raise SystemExit("; ".join(finding.message for finding in findings))
    return plan


def runner(
    path: Path, checks: tuple[str, ...], workers: int, plan: Plan | None = None
) -> Callable[[int], Report]:
    """A verification as a function of nothing; anything but `passed` ends the benchmark."""

    def work(_: int) -> Report:
        with open_path(path) as opened:
            against = Against(plan) if plan is not None else None
            report = verify(opened, asked(checks), against, digests=True, workers=workers)
        if report.verdict != "passed":
            raise SystemExit(f"the benchmark's own artifact is {report.verdict}")
        return report

    return work


def digests(path: Path, threads: int) -> Callable[[int], list[str]]:
    """The file's sha256 and that of every object, by hashlib, one reading each."""

    def work(_: int) -> list[str]:
        with open_path(path) as opened:
            artifact = read_artifact(opened.files, opened.entry, Findings())
            if artifact is None:
                raise SystemExit("the benchmark's own artifact has no directory")
            pool, payload = Pool(threads), artifact.payload
            whole = partial(_digest, pool, artifact.sources[0], 0, path.stat().st_size)
            each = (partial(_digest, pool, payload, item.offset, item.bytes) for item in artifact.readable)
            return pool.run([whole, *each])

    return work


def _digest(pool: Pool, source: ByteSource, offset: int, length: int) -> str:
    digest = hashlib.sha256()
    for piece in chunks(source, offset, length, pool.buffers.get("digest", CHUNK_BYTES).data):
        digest.update(piece)
    return digest.hexdigest()


def hash_file(path: Path) -> Callable[[int], str]:
    """The file's sha256 on one thread."""
    return lambda _: sha256(DiskFile(path))


def process(folder: Path, *arguments: object, cold: bool = False) -> Callable[[int], object]:
    """The command as a whole process; if `cold`, each time with an empty kernel cache.

    Bytecode is kept below `folder` as it is beside an installed package: some environments forbid to write it.
    """

    def work(_: int) -> object:
        home = tempfile.mkdtemp(dir=folder) if cold else os.environ.get("XDG_CACHE_HOME", "")
        environment = {**os.environ, "XDG_CACHE_HOME": home, "PYTHONPYCACHEPREFIX": str(folder / "bytecode")}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        return subprocess.run([*CLI, *map(str, arguments)], check=True, capture_output=True, env=environment)

    return work


def files(table: Table, folder: Path, quick: bool) -> None:
    """Ratios over a file of about two gigabytes."""
    repeats = 3 if quick else 5
    plan = checkpoint(folder, 12 if quick else TENSORS, (4096, 8192))
    artifact = folder / "a.ninfer"
    start = time.perf_counter()
    if not convert(plan, artifact).written:
        raise SystemExit("the conversion was refused")
    seconds = time.perf_counter() - start
    source = (folder / "model.safetensors").stat().st_size
    size = artifact.stat().st_size
    digest, converted = paired(hash_file(artifact), _converter(plan, folder), 1, 1)
    speed = f"{source / converted / 1e9:.2f} GB/s"
    table.add(
        Row(
            "convert, 2 threads, over sha256 of its output",
            speed,
            converted / digest,
            None,
            "<=",
            f"first {seconds:.1f} s",
        )
    )
    for threads in (1, 2):
        floor, own, whole = turn_by_turn(
            [
                digests(artifact, threads),
                runner(artifact, ("structure",), threads),
                runner(artifact, ALL, threads),
            ],
            repeats,
        )
        speed = f"{size / whole / 1e9:.2f} GB/s"
        name = f"all checks over their digests by hashlib, {threads} thread(s)"
        table.add(Row(name, speed, whole / floor, 1.10, "<="))
        table.add(Row("the same over the digests as we take them", speed, whole / own))
    for name, checks, against, target in (
        ("without statistics, over hashlib, 2 threads", ALL[:-1], None, 1.05),
        ("parity and all checks, over hashlib, 2 threads", ALL, plan, 1.12),
    ):
        floor, whole = paired(digests(artifact, 2), runner(artifact, checks, 2, against), 1, repeats)
        table.add(Row(name, f"{size / whole / 1e9:.2f} GB/s", whole / floor, target, "<="))


def _converter(plan: Plan, folder: Path) -> Callable[[int], object]:
    def work(_: int) -> object:
        out = folder / "again.ninfer"
        out.unlink(missing_ok=True)
        return convert(plan, out)

    return work


def processes(table: Table, folder: Path, quick: bool) -> None:
    """Whole processes on a small artifact: what a person waits for."""
    small = folder / "small"
    small.mkdir()
    convert(checkpoint(small, 4, (256, 512)), small / "s.ninfer")
    for name, target, work in (
        ("verify, warm kernel cache", 1.0, process(small, "verify", small / "s.ninfer")),
        ("verify, cold compile", 12.0, process(small, "verify", small / "s.ninfer", cold=True)),
        ("inspect", 0.3, process(small, "inspect", small / "s.ninfer")),
        ("formats", 0.3, process(small, "formats")),
        ("version", 0.3, process(small, "version")),
    ):
        seconds, _ = paired(work, lambda _: None, 1, 3 if quick else 7)
        table.add(Row(f"process: {name}", f"{seconds:.2f} s", seconds, target, "<=", "seconds"))


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="a smaller file and fewer repeats")
    parser.add_argument("--json", type=Path, help="write the table as JSON too")
    parser.add_argument(
        "--folder", type=Path, help="where the files go (default: the temporary folder); 10 GB are needed"
    )
    arguments = parser.parse_args()
    table = Table("files and processes")
    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
        files(table, Path(folder), arguments.quick)
        processes(table, Path(folder), arguments.quick)
    if arguments.json:
        table.write(arguments.json)


if __name__ == "__main__":
    main()
