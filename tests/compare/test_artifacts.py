"""Whole artifacts: matching by name, what moved, what cannot be read, revisions, shards."""

import json
from pathlib import Path

import numpy as np
import pytest

from ninfer_core.compare.comparison import RANKS, STATUSES, ranks
from ninfer_core.containers.ninfer import read_artifact
from ninfer_core.convert import convert
from ninfer_core.errors import Usage
from ninfer_core.findings import Findings
from ninfer_core.formats import BF16, FP32, Q4G64_F16S, W8G32_F16S
from ninfer_core.opening import open_path
from tests.build import ninfer_file, plan, write_artifact, write_checkpoint
from tests.build import run as verified
from tests.compare.build import by_name, finite_payload, in_blocks, pair, run, run_by_shards
from tests.mixed import mixed_checkpoint


def floats(seed: int, size: int = 8) -> tuple[object, tuple[int, ...], np.ndarray]:
    return FP32, (size,), finite_payload(FP32, (size,), np.random.default_rng(seed))


def test_objects_are_matched_by_name(tmp_path: Path):
    same, other, moved, gone, new = (floats(seed) for seed in range(5))
    a = {"same": same, "changed": same, "old/name": moved, "gone": gone, "shape": same}
    b = {"changed": other, "new": new, "new/name": moved, "same": same, "shape": floats(0, 4)}
    found = run(*pair(tmp_path, a, b))
    assert [item.name for item in found.objects] == [
        "same",
        "changed",
        "old/name",
        "gone",
        "shape",
        "new",
        "new/name",
    ]
    assert [item.ordinal for item in found.objects] == list(range(7))
    items = by_name(found)
    assert {name: item.status for name, item in items.items()} == {
        "same": "identical",
        "changed": "changed",
        "old/name": "removed",
        "gone": "removed",
        "shape": "changed",
        "new": "added",
        "new/name": "added",
    }
    assert items["old/name"].same_content_as == "new/name"
    assert items["new/name"].same_content_as == "old/name"
    assert items["gone"].same_content_as is None
    assert items["new"].same_content_as is None
    assert items["shape"].reason == "another shape: [8] in A, [4] in B"
    assert items["shape"].metrics["nmse"] is None
    assert items["same"].metrics == {}
    assert found.verdict == "different"
    order = ["gone", "new", "shape", "changed", "old/name", "new/name", "same"]
    assert [item.name for item in found.worst()] == order


def test_the_document_is_strict_and_whole(tmp_path: Path):
    a, b = pair(tmp_path, {"w": floats(1), "x": floats(2)}, {"w": floats(3), "y": floats(2)})
    found = run(a, b)
    document = found.as_json()
    assert json.loads("".join(found.json_pieces())) == document
    assert json.loads(json.dumps(document, allow_nan=False)) == document
    assert document["schema"] == "ninfer-gate/comparison/1"
    for side, path in (("a", a), ("b", b)):
        report = verified(path)
        assert document[side]["digest"] == report.digest
        assert document[side]["content_root"] == report.content_root
        objects = {item["name"]: item[side] for item in document["objects"] if item[side] is not None}
        assert {name: item["identity"] for name, item in objects.items()} == {
            item.name: item.identity for item in report.objects
        }
    assert document["totals"]["objects"] == {
        **dict.fromkeys(STATUSES, 0),
        "changed": 1,
        "removed": 1,
        "added": 1,
    }
    assert document["totals"]["a_bytes"]["removed"] == 32
    assert document["totals"]["b_bytes"]["changed"] == 32


def test_identical_content_across_revisions(tmp_path: Path):
    tensors = {
        "w": floats(1),
        "q": (Q4G64_F16S, (3, 100), finite_payload(Q4G64_F16S, (3, 100), np.random.default_rng(2))),
    }
    found = run(*pair(tmp_path, tensors, tensors, (2, 3)))
    assert found.verdict == "identical"
    assert found.a.content_root == found.b.content_root is not None
    assert (found.a.revision, found.b.revision) == (2, 3)
    assert found.a.digest != found.b.digest


def test_split_and_whole_files(tmp_path: Path):
    folder, document = mixed_checkpoint(tmp_path)
    paths = []
    for name, revision, most in (("one", 2, 1 << 40), ("split", 3, 40_000)):
        (tmp_path / name).mkdir()
        paths.append(tmp_path / name / "x.ninfer")
        convert(plan(folder, document), paths[-1], revision=revision, max_file_bytes=most)
    found = run(*paths)
    assert len(found.b.files) > 1
    assert found.verdict == "identical"


