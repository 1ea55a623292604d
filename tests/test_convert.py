"""Conversion: the same bytes every time, the same words however they are split, nothing left when refused."""

import hashlib
import json
import os
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ninfer_core.containers.ninfer import read_artifact
from ninfer_core.convert import convert
from ninfer_core.decode import decode
from ninfer_core.errors import CannotWrite, Usage
from ninfer_core.findings import Findings
from ninfer_core.formats import DIRECT, FORMATS
from ninfer_core.io import DiskFiles
from ninfer_core.opening import open_path
from ninfer_core.recipes import bind, parse_recipe
from tests.build import EVERYTHING, codes, plan, recipe, run, tensor, write_checkpoint
from tests.mixed import CANONICAL, mixed_checkpoint
from tests.vectors.load import HERE


@pytest.fixture
def mixed(tmp_path: Path) -> tuple[Path, dict[str, Any]]:
    """See `mixed_checkpoint`."""
    return mixed_checkpoint(tmp_path)


def test_full_parity_and_the_same_bytes_twice(mixed, tmp_path: Path):
    folder, document = mixed
    bound = plan(folder, document)
    first = convert(bound, tmp_path / "a.ninfer", workers=1)
    second = convert(plan(folder, document), tmp_path / "b.ninfer", workers=4)
    assert first.written
    assert second.written
    assert (tmp_path / "a.ninfer").read_bytes() == (tmp_path / "b.ninfer").read_bytes()
    report = run(tmp_path / "a.ninfer", bound)
    assert report.verdict == "passed"
    assert not codes(report)
    assert (report.digest, report.content_root) == (first.digest, first.content_root)
    assert first.digest == "sha256:" + hashlib.sha256((tmp_path / "a.ninfer").read_bytes()).hexdigest()
    levels = {item.name: item.evidence for item in report.objects}
    assert levels["n/copy"] == levels["n/f32"] == levels["i/copy"] == levels["tokenizer"] == "copied-exact"
    assert levels["w/q4"] == levels["n/cast"] == levels["n/wide"] == levels["i/cast"] == "derived-exact"
    assert {item.name: item.identity for item in report.objects} == {
        item.name: item.identity for item in first.objects
    }
    json.dumps(first.as_json(), allow_nan=False)


def test_three_parts_hold_the_same_words(mixed, tmp_path: Path):
    folder, document = mixed
    bound = plan(folder, document)
    whole = convert(bound, tmp_path / "a.ninfer")
    parts = tmp_path / "parts"
    parts.mkdir()
    split = convert(bound, parts / "a.ninfer", revision=3, max_file_bytes=80_000)
    assert len(split.files) == 3
    assert sorted(path.name for path in parts.iterdir()) == [
        "a.ninfer",
        "a.ninfer.part-0001",
        "a.ninfer.part-0002",
    ]
    assert split.content_root == whole.content_root
    report = run(parts, bound)
    assert report.verdict == "passed"
    assert (report.digest, report.content_root) == (split.digest, split.content_root)
    with open_path(parts) as opened:
        artifact = read_artifact(opened.files, opened.entry, Findings())
    assert artifact is not None
    edges = np.cumsum([file.payload_bytes for file in artifact.files])[:-1]
    assert any(item.offset < edge < item.offset + item.bytes for item in split.objects for edge in edges)
    for item in split.objects:
        if item.name.startswith("tok"):
            continue
        for source, name in ((tmp_path / "a.ninfer", "whole"), (parts, "split")):
            with open_path(source) as opened:
                assert not decode(opened, item.name, tmp_path / f"{name}.npy").findings
        assert (tmp_path / "whole.npy").read_bytes() == (tmp_path / "split.npy").read_bytes()
        for name in ("whole", "split"):
            (tmp_path / f"{name}.npy").unlink()
    entry = (parts / "a.ninfer").read_bytes()
    assert entry[16:32].hex() == (split.content_root or "")[7:39]
    assert all((parts / f"a.ninfer.part-000{i}").read_bytes()[16:32] == entry[16:32] for i in (1, 2))


