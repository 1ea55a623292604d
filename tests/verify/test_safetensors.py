"""Verification of safetensors files: structure and digests, with odd words as advisories."""

import hashlib
import json
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from ninfer_core.opening import open_path
from ninfer_core.verify import asked, verify
from ninfer_core.verify.safetensors import _BYTES
from tests.build import codes, run, write_checkpoint

CHECKS = ("structure", "statistics")


def write(folder: Path, entries: dict[str, tuple[str, list[int], bytes]]) -> Path:
    """A safetensors file from raw bytes."""
    head, data = {}, b""
    for name, (dtype, shape, raw) in entries.items():
        head[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(head).encode()
    (folder / "model.safetensors").write_bytes(len(text).to_bytes(8, "little") + text + data)
    return folder / "model.safetensors"


def test_words_that_are_not_finite_are_advisories(tmp_path: Path):
    words = np.array([0, 0x7F800000, 0xFF800000, 0x7FC00000, 0x3F800000], "<u4")
    path = (
        write_checkpoint(
            tmp_path, {"w": ("F32", words), "z": ("BF16", np.array([0, 0x8000])), "i": ("I64", np.zeros(2))}
        )
        / "model.safetensors"
    )
    report = run(path, checks=CHECKS)
    assert report.verdict == "passed"
    assert codes(report) == {"statistics.not_finite", "statistics.all_zero"}
    odd = next(finding for finding in report.findings if finding.code == "statistics.not_finite")
    assert (odd.object, odd.count, odd.where["nan"], odd.where["infinite"]) == ("w", 3, 1, 2)
    assert report.objects[0].sha256 == hashlib.sha256(words.tobytes()).hexdigest()
    assert report.digest == "sha256:" + hashlib.sha256(path.read_bytes()).hexdigest()


ORACLES = {
    "F8_E4M3": ml_dtypes.float8_e4m3fn,
    "F8_E5M2": ml_dtypes.float8_e5m2,
    "F8_E4M3FNUZ": ml_dtypes.float8_e4m3fnuz,
    "F8_E5M2FNUZ": ml_dtypes.float8_e5m2fnuz,
    "F8_E8M0": ml_dtypes.float8_e8m0fnu,
}


@pytest.mark.parametrize("dtype", ORACLES)
def test_every_byte_of_the_8_bit_floats(dtype: str, tmp_path: Path):
    values = np.arange(256, dtype=np.uint8).view(ORACLES[dtype]).astype(np.float32)
    nans, infinities, zeros, negative = _BYTES[dtype]
    assert set(nans) == set(np.flatnonzero(np.isnan(values)).tolist())
    assert set(infinities) == set(np.flatnonzero(np.isinf(values)).tolist())
    assert {*zeros, *negative} == set(np.flatnonzero(values == 0).tolist())
    report = run(write(tmp_path, {"w": (dtype, [256], bytes(range(256)))}), checks=CHECKS)
    metrics = report.objects[0].metrics
    assert (metrics["nan"], metrics["infinite"]) == (len(nans), len(infinities))
    assert codes(report) == {"statistics.not_finite"}


def test_empty_tensors_and_scalars_pass(tmp_path: Path):
    report = run(write(tmp_path, {"e": ("F32", [0, 3], b""), "s": ("F32", [], b"\1\0\0\0")}), checks=CHECKS)
    assert report.verdict == "passed"
    assert not codes(report)
    assert report.objects[0].sha256 == hashlib.sha256().hexdigest()


def test_checks_that_no_safetensors_file_has_leave_it_incomplete(tmp_path: Path):
    with open_path(write(tmp_path, {"s": ("F32", [], b"\1\0\0\0")})) as opened:
        report = verify(opened, asked(("values",)))
    assert report.verdict == "incomplete"
    assert next(check for check in report.checks if check.name == "values").reason


def test_a_sharded_set_is_one_artifact(tmp_path: Path):
    write(tmp_path, {"a": ("U8", [2], b"ab")}).rename(tmp_path / "m-1.safetensors")
    write(tmp_path, {"b": ("U8", [2], b"cd")}).rename(tmp_path / "m-2.safetensors")
    index = {"weight_map": {"a": "m-1.safetensors", "b": "m-2.safetensors"}}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index))
    report = run(tmp_path, checks=CHECKS)
    assert report.verdict == "passed"
    assert [file.name for file in report.files] == [
        "model.safetensors.index.json",
        "m-1.safetensors",
        "m-2.safetensors",
    ]
    assert [item.name for item in report.objects] == ["a", "b"]
    (tmp_path / "m-2.safetensors").unlink()
    report = run(tmp_path, checks=CHECKS)
    assert report.verdict == "failed"
    assert "structure.shard_missing" in codes(report)
