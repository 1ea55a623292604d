"""Decoding refuses what is not legal, never overwrites, and says what it cannot do."""

from pathlib import Path

import numpy as np
import pytest

from ninfer_core.decode import decode
from ninfer_core.errors import CannotWrite, Usage
from ninfer_core.formats import BF16, Q4G64_F16S
from ninfer_core.opening import open_path
from tests.build import legal_payload, ninfer_file, write_artifact, write_checkpoint
from tests.vectors.load import HERE


def test_illegal_words_are_not_decoded(tmp_path: Path):
    payload = legal_payload(Q4G64_F16S, (3, 130), np.random.default_rng(1))
    payload[-8:-6] = (0x00, 0xFC)
    path = write_artifact(tmp_path / "a.ninfer", {"w": (Q4G64_F16S, (3, 130), payload)})
    with open_path(path) as opened:
        decoded = decode(opened, "w", tmp_path / "w.npy")
    assert [finding.code for finding in decoded.findings] == ["values.scale_invalid"]
    assert not (tmp_path / "w.npy").exists()


def test_unknown_objects_resources_and_other_kinds(tmp_path: Path):
    with open_path(HERE / "golden/v2/v2_nine_formats.ninfer") as opened:
        with pytest.raises(Usage, match="no object 'nope'"):
            decode(opened, "nope", tmp_path / "w.npy")
        with pytest.raises(Usage, match="resource"):
            decode(opened, "frontend/tokenizer.json", tmp_path / "w.npy")
    write_checkpoint(tmp_path, {"w": ("F32", np.ones(3))})
    with open_path(tmp_path / "model.safetensors") as opened, pytest.raises(Usage):
        decode(opened, "w", tmp_path / "w.npy")
    assert not (tmp_path / "w.npy").exists()


def test_broken_objects_answer_with_their_findings(tmp_path: Path):
    folder = HERE / "golden" / "invalid"
    with open_path(folder / "bytes_one_more.r1.ninfer") as opened:
        decoded = decode(opened, "w/bf16", tmp_path / "w.npy")
        assert [finding.code for finding in decoded.findings] == ["structure.object_size_mismatch"]
        assert not decode(opened, "w/q4", tmp_path / "q.npy").findings
    with open_path(folder / "json_root_null.r1.ninfer") as opened:
        assert decode(opened, "w/bf16", tmp_path / "w.npy").findings


def test_never_overwrites(tmp_path: Path):
    path = write_artifact(tmp_path / "a.ninfer", {"w": (BF16, (), np.array([1, 2], np.uint8))})
    out = tmp_path / "w.npy"
    with open_path(path) as opened:
        decoded = decode(opened, "w", out)
        assert (decoded.shape, np.load(out).shape, np.load(out).dtype) == ((), (), np.uint16)
        with pytest.raises(CannotWrite):
            decode(opened, "w", out)


def test_an_entry_with_a_doubled_name_is_refused_with_its_findings(tmp_path: Path):
    entry = '{"name":"e","name":"e","kind":"resource","encoding":"raw-bytes-v1","offset":0,"bytes":1}'
    root = f'{{"identity":{{"model_id":"m","weights_id":"w"}},"objects":[{entry}]}}'
    path = tmp_path / "a.ninfer"
    path.write_bytes(ninfer_file(2, root.encode(), b"1"))
    with open_path(path) as opened:
        decoded = decode(opened, "e", tmp_path / "e.npy")
    assert not decoded.written
    assert any(finding.severity == "error" for finding in decoded.findings)