def test_refusals_name_every_place_and_leave_nothing(tmp_path: Path):
    words = np.ones((3, 130), "<f4")
    words[1, 70] = np.inf
    large = np.full((2, 64), 1e30, "<f4")
    ids = np.array([1, -(2**40)]).astype("<i8")
    folder = write_checkpoint(
        tmp_path,
        {
            "a": ("F32", words.view("<u4")),
            "b": ("F32", large.view("<u4")),
            "c": ("I64", ids.view("<u8")),
            "d": ("F32", words.view("<u4")),
        },
    )
    rules = [
        {"object": "a", "value": tensor("a", (3, 130), "F32"), "encode": CANONICAL, "format": "Q4G64_F16S"},
        {"object": "b", "value": tensor("b", (2, 64), "F32"), "encode": CANONICAL, "format": "W8G32_F16S"},
        {
            "object": "c",
            "value": {"op": "cast", "to": "I32", "of": tensor("c", (2,), "I64")},
            "encode": "copy_words",
            "format": "I32",
        },
        {"object": "d", "value": tensor("d", (3, 130), "F32"), "encode": "copy_words", "format": "FP32"},
    ]
    out = tmp_path / "out"
    out.mkdir()
    outcome = convert(plan(folder, recipe(rules)), out / "x.ninfer", revision=3, max_file_bytes=20_000)
    assert not outcome.written
    found = {finding.object: finding for finding in outcome.findings}
    assert {name: finding.code for name, finding in found.items()} == {
        "a": "convert.source_not_finite",
        "b": "convert.scale_overflow",
        "c": "convert.cast_refused",
    }
    assert (found["a"].where["row"], found["a"].where["group"], found["a"].where["lane"]) == (1, 1, 6)
    assert found["a"].where["word"] == "0x7f800000"
    assert found["c"].where["index"] == 1
    assert list(out.iterdir()) == []
    assert outcome.as_json()["verdict"] == "refused"


def test_nothing_is_overwritten(mixed, tmp_path: Path):
    folder, document = mixed
    (tmp_path / "a.ninfer.part-0001").write_bytes(b"mine")
    with pytest.raises(CannotWrite, match="never overwritten"):
        convert(plan(folder, document), tmp_path / "a.ninfer", revision=3, max_file_bytes=60_000)
    assert not (tmp_path / "a.ninfer").exists()
    (tmp_path / "dangling.ninfer").symlink_to(tmp_path / "nowhere")
    with pytest.raises(CannotWrite):
        convert(plan(folder, document), tmp_path / "dangling.ninfer")
    with pytest.raises(Usage):
        convert(plan(folder, document), tmp_path / "b.ninfer", max_file_bytes=1000)


