"""Golden artifacts of all three revisions: verified, and decoded to the words of independent implementations."""

import json
from pathlib import Path

import numpy as np
import pytest

from ninfer_core.decode import decode
from ninfer_core.opening import open_path
from tests.build import codes, run
from tests.vectors.load import HERE

SPECS = sorted((HERE / "golden").glob("v*/*.expected.json"))


@pytest.mark.parametrize("spec_file", SPECS, ids=lambda path: path.name.split(".")[0])
def test_verifies_with_the_stated_digests(spec_file: Path):
    spec = json.loads(spec_file.read_text())
    report = run(spec_file.parent / spec["file"])
    assert report.verdict == "passed"
    assert codes(report) == set()
    stated = {
        item["name"]: (item.get("payload_sha256", item.get("sha256")), item["offset"], item["bytes"])
        for item in spec["objects"]
    }
    assert {item.name: (item.sha256, item.offset, item.bytes) for item in report.objects} == stated


@pytest.mark.parametrize("spec_file", SPECS, ids=lambda path: path.name.split(".")[0])
def test_decodes_to_the_stated_words(spec_file: Path, tmp_path: Path):
    spec = json.loads(spec_file.read_text())
    arrays = np.load(spec_file.with_suffix(".npz"))
    tensors = [item for item in spec["objects"] if item["kind"] == "tensor"]
    assert tensors
    for ordinal, item in enumerate(tensors):
        out = tmp_path / f"{ordinal}.npy"
        with open_path(spec_file.parent / spec["file"]) as opened:
            assert decode(opened, item["name"], out).findings == ()
        values = np.load(out, allow_pickle=False)
        direct = item["format"] in ("BF16", "FP32", "I32")
        expected = arrays[item["arrays"]["words" if direct else "float32_bits"]]
        assert list(values.shape) == item["shape"]
        assert values.dtype.name == {"BF16": "uint16", "I32": "int32"}.get(item["format"], "float32")
        assert np.array_equal(
            np.atleast_1d(values).view(expected.dtype).ravel(), np.atleast_1d(expected).ravel()
        ), item["name"]
