"""Shard by shard, each on its own and every outcome as JSON, a verification ends in the report of one process."""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ninfer_core.convert import convert
from ninfer_core.formats import DIRECT, FORMATS, GROUPED, GroupedFormat
from ninfer_core.io import CHUNK_BYTES
from ninfer_core.layouts import canonical_layout
from ninfer_core.recipes import Plan
from tests.build import EVERYTHING, legal_payload, plan, run, write_artifact, write_checkpoint
from tests.mixed import mixed_checkpoint
from tests.shards import run_by_shards, small_blocks
from tests.vectors.load import HERE

SIZES = (1, 700, 1 << 40)  # a task each, a few tasks each, all tasks in one
SHAPES = {"NVFP4": (256, 192), "FP8_E4M3FN_ROW_BF16S": (5, 300)}
GOLDEN = sorted(path for path in (HERE / "golden").rglob("*") if path.suffix == ".ninfer")


def assert_same(
    path: Path, against: Plan | None = None, checks: tuple[str, ...] = EVERYTHING
) -> dict[str, Any]:
    """The report in one process, which is that of shards of every size."""
    report = run(path, against, checks).as_json()
    for shard_bytes in SIZES:
        assert run_by_shards(path, against, checks, shard_bytes).as_json() == report, shard_bytes
    return report


def shape_of(name: str) -> tuple[int, int]:
    return SHAPES.get(name, (4, 330))


