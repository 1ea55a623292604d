"""Checkpoints: words by range, sets of shards against their index, and which checkpoint a folder means."""

import json
import threading
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ninfer_core.errors import CannotRead, CutShort, Usage
from ninfer_core.findings import Findings
from ninfer_core.io import DiskFiles
from ninfer_core.sources import Checkpoint, CheckpointFile, Kind, Located, detect, open_checkpoint
from tests.sources.build import MemoryFiles, blob, entry, file, index

INDEX = "model.safetensors.index.json"
A = file({"a": ("U8", [1], b"a")})
B = file({"b": ("U8", [1], b"b")})


def opened(contents: dict[str, bytes], name: str = INDEX) -> tuple[list[str], Checkpoint | None, Findings]:
    findings = Findings()
    kind = Kind.INDEX if name.endswith(".json") else Kind.FILE
    checkpoint = open_checkpoint(MemoryFiles.of(contents), kind, name, findings)
    assert (checkpoint is None) == bool(findings.errors)
    return [finding.code.removeprefix("structure.") for finding in findings], checkpoint, findings


def test_a_set_that_agrees() -> None:
    contents = {INDEX: index({"a": "1.safetensors", "b": "2.safetensors"}, total_size=2)}
    codes, checkpoint, _ = opened({**contents, "1.safetensors": A, "2.safetensors": B})
    assert codes == []
    assert checkpoint is not None
    assert list(checkpoint.tensors) == ["a", "b"]
    assert [file.name for file in checkpoint.files] == [INDEX, "1.safetensors", "2.safetensors"]
    assert checkpoint.files[1] == CheckpointFile("1.safetensors", len(A))
    assert checkpoint.read_words(checkpoint.tensors["b"], 0, 1).tolist() == [ord("b")]
    assert checkpoint.changed() is None


@pytest.mark.parametrize(
    ("contents", "codes"),
    [
        ({INDEX: b"[]"}, ["json_root"]),
        ({INDEX: b"{}"}, ["index_weight_map"]),
        ({INDEX: b'{"weight_map":{}}'}, ["index_weight_map"]),
        ({INDEX: b'{"weight_map":[]}'}, ["index_weight_map"]),
        ({INDEX: b'{"weight_map":{"a":1}}'}, ["index_weight_map"]),
        ({INDEX: b'{"weight_map":{"a":"x"},"weight_map":{"a":"x"}}', "x": A}, ["json_member_duplicate"]),
        ({INDEX: b'{"weight_map":{"a":"x","a":"x"}}', "x": A}, ["json_member_duplicate"]),
        ({INDEX: b'{"weight_map":{"a":"' + b"[" * 9}, ["json_syntax"]),
        ({INDEX: b"[" * 20 + b"]" * 20}, ["json_depth"]),
        ({INDEX: b"version https://git-lfs.github.com/spec/v1\n"}, ["pointer_stub"]),
        ({INDEX: index({"a": "../x"})}, ["index_file_name"]),
        ({INDEX: index({"a": "/etc/passwd"})}, ["index_file_name"]),
        ({INDEX: index({"a": "x\\y"})}, ["index_file_name"]),
        ({INDEX: index({"a": ""})}, ["index_file_name"]),
        ({INDEX: index({"a": "x", "b": "y"})}, ["shard_missing", "shard_missing"]),
        ({INDEX: index({"a": "x", "c": "x"}), "x": A}, ["shard_tensor_missing"]),
        ({INDEX: index({"b": "x"}), "x": file({"a": ("U8", [1], b"a"), "b": ("U8", [1], b"b")})}, ["index_tensor_unlisted"]),
        ({INDEX: index({"a": "y", "b": "y"}), "y": B, "x": A}, ["shard_tensor_missing"]),
        (
            {INDEX: index({"a": "x", "b": "y"}), "x": A, "y": file({"a": ("U8", [1], b"a"), "b": ("U8", [1], b"b")})},
            ["tensor_in_two_shards"],
        ),
        ({INDEX: index({"a": "x", "b": "y"}), "x": A, "y": b""}, ["file_too_short"]),
        ({INDEX: index({"a": "x"}, total_size=2), "x": A}, ["index_total_size"]),
        ({INDEX: b'{"metadata":{"total_size":1.0},"weight_map":{"a":"x"}}', "x": A}, ["index_total_size"]),
        ({INDEX: b'{"metadata":1,"weight_map":{"a":"x"}}', "x": A}, ["index_total_size"]),
        ({INDEX: b'{"weight_map":{"a":"x"},"more":1}', "x": A}, ["index_member_unexpected"]),
        ({INDEX: index({"a": "x"}), "x": A, "z.safetensors": B}, ["shard_unlisted"]),
        ({}, ["source.file_missing"]),
    ],
)  # fmt: skip
def test_sets_that_do_not(contents: dict[str, bytes], codes: list[str]) -> None:
    assert opened(contents)[0] == codes


def test_missing_shards_are_named_with_their_tensors() -> None:
    _, _, findings = opened({INDEX: index({"a": "x", "b": "y", "c": "y"}), "x": A})
    (finding,) = findings
    assert finding.where["files"] == ["y"]
    assert finding.where["tensors"] == ["b", "c"]
    assert finding.count == 2