def test_a_write_that_fails_leaves_nothing(mixed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    folder, document = mixed
    out = tmp_path / "out"
    out.mkdir()
    real = os.pwrite
    calls = []

    def full(fd: int, content: bytes, offset: int) -> int:
        calls.append(offset)
        if len(calls) > 4:
            raise OSError(28, "No space left on device")
        return real(fd, content, offset)

    monkeypatch.setattr("os.pwrite", full)
    with pytest.raises(CannotWrite, match="No space left"):
        convert(plan(folder, document), out / "a.ninfer")
    assert list(out.iterdir()) == []


def test_what_our_own_reader_refuses_is_not_published(mixed, tmp_path: Path):
    """The recipe's words go into the directory of revision 3; a resource that is not there is found before publishing."""
    folder, document = mixed
    document["components"] = {"text": {"config": {}, "resources": {"tokenizer": "no such thing"}}}
    outcome = convert(plan(folder, document), tmp_path / "a.ninfer", revision=3)
    assert not outcome.written
    assert {finding.code for finding in outcome.findings} == {"structure.reference_unknown"}
    assert not (tmp_path / "a.ninfer").exists()
    document["components"]["text"]["resources"] = {"tokenizer": "tokenizer"}
    assert convert(plan(folder, document), tmp_path / "a.ninfer", revision=3).written


def test_a_source_that_changes_is_refused(mixed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    folder, document = mixed
    bound = plan(folder, document)
    source = folder / "model.safetensors"
    os.utime(source, ns=(1, 1))
    outcome = convert(bound, tmp_path / "a.ninfer")
    assert not outcome.written
    assert {finding.code for finding in outcome.findings} == {"source.changed"}
    assert not (tmp_path / "a.ninfer").exists()


MATCHING = {("BF16", "BF16"), ("F32", "FP32"), ("I32", "I32")}
SOURCES = ("BF16", "F16", "F32", "F64", "I64", "I32", "U8")


@pytest.mark.parametrize("fmt", FORMATS, ids=lambda fmt: fmt.name)
@pytest.mark.parametrize("dtype", SOURCES)
def test_no_conversion_is_implicit(dtype: str, fmt, tmp_path: Path):
    """Over both registries: words are copied into their own format only; every other pair is refused by name."""
    write_checkpoint(tmp_path, {"w": (dtype, np.ones((128, 64), np.uint8))})
    document = recipe(
        [{"object": "w", "value": tensor("w", (128, 64), dtype), "encode": "copy_words", "format": fmt.name}]
    )
    findings = Findings()
    parsed = parse_recipe(json.dumps(document).encode(), findings)
    if (dtype, fmt.name) in MATCHING:
        assert parsed is not None
        assert bind(parsed, {"base": DiskFiles(tmp_path)}, {}, findings) is not None
        assert fmt in DIRECT
    else:
        assert parsed is None
        assert {finding.code for finding in findings} <= {
            "recipe.implicit_conversion",
            "recipe.encoder_format",
        }
        assert len(findings)


def test_direct_words_survive_bit_for_bit(tmp_path: Path):
    """NaN payloads, signed zeros and subnormals of every direct format; all 65,536 BF16 words."""
    every = np.arange(65536, dtype="<u2").reshape(256, 256)
    odd = np.array(
        [0, 0x80000000, 1, 0x80000001, 0x7F800000, 0xFF800000, 0x7F800001, 0x7FC00000, 0xFFFFFFFF], "<u4"
    )
    write_checkpoint(tmp_path, {"b": ("BF16", every), "f": ("F32", odd), "i": ("I32", odd)})
    rules = [
        {"object": "b", "value": tensor("b", (256, 256), "BF16"), "encode": "copy_words", "format": "BF16"},
        {"object": "f", "value": tensor("f", (9,), "F32"), "encode": "copy_words", "format": "FP32"},
        {"object": "i", "value": tensor("i", (9,), "I32"), "encode": "copy_words", "format": "I32"},
    ]
    bound = plan(tmp_path, recipe(rules))
    assert convert(bound, tmp_path / "a.ninfer").written
    report = run(tmp_path / "a.ninfer", bound)
    assert report.verdict == "passed"
    assert report.objects[0].metrics["error"]["rmse"] is None
    assert report.objects[0].metrics["error"]["undefined"]["rmse"]
    for name, words in (("b", every), ("f", odd), ("i", odd)):
        with open_path(tmp_path / "a.ninfer") as opened:
            decode(opened, name, tmp_path / f"{name}.npy")
        assert np.array_equal(np.load(tmp_path / f"{name}.npy").view(words.dtype), words)


@pytest.mark.parametrize("name", ["bf16_exact_ok", "bf16_flushed_and_quieted"])
def test_field_case_direct_parity(name: str, tmp_path: Path):
    cases = HERE / "cases" / "parity"
    (tmp_path / "model.safetensors").write_bytes((cases / "bf16_source.safetensors").read_bytes())
    with open_path(cases / f"{name}.ninfer") as opened:
        artifact = read_artifact(opened.files, opened.entry, Findings())
    assert artifact is not None
    item = artifact.tensors[0]
    rules = [
        {
            "object": item.name,
            "value": tensor("w", item.shape, "BF16"),
            "encode": "copy_words",
            "format": "BF16",
        }
    ]
    document = recipe(rules)
    document["identity"] = {"model_id": artifact.model_id, "weights_id": artifact.weights_id}
    report = run(cases / f"{name}.ninfer", plan(tmp_path, document), EVERYTHING)
    if name == "bf16_exact_ok":
        assert report.verdict == "passed"
    else:
        finding = next(finding for finding in report.findings if finding.severity == "error")
        assert finding.code == "parity.word_mismatch"
        assert finding.where["elements"] == [2, 3, 4, 12, 13, 14]


def test_a_pinned_resource_that_changes_under_way_is_refused(mixed, tmp_path: Path):
    """The pin is compared with what was written, not only with what was there at first."""
    folder, document = mixed
    content = (folder / "tokenizer.json").read_bytes()
    document["resources"][0]["sha256"] = hashlib.sha256(content).hexdigest()
    bound = plan(folder, document)
    status = (folder / "tokenizer.json").stat()
    (folder / "tokenizer.json").write_bytes(b"x" * len(content))
    os.utime(folder / "tokenizer.json", ns=(status.st_atime_ns, status.st_mtime_ns))
    outcome = convert(bound, tmp_path / "a.ninfer")
    assert not outcome.written
    assert {finding.code for finding in outcome.findings} == {"source.file_digest_mismatch"}
    assert not (tmp_path / "a.ninfer").exists()


def test_parity_with_a_source_that_changes_is_no_pass(mixed, tmp_path: Path):
    folder, document = mixed
    bound = plan(folder, document)
    assert convert(bound, tmp_path / "a.ninfer").written
    os.utime(folder / "model.safetensors", ns=(1, 1))
    report = run(tmp_path / "a.ninfer", bound)
    assert report.verdict == "failed"
    assert codes(report) == {"source.changed"}
    outcomes = {check.name: check.outcome for check in report.checks if check.outcome != "not_asked"}
    assert outcomes == {
        "structure": "passed",
        "layout": "passed",
        "values": "passed",
        "statistics": "passed",
        "parity": "failed",
    }


def test_a_cast_refuses_only_words_of_the_object(tmp_path: Path):
    """Neighbours that come along when a transposed matrix is read in pieces are not the object's business."""
    words = np.ones((4, 6), "<f4")
    words[0, 5] = np.nan
    write_checkpoint(tmp_path, {"w": ("F32", words.view("<u4"))})
    cast = {"op": "cast", "to": "BF16", "of": tensor("w", (4, 6), "F32")}
    turned = {"op": "transpose", "axes": [1, 0], "of": cast}
    for begin, end, fine in ((1, 4, True), (0, 5, True), (4, 6, False)):
        value = {"op": "rows", "begin": begin, "end": end, "of": turned}
        rules = [{"object": "w", "value": value, "encode": "copy_words", "format": "BF16"}]
        outcome = convert(plan(tmp_path, recipe(rules)), tmp_path / f"{begin}.ninfer")
        assert outcome.written == fine
        if not fine:
            assert outcome.findings[0].where["index"] == 4  # row 1 of the two, column 0


@pytest.mark.parametrize("elements", [1000, 5_000_000], ids=["small", "large"])
def test_a_source_cut_short_during_parity_is_the_sources_fault(elements: int, tmp_path: Path):
    """The artifact's own checks stand; parity does not, and it says why."""
    words = np.arange(elements, dtype="<u4")
    write_checkpoint(tmp_path, {"w": ("F32", words)})
    (tmp_path / "r.txt").write_bytes(b"text")
    rules = [
        {"object": "w", "value": tensor("w", (elements,), "F32"), "encode": "copy_words", "format": "FP32"}
    ]
    resources = [{"object": "r", "from": "base", "file": "r.txt", "encode": "copy_bytes"}]
    bound = plan(tmp_path, recipe(rules, resources))
    assert convert(bound, tmp_path / "a.ninfer").written
    os.truncate(tmp_path / "model.safetensors", 200)
    os.truncate(tmp_path / "r.txt", 1)
    report = run(tmp_path / "a.ninfer", bound)
    assert report.verdict == "failed"
    outcomes = {check.name: (check.outcome, check.coverage) for check in report.checks}
    assert outcomes["parity"] == ("failed", "none")
    assert all(outcomes[name] == ("passed", "full") for name in EVERYTHING)
    assert {finding.about for finding in report.findings} == {"source"}
    assert [item.outcome for item in report.objects] == ["not_checked", "not_checked"]
    assert all(item.sha256 for item in report.objects)


def test_words_that_went_through_another_type_are_not_called_copied(tmp_path: Path):
    write_checkpoint(tmp_path, {"w": ("F32", np.array([1.0001, 2.3], "<f4").view("<u4"))})
    value = {"op": "widen", "to": "FP32", "of": {"op": "cast", "to": "BF16", "of": tensor("w", (2,), "F32")}}
    bound = plan(
        tmp_path, recipe([{"object": "w", "value": value, "encode": "copy_words", "format": "FP32"}])
    )
    assert convert(bound, tmp_path / "a.ninfer").written
    report = run(tmp_path / "a.ninfer", bound)
    assert report.objects[0].evidence == "derived-exact"


def test_a_refused_cast_under_a_transposition_is_found_at_once(tmp_path: Path):
    """A thin transposed matrix with one NaN: the neighbours of the wanted words are never cast."""
    words = np.ones((1 << 19, 4), "<f4")
    words[77, 3] = np.nan
    write_checkpoint(tmp_path, {"w": ("F32", words.view("<u4"))})
    cast = {"op": "cast", "to": "BF16", "of": tensor("w", words.shape, "F32")}
    turned = {"op": "transpose", "axes": [1, 0], "of": cast}
    start = time.process_time()
    for rows, fine in (((0, 3), True), ((3, 4), False)):
        value = {"op": "rows", "begin": rows[0], "end": rows[1], "of": turned}
        bound = plan(
            tmp_path, recipe([{"object": "w", "value": value, "encode": "copy_words", "format": "BF16"}])
        )
        outcome = convert(bound, tmp_path / f"{rows[0]}.ninfer")
        assert outcome.written == fine
    assert outcome.findings[0].where["index"] == 77
    assert time.process_time() - start < 20  # word by word it took minutes