@pytest.mark.parametrize("weights", [None, 128, 512], ids=["whole", "runs of columns", "rows"])
@pytest.mark.parametrize("fmt", FORMATS, ids=lambda fmt: fmt.name)
def test_every_format(fmt, weights: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    if weights is not None:
        small_blocks(monkeypatch, weights)
    shape = shape_of(fmt.name)
    payload = legal_payload(fmt, shape, np.random.default_rng(1))
    report = assert_same(write_artifact(tmp_path / "a.ninfer", {"w": (fmt, shape, payload)}))
    assert report["verdict"] == "passed"
    assert report["objects"][0]["metrics"]


@pytest.mark.parametrize("weights", [None, 128], ids=["whole", "blocks"])
@pytest.mark.parametrize("fmt", [fmt for fmt in FORMATS if fmt not in DIRECT], ids=lambda fmt: fmt.name)
def test_faults_of_every_check(fmt, weights: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Every word of every plane, and every gap, is broken in one of the tensors."""
    if weights is not None:
        small_blocks(monkeypatch, weights)
    shape = shape_of(fmt.name)
    tensors = {"zero": (fmt, shape, np.zeros_like(legal_payload(fmt, shape, np.random.default_rng(2))))}
    for plane in canonical_layout(fmt).planes(fmt, shape):
        for value in (0x00, 0x80, 0xFF):
            payload = legal_payload(fmt, shape, np.random.default_rng(2))
            payload[plane.span.offset : plane.span.offset + plane.span.length] = value
            tensors[f"{plane.name}/{value}"] = (fmt, shape, payload)
    gapped = legal_payload(fmt, shape, np.random.default_rng(2))
    end = canonical_layout(fmt).planes(fmt, shape)[0].span
    gapped[end.offset + end.length :][:3] = 0xFF  # a gap where there is one
    tensors["gap"] = (fmt, shape, gapped)
    report = assert_same(write_artifact(tmp_path / "a.ninfer", tensors))
    found = {finding["code"] for finding in report["findings"]}
    assert "statistics.all_zero" in found
    assert any(code.startswith("values.") for code in found)
    if isinstance(fmt, GroupedFormat):
        assert {"layout.padding_nonzero", "values.zero_scale_nonzero_code"} <= found


def test_gaps_and_unreferenced_bytes(tmp_path: Path):
    fmt, shape = GROUPED[0], (1, 130)
    payload = legal_payload(fmt, shape, np.random.default_rng(3))
    first, second = canonical_layout(fmt).planes(fmt, shape)[:2]
    assert first.span.length < second.span.offset  # there is a gap
    payload[first.span.length] = 7
    path = write_artifact(tmp_path / "a.ninfer", {"a": (fmt, shape, payload), "b": (fmt, shape, payload)})
    content = bytearray(path.read_bytes())
    content[4095] = 9
    path.write_bytes(bytes(content) + b"\1\2\3")
    report = assert_same(path)
    assert {"layout.gap_nonzero", "structure.unreferenced_bytes"} <= {f["code"] for f in report["findings"]}


@pytest.mark.parametrize("weights", [None, 4096], ids=["whole", "blocks"])
def test_parity(weights: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """With a source that agrees, with one that differs in every object, and with one that is refused."""
    folder, document = mixed_checkpoint(tmp_path)
    convert(plan(folder, document), tmp_path / "a.ninfer")
    parts = tmp_path / "parts"
    parts.mkdir()
    convert(plan(folder, document), parts / "a.ninfer", revision=3, max_file_bytes=80_000)
    if weights is not None:
        small_blocks(monkeypatch, weights)
    bound = plan(folder, document)
    for path in (tmp_path / "a.ninfer", parts):
        report = assert_same(path, bound)
        assert report["verdict"] == "passed"
        assert all(item["evidence"] for item in report["objects"])
    (parts / "a.ninfer.part-0002").unlink()
    assert assert_same(parts, bound)["verdict"] == "failed"
    content = bytearray((folder / "model.safetensors").read_bytes())
    head = int.from_bytes(content[:8], "little") + 8
    content[head::5] = bytes(byte ^ 1 for byte in content[head::5])
    (folder / "model.safetensors").write_bytes(content)
    (folder / "tokenizer.json").write_bytes(b'{"a":2}')
    report = assert_same(tmp_path / "a.ninfer", plan(folder, document))
    found = {finding["code"] for finding in report["findings"]}
    mismatches = {f"parity.{what}_mismatch" for what in ("code", "scale", "word", "resource")}
    assert mismatches <= found
    content[head:] = b"\xff" * (len(content) - head)
    (folder / "model.safetensors").write_bytes(content)
    report = assert_same(tmp_path / "a.ninfer", plan(folder, document))
    assert {"parity.source_refused", "parity.cast_refused"} <= {f["code"] for f in report["findings"]}
    undefined = [
        item["metrics"]["error"]["undefined"] for item in report["objects"] if "error" in item["metrics"]
    ]
    assert any("not all finite" in str(reasons.get("rmse")) for reasons in undefined)  # sums that are NaN


def test_parity_with_a_source_that_is_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    small_blocks(monkeypatch, 4096)
    folder, document = mixed_checkpoint(tmp_path)
    bound = plan(folder, document)
    convert(bound, tmp_path / "a.ninfer")
    os.truncate(folder / "model.safetensors", 4000)
    report = assert_same(tmp_path / "a.ninfer", bound)
    assert {finding["about"] for finding in report["findings"]} == {"source"}


def test_objects_that_recipe_and_artifact_do_not_share(tmp_path: Path):
    folder, document = mixed_checkpoint(tmp_path)
    convert(plan(folder, document), tmp_path / "a.ninfer")
    document["rules"] = document["rules"][1:]
    document["rules"][0]["object"] = "w/other"
    report = assert_same(tmp_path / "a.ninfer", plan(folder, document))
    assert {"parity.object_missing", "parity.object_without_rule"} <= {f["code"] for f in report["findings"]}


def test_a_large_tensor_as_it_comes(tmp_path: Path):
    """Beyond what is read in one piece, with nothing made small."""
    fmt, shape = GROUPED[0], (2, CHUNK_BYTES + 70)
    words = legal_payload(fmt, shape, np.random.default_rng(4))
    path = write_artifact(tmp_path / "a.ninfer", {"w": (fmt, shape, words)})
    report = run(path).as_json()
    assert run_by_shards(path, shard_bytes=4 << 20).as_json() == report
    assert report["verdict"] == "passed"


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.relative_to(HERE / "golden").as_posix())
def test_golden_files(path: Path):
    assert_same(path)


@pytest.mark.parametrize("path", sorted((HERE / "cases").rglob("*.ninfer")), ids=lambda path: path.name)
def test_field_cases(path: Path):
    assert_same(path)


@pytest.mark.parametrize("path", sorted((HERE / "cases").rglob("*.safetensors")), ids=lambda path: path.name)
def test_safetensors_field_cases(path: Path):
    assert_same(path, checks=("structure", "values", "statistics"))


def cut_on_disk(path: Path) -> None:
    """Half of the file is gone."""
    os.truncate(path, path.stat().st_size // 2)


def foreign(path: Path) -> None:
    """Another magic."""
    path.write_bytes(b"GGUF" + path.read_bytes()[4:])


@pytest.mark.parametrize("damage", [cut_on_disk, foreign, lambda path: os.truncate(path, 0)])
@pytest.mark.parametrize("weights", [None, 4096], ids=["whole", "blocks"])
def test_damaged_files(
    damage: Callable[[Path], None], weights: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    if weights is not None:
        small_blocks(monkeypatch, weights)
    folder, document = mixed_checkpoint(tmp_path)
    bound = plan(folder, document)
    convert(bound, tmp_path / "a.ninfer")
    shutil.copy(folder / "model.safetensors", folder / "b.safetensors")
    damage(tmp_path / "a.ninfer")
    damage(folder / "b.safetensors")
    assert assert_same(tmp_path / "a.ninfer", bound)["verdict"] == "failed"
    assert assert_same(folder / "b.safetensors")["verdict"] == "failed"


def test_safetensors_single_and_sharded(tmp_path: Path):
    words = np.random.default_rng(5).integers(0, 1 << 32, (40, 9), np.uint32)
    tensors = {
        "f32": ("F32", words),
        "f64": ("F64", words),
        "bf16": ("BF16", words),
        "i64": ("I64", words),
        "u8": ("U8", words),
        "zero": ("F16", np.zeros(3)),
        "empty": ("F32", np.zeros((0, 2))),
    }
    write_checkpoint(tmp_path, tensors)
    report = assert_same(tmp_path / "model.safetensors")
    assert {"statistics.not_finite", "statistics.all_zero"} == {f["code"] for f in report["findings"]}
    parts = tmp_path / "parts"
    parts.mkdir()
    write_checkpoint(parts, dict(list(tensors.items())[:3]), "m-1.safetensors")
    write_checkpoint(parts, dict(list(tensors.items())[3:]), "m-2.safetensors")
    index = {"weight_map": {name: f"m-{1 + (number > 2)}.safetensors" for number, name in enumerate(tensors)}}
    (parts / "model.safetensors.index.json").write_text(json.dumps(index))
    sharded = assert_same(parts, checks=("statistics",))
    assert sharded["verdict"] == "passed"
    assert len(sharded["artifact"]["files"]) == 3
    (parts / "m-2.safetensors").unlink()
    assert assert_same(parts)["verdict"] == "failed"
    (parts / "model.safetensors.index.json").write_text("{")
    broken = assert_same(parts / "model.safetensors.index.json")
    assert (broken["verdict"], broken["artifact"]["digest"]) == ("failed", None)


def test_more_broken_entries_than_are_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("ninfer_core.findings.MAX_PER_CODE", 2)
    fmt, shape = GROUPED[0], (1, 130)
    payload = np.full_like(legal_payload(fmt, shape, np.random.default_rng(6)), 0xFF)
    path = write_artifact(tmp_path / "a.ninfer", {f"w{number}": (fmt, shape, payload) for number in range(4)})
    report = assert_same(path)
    assert report["unlisted_findings"]
    assert [item["outcome"] for item in report["objects"]] == ["failed"] * 4