def test_two_resources_and_two_kinds(tmp_path: Path):
    def resource(name: str, offset: int, size: int) -> dict[str, object]:
        return {"name": name, "kind": "resource", "encoding": "raw-bytes-v1", "offset": offset, "bytes": size}

    def file(path: Path, objects: list[dict[str, object]], payload: bytes) -> Path:
        root = {"identity": {"model_id": "m", "weights_id": "w"}, "objects": objects}
        path.write_bytes(ninfer_file(2, root, payload))
        return path

    tensor = {"name": "kind", "kind": "tensor", "shape": [2], "format": "BF16", "layout": "contiguous-le-v1"}
    a = file(
        tmp_path / "a.ninfer",
        [resource("same", 0, 4), resource("other", 4, 4), resource("kind", 8, 4)],
        b"abcdefghijkl",
    )
    b = file(
        tmp_path / "b.ninfer",
        [resource("same", 0, 4), resource("other", 4, 4), {**tensor, "offset": 256, "bytes": 4}],
        b"abcdEFGH".ljust(256, b"\0") + b"ijkl",
    )
    found = by_name(run(a, b))
    assert {name: item.status for name, item in found.items()} == {
        "same": "identical",
        "other": "changed",
        "kind": "changed",
    }
    assert found["other"].reason == "a resource has bytes and no values"
    assert found["kind"].reason == "another kind of object"
    assert found["kind"].metrics["undefined"]["nmse"] == "another kind of object"


def test_what_cannot_be_read_is_never_identical(tmp_path: Path):
    tensors = {"w": floats(1, 64), "x": floats(2, 64)}
    a, b = pair(tmp_path, tensors, tensors)
    with open_path(a) as opened:
        artifact = read_artifact(opened.files, opened.entry, Findings())
        assert artifact is not None
        last = artifact.logical_start + artifact.objects[1].offset
    for path in (a, b):
        path.write_bytes(path.read_bytes()[: last + 10])
    found = run(a, b)
    assert {item.name: item.status for item in found.objects} == {"w": "identical", "x": "unreadable"}
    assert found.verdict == "incomplete"
    assert found.a.errors
    assert found.b.errors
    assert found.a.content_root is None


@pytest.mark.parametrize("broken", ["a", "b", "both"])
def test_without_a_directory_nothing_can_be_said(broken: str, tmp_path: Path):
    a, b = pair(tmp_path, {"w": floats(1)}, {"w": floats(1)})
    for name, path in (("a", a), ("b", b)):
        if broken in (name, "both"):
            path.write_bytes(b"NINFER\0\2" + b"\0" * 40)
    found = run(a, b)
    assert found.verdict == "incomplete"
    assert {item.status for item in found.objects} <= {"unreadable"}
    assert len(found.objects) == (0 if broken == "both" else 1)


def test_two_objects_of_one_name(tmp_path: Path):
    entry = {
        "name": "w",
        "kind": "tensor",
        "shape": [2],
        "format": "BF16",
        "layout": "contiguous-le-v1",
        "bytes": 4,
    }
    root = {
        "identity": {"model_id": "m", "weights_id": "w"},
        "objects": [{**entry, "offset": 0}, {**entry, "offset": 256}],
    }
    path = tmp_path / "a.ninfer"
    path.write_bytes(ninfer_file(2, root, bytes(260)))
    found = run(path, path)
    assert [item.status for item in found.objects] == ["identical", "unreadable", "unreadable"]
    assert found.verdict == "incomplete"
    assert {finding.code for finding in found.a.findings} == {"structure.object_name_duplicate"}


def test_a_file_that_is_cut_while_it_is_compared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    in_blocks(monkeypatch, 512)
    shape = (64, 256)
    left, right = (finite_payload(Q4G64_F16S, shape, np.random.default_rng(seed)) for seed in (1, 2))
    a, b = pair(tmp_path, {"w": (Q4G64_F16S, shape, left)}, {"w": (Q4G64_F16S, shape, right)})
    from ninfer_core.compare import words

    blocks = words.blocks
    whole = b.read_bytes()

    def cut(*items):
        b.write_bytes(whole[:4200])
        yield from blocks(*items)

    monkeypatch.setattr("ninfer_core.compare.pairs.blocks", cut)
    found = run(a, b)
    (item,) = found.objects
    assert item.status == "unreadable"
    assert {finding.code for finding in found.b.findings} == {
        "structure.file_cut_short",
        "structure.file_changed",
    }
    assert not found.a.findings