@pytest.mark.parametrize(
    ("names", "located"),
    [
        (["model.safetensors", "config.json"], Located(Kind.FILE, "model.safetensors")),
        (["other.safetensors"], Located(Kind.FILE, "other.safetensors")),
        ([INDEX, "model-00001-of-00001.safetensors"], Located(Kind.INDEX, INDEX)),
        ([INDEX], Located(Kind.INDEX, INDEX)),
        ([], None),
        (["config.json"], None),
        (["a.safetensors", "b.safetensors"], None),
        ([INDEX, "model.safetensors"], None),
        ([INDEX, "b.safetensors.index.json"], None),
        ([f"{i:02}.safetensors" for i in range(20)], None),
    ],
)
def test_detect(names: list[str], located: Located | None) -> None:
    files = MemoryFiles.of(dict.fromkeys(names, b""))
    if located is not None:
        assert detect(files) == located
        return
    with pytest.raises(Usage):
        detect(files)


WORDS = np.arange(24, dtype="<u4").reshape(2, 3, 4) * 0x01020304


@settings(deadline=None, max_examples=50)
@given(st.integers(0, 24), st.integers(0, 24))
def test_words_of_a_range(one: int, two: int) -> None:
    begin, end = sorted((one, two))
    content = file({"pad": ("U8", [3], b"xyz"), "t": ("F32", [2, 3, 4], WORDS.tobytes())})
    checkpoint = opened({"m.safetensors": content}, "m.safetensors")[1]
    assert checkpoint is not None
    tensor = checkpoint.tensors["t"]
    expected = WORDS.reshape(-1)[begin:end]
    assert np.array_equal(checkpoint.read_words(tensor, begin, end), expected)
    out = np.zeros(end - begin, "<u4")
    assert checkpoint.read_words(tensor, begin, end, out) is out
    assert np.array_equal(out, expected)


def test_questions_without_an_answer() -> None:
    contents = {"m.safetensors": file({"t": ("F32", [2], b"12345678"), "f": ("F4", [2], b"x")})}
    checkpoint = opened(contents, "m.safetensors")[1]
    assert checkpoint is not None
    tensor = checkpoint.tensors["t"]
    for begin, end in [(0, 3), (-1, 1), (2, 1)]:
        with pytest.raises(Usage):
            checkpoint.read_words(tensor, begin, end)
    for wrong in [np.zeros(3, "<u4"), np.zeros(2, "<u2"), np.zeros(4, "<u4")[::2]]:
        with pytest.raises(Usage):
            checkpoint.read_words(tensor, 0, 2, wrong)
    with pytest.raises(Usage):
        checkpoint.read_words(checkpoint.tensors["f"], 0, 1)
    with pytest.raises(Usage):
        checkpoint.source("other")


def test_a_file_that_shrinks_while_it_is_open(tmp_path: Path) -> None:
    path = tmp_path / "m.safetensors"
    path.write_bytes(file({"t": ("U8", [8], b"12345678")}))
    with DiskFiles(tmp_path) as files:
        checkpoint = open_checkpoint(files, *detect(files), Findings())
        assert checkpoint is not None
        path.write_bytes(path.read_bytes()[:-4])
        assert checkpoint.changed() is not None
        with pytest.raises(CutShort):
            checkpoint.read_words(checkpoint.tensors["t"], 0, 8)


def test_a_shard_that_is_a_folder_is_not_a_file(tmp_path: Path) -> None:
    (tmp_path / INDEX).write_bytes(index({"a": "x"}))
    (tmp_path / "x").mkdir()
    findings = Findings()
    with DiskFiles(tmp_path) as files:
        assert open_checkpoint(files, Kind.INDEX, INDEX, findings) is None
    assert [finding.code for finding in findings] == ["structure.shard_missing"]
    with pytest.raises(CannotRead), DiskFiles(tmp_path, ["x"]) as files:
        open_checkpoint(files, Kind.FILE, "x", Findings())


def test_threads_read_one_checkpoint(tmp_path: Path) -> None:
    values = np.arange(100_000, dtype="<u2")
    (tmp_path / "m.safetensors").write_bytes(file({"t": ("BF16", [100_000], values.tobytes())}))
    wrong: list[int] = []
    with DiskFiles(tmp_path) as files:
        checkpoint = open_checkpoint(files, *detect(files), Findings())
        assert checkpoint is not None
        tensor = checkpoint.tensors["t"]

        def work(first: int) -> None:
            for begin in range(first, 100_000, 4000):
                if not np.array_equal(
                    checkpoint.read_words(tensor, begin, begin + 1000), values[begin : begin + 1000]
                ):
                    wrong.append(begin)

        threads = [threading.Thread(target=work, args=(first,)) for first in (0, 1000, 2000, 3000)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert not wrong


def test_memory_follows_the_file() -> None:
    header = json.dumps({"a": entry("F64", [2**40], 0, 2**43)}).encode()
    codes, _, _ = opened({"m.safetensors": blob(header)}, "m.safetensors")
    assert codes == ["tensor_range_past_end"]
