"""Shard by shard into segments, replayed and composed, a conversion is that of one process: bytes and document."""

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ninfer_core.containers.output import Output
from ninfer_core.containers.publish import publish
from ninfer_core.containers.segment import SegmentWriter, replay
from ninfer_core.convert import Conversion, Draft, convert
from ninfer_core.errors import CutShort, OutOfStep, Usage
from ninfer_core.io import DiskFile
from ninfer_core.recipes import Plan
from ninfer_core.verify.outcomes import Encoded, from_json, to_json
from ninfer_core.verify.pool import Pool
from ninfer_core.verify.task import shards
from tests.build import plan, recipe, run, tensor, write_checkpoint
from tests.mixed import CANONICAL, mixed_checkpoint
from tests.shards import small_blocks

SPLITS = pytest.mark.parametrize(("revision", "limit"), [(2, None), (3, None), (3, 80_000)])


def convert_by_shards(
    bound: Plan, out: Path, work: Path, shard_bytes: int, revision: int = 2, limit: int | None = None
) -> Conversion:
    """Convert as workers do: every shard on its own, last one first, nothing but segments and JSON handed on."""

    def draft() -> Draft:
        return Draft(bound, out.name, revision, limit, Pool(1))

    kept: dict[int, str] = {}
    segments: list[tuple[Path, list[tuple[int, int]]]] = []
    for number, numbers in reversed(list(enumerate(shards(draft().tasks, shard_bytes)))):
        tasks = draft().tasks
        with SegmentWriter(work / f"segment-{number}") as segment:
            for task in numbers:
                kept[task] = json.dumps(to_json(tasks[task].run(segment)), allow_nan=False)
        segments.append((segment.path, segment.records))
    last = draft()
    with Output(last.blueprint, out) as output:
        for path, records in segments:
            file = DiskFile(path)
            replay(file, records, output)
            file.close()
        outcomes = (from_json(json.loads(kept[task])) for task in range(len(last.tasks)))
        conversion = last.compose((one for one in outcomes if isinstance(one, Encoded)), output)
        assert list(out.parent.iterdir()) == []  # composing publishes nothing
        if conversion.written:
            publish(output.files)
    return conversion


def assert_same(bound: Plan, folder: Path, revision: int = 2, limit: int | None = None) -> dict[str, Any]:
    """The document of one process, which is that of shards of every size, as are the files."""
    straight = folder / "straight"
    straight.mkdir()
    document = convert(bound, straight / "a.ninfer", revision=revision, max_file_bytes=limit).as_json()
    for shard_bytes in (1, 5_000, 1 << 40):
        out, work = folder / f"out-{shard_bytes}", folder / f"work-{shard_bytes}"
        out.mkdir()
        work.mkdir()
        conversion = convert_by_shards(bound, out / "a.ninfer", work, shard_bytes, revision, limit)
        assert conversion.as_json() == document
        assert contents(out) == contents(straight)
    return document


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@SPLITS
@pytest.mark.parametrize("weights", [None, 512], ids=["large blocks", "small blocks"])
def test_written(
    revision: int,
    limit: int | None,
    weights: int | None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
):
    folder, document = mixed_checkpoint(tmp_path)
    bound = plan(folder, document)
    if weights is not None:
        small_blocks(monkeypatch, weights)
    made = assert_same(bound, tmp_path, revision, limit)
    assert made["verdict"] == "written"
    assert len(made["artifact"]["files"]) == (3 if limit else 1)
    assert run(tmp_path / "out-1", bound).verdict == "passed"


@SPLITS
def test_refused(revision: int, limit: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """By the encoder, by a cast and by a check of the written words; every place is named once."""
    small_blocks(monkeypatch, 512)
    words = np.ones((30, 130), "<f4")
    words[7:9, 70] = np.inf
    large = np.full((8, 64), 1e30, "<f4")
    ids = np.array([1, -(2**40)]).astype("<i8")
    tensors = {
        "a": ("F32", words.view("<u4")),
        "b": ("F32", large.view("<u4")),
        "c": ("I64", ids.view("<u8")),
    }
    write_checkpoint(tmp_path, tensors)
    narrow = {"op": "cast", "to": "I32", "of": tensor("c", (2,), "I64")}
    rules = [
        {"object": "a", "value": tensor("a", (30, 130), "F32"), "encode": CANONICAL, "format": "Q4G64_F16S"},
        {"object": "b", "value": tensor("b", (8, 64), "F32"), "encode": CANONICAL, "format": "W8G32_F16S"},
        {"object": "c", "value": narrow, "encode": "copy_words", "format": "I32"},
        {"object": "d", "value": tensor("a", (30, 130), "F32"), "encode": "copy_words", "format": "FP32"},
    ]
    made = assert_same(plan(tmp_path, recipe(rules)), tmp_path, revision, limit)
    assert made["verdict"] == "refused"
    found = {finding["code"] for finding in made["findings"]}
    assert found == {"convert.source_not_finite", "convert.scale_overflow", "convert.cast_refused"}


def test_refused_by_our_own_reader(tmp_path: Path):
    folder, document = mixed_checkpoint(tmp_path)
    document["components"] = {"text": {"config": {}, "resources": {"tokenizer": "no such thing"}}}
    made = assert_same(plan(folder, document), tmp_path, 3)
    assert {finding["code"] for finding in made["findings"]} == {"structure.reference_unknown"}
    assert made["artifact"]["content_root"] is None


def test_a_source_cut_short(tmp_path: Path):
    folder, document = mixed_checkpoint(tmp_path)
    bound = plan(folder, document)
    os.truncate(folder / "model.safetensors", 4000)
    os.truncate(folder / "tokenizer.json", 1)
    made = assert_same(bound, tmp_path)
    assert made["verdict"] == "refused"
    assert {finding["about"] for finding in made["findings"]} == {"source"}


def test_a_refused_block_writes_nothing(tmp_path: Path):
    write_checkpoint(tmp_path, {"w": ("F32", np.full((2, 64), np.nan, "<f4").view("<u4"))})
    rules = [
        {"object": "w", "value": tensor("w", (2, 64), "F32"), "encode": CANONICAL, "format": "Q4G64_F16S"}
    ]
    (task,) = Draft(plan(tmp_path, recipe(rules)), "a", 2, None, Pool(1)).tasks
    assert task.bytes == 512
    with SegmentWriter(tmp_path / "s") as segment:
        assert task.run(segment).faults
    assert segment.records == []


def test_a_refusal_is_answered_without_what_the_tasks_wrote(tmp_path: Path):
    folder, document = mixed_checkpoint(tmp_path)
    draft = Draft(plan(folder, document), "a.ninfer", 2, None, Pool(1))
    outcomes = [Encoded(cut=CutShort("x", 0, 1, 0)) for _ in draft.tasks]
    with Output(draft.blueprint, tmp_path / "a.ninfer") as output:
        assert not draft.compose(outcomes, output).written
        with pytest.raises(OutOfStep):
            draft.compose(outcomes[1:], output)
        with pytest.raises(OutOfStep):
            draft.compose([*outcomes, Encoded()], output)


def test_a_draft_that_makes_no_sense(tmp_path: Path):
    folder, document = mixed_checkpoint(tmp_path)
    with pytest.raises(Usage):
        Draft(plan(folder, document), "a.ninfer", 2, 1000, Pool(1))
    with pytest.raises(Usage):
        Draft(plan(folder, document), "a.ninfer", 1, None, Pool(1))