@pytest.mark.parametrize("shard_bytes", [1, 9_000, 1 << 40])
@pytest.mark.parametrize("weights", [None, 128, 5_000])
def test_shards_and_threads_give_the_same_digits(
    shard_bytes: int, weights: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    if weights is not None:
        in_blocks(monkeypatch, weights)
    folder, document = mixed_checkpoint(tmp_path)
    changed = json.loads(json.dumps(document))
    for rule, name in zip(
        changed["rules"][:4], ("W8G32_F16S", "Q6G64_F16S", "Q5G64_F16S", "Q4G64_F16S"), strict=True
    ):
        rule["format"] = name
    changed["rules"][-1]["object"] = "i/moved"
    paths = tmp_path / "a.ninfer", tmp_path / "b.ninfer"
    convert(plan(folder, document), paths[0])
    convert(plan(folder, changed), paths[1], revision=3)
    whole = run(*paths, workers=3).as_json()
    assert whole["totals"]["objects"]["re-encoded"] == 4
    assert run_by_shards(*paths, shard_bytes).as_json() == whole


def test_progress_reaches_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    from ninfer_core.compare import compare

    shape = (16, 256)
    in_blocks(monkeypatch, 512)
    same, left, right = (finite_payload(W8G32_F16S, shape, np.random.default_rng(seed)) for seed in range(3))
    a, b = pair(
        tmp_path,
        {"same": (W8G32_F16S, shape, same), "other": (W8G32_F16S, shape, left), "n": floats(1)},
        {"same": (W8G32_F16S, shape, same), "other": (W8G32_F16S, shape, right), "n": floats(2)},
    )
    done, totals = [], []
    with open_path(a) as one, open_path(b) as two:
        compare(one, two, workers=1, started=totals.append, progress=done.append)
    assert sum(done) == totals[0].bytes
    assert totals[0].objects == 3


def test_equal_payloads_are_not_decoded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def never(*_: object, **__: object) -> None:
        raise AssertionError("nothing is compared that has one digest")

    in_blocks(monkeypatch, 512)
    monkeypatch.setattr("ninfer_core.compare.pairs.compare_block", never)
    tensors = {"w": (Q4G64_F16S, (8, 256), finite_payload(Q4G64_F16S, (8, 256), np.random.default_rng(1)))}
    assert run(*pair(tmp_path, tensors, tensors, (2, 3))).verdict == "identical"


def test_hostile_names_stay_as_they_are(tmp_path: Path):
    name = "xNaNx/Infinity\u202e\u001b[31m"
    path = write_artifact(tmp_path / "a.ninfer", {name: (BF16, (1,), np.zeros(2, np.uint8))})
    assert run(path, path).as_json()["objects"][0]["name"] == name


def test_only_ninfer_artifacts(tmp_path: Path):
    a = write_artifact(tmp_path / "a.ninfer", {"w": floats(1)})
    (tmp_path / "checkpoint").mkdir()
    b = write_checkpoint(tmp_path / "checkpoint", {"w": ("F32", np.zeros(4))})
    with pytest.raises(Usage, match=r"only \.ninfer artifacts"):
        run(a, b)


def test_every_status_has_a_rank():
    assert set(RANKS) == (set(STATUSES) - {"re-encoded"}) | {"unbounded", "moved"}
    assert sorted({rank for status in STATUSES for rank in ranks(status)}) == list(range(len(RANKS)))


def test_ranks_of_a_status_are_those_its_objects_have(tmp_path: Path):
    same, other, moved, gone = (floats(seed) for seed in range(4))
    nan = (FP32, (8,), np.full(8, np.nan, "<f4").view(np.uint8))
    a = {"same": same, "changed": same, "nan": nan, "old": moved, "gone": gone}
    b = {"same": same, "changed": other, "nan": same, "new": moved, "fresh": other}
    for item in run(*pair(tmp_path, a, b)).objects:
        assert item.rank in ranks(item.status)
