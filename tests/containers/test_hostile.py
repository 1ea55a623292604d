"""Directories made to cost more than they weigh, and names that lead elsewhere."""

import hashlib
import itertools
import json
import os
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ninfer_core.containers.directory import ResourceObject
from ninfer_core.containers.entries import place
from ninfer_core.findings import Findings
from tests.build import codes, ninfer_file, run

RECORD: dict[str, Any] = {
    "name": "a",
    "kind": "resource",
    "encoding": "raw-bytes-v1",
    "offset": 0,
    "bytes": 1,
}
IDENTITY = {"model_id": "m", "weights_id": "w"}


def revision_3(**members: Any) -> dict[str, Any]:
    """A root of revision 3 with one resource, in which `members` replace the sound ones."""
    resource = {"id": "a", "kind": "resource", "encoding": "raw_bytes_v1", "offset": 0, "bytes": 1}
    root = {
        "components": {"text": {"config": {}}},
        "objects": [resource],
        "bindings": {},
        "uses": [],
        "files": [{"path": None, "payload_bytes": 1}],
    }
    return {**root, **members}


# What one file of each kind says of so many things.
COSTLY: dict[str, tuple[int, int, Callable[[int], dict[str, Any]]]] = {
    "long key over many bad parts": (
        3,
        3_000,
        lambda count: revision_3(bindings={"k" * 300_000: {"parts": [{}] * count}}),
    ),
    "many objects that are nothing": (
        2,
        30_000,
        lambda count: {"identity": IDENTITY, "objects": [{}] * count},
    ),
    "one long name over many overlaps": (
        2,
        3_000,
        lambda count: {
            "identity": IDENTITY,
            "objects": [{**RECORD, "name": "n" * 300_000, "bytes": 4}]
            + [{**RECORD, "name": str(i)} for i in range(count)],
        },
    ),
    "many components without text": (
        3,
        30_000,
        lambda count: revision_3(components={str(i): {"config": {}} for i in range(count)}),
    ),
    "many small objects back to front": (
        2,
        30_000,
        lambda count: {
            "identity": IDENTITY,
            "objects": [{**RECORD, "name": str(i), "offset": count - i} for i in range(count)],
        },
    ),
}


def costly(name: str, count: int, folder: Path) -> Path:
    """The file of this kind and size."""
    revision, _, root = COSTLY[name]
    path = folder / "a.ninfer"
    path.write_bytes(ninfer_file(revision, root(count), b"\1" * 40_000 if revision == 2 else b"\1"))
    return path


@pytest.mark.parametrize("name", COSTLY)
def test_time_follows_the_file(name: str, tmp_path: Path):
    path = costly(name, COSTLY[name][1], tmp_path)
    start = time.process_time()
    report = run(path)
    written = sum(len(piece) for piece in report.json_pieces())
    assert time.process_time() - start < 20  # each took minutes, or would have at the size limit
    assert report.verdict == "failed"
    assert written < 60_000_000


@pytest.mark.parametrize("name", COSTLY)
def test_memory_follows_the_file(name: str, tmp_path: Path):
    """Of a fifth of it: what is traced takes five times as long."""
    path = costly(name, COSTLY[name][1] // 5, tmp_path)
    tracemalloc.start()
    try:
        report = run(path)
        for _ in report.json_pieces():
            pass
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert report.verdict == "failed"
    assert peak < 20_000_000 + 40 * path.stat().st_size


def test_missing_parts_and_objects_meet_in_linear_time(tmp_path: Path):
    count = 4000
    objects = [
        {"id": str(i), "kind": "resource", "encoding": "raw_bytes_v1", "offset": i, "bytes": 1}
        for i in range(count)
    ]
    files = [
        {"path": None, "payload_bytes": 1},
        *({"path": f"p{i}", "payload_bytes": 1} for i in range(1, count)),
    ]
    path = tmp_path / "a.ninfer"
    path.write_bytes(ninfer_file(3, revision_3(objects=objects, files=files), b"\1"))
    report = run(path)
    lost = next(finding for finding in report.findings if finding.code == "structure.objects_unreadable")
    assert lost.count == count - 1
    assert lost.where["objects"][0] == "1"
    assert sum(finding.code == "structure.part_missing" for finding in report.findings) == count - 1
    assert report.objects[0].sha256 is not None


@pytest.mark.parametrize(
    "root",
    [{"identity": IDENTITY}, {"identity": IDENTITY, "objects": {}}, {"identity": IDENTITY, "objects": []}],
)
def test_objects_that_were_never_read_are_not_covered(root: dict[str, Any], tmp_path: Path):
    path = tmp_path / "a.ninfer"
    path.write_bytes(ninfer_file(2, root))
    report = run(path)
    assert report.verdict == "failed"
    outcomes = {check.name: (check.outcome, check.coverage) for check in report.checks}
    assert outcomes["values"] == outcomes["layout"] == ("not_checked", "none")
    assert outcomes["structure"] == ("failed", "none")


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(1, 8)), max_size=12))
def test_who_is_kept_never_overlaps_and_who_is_not_does(ranges: list[tuple[int, int]]):
    objects = [
        ResourceObject(i, str(i), "raw-bytes-v1", begin, size) for i, (begin, size) in enumerate(ranges)
    ]
    findings = Findings()
    placed = place(list(objects), 100, findings)
    kept = [item for item in placed if isinstance(item, ResourceObject)]
    taken = sorted((item.offset, item.offset + item.bytes) for item in kept)
    assert all(first[1] <= second[0] for first, second in itertools.pairwise(taken))
    for item, result in zip(objects, placed, strict=True):
        ahead = [
            other
            for other in objects[: item.ordinal]
            if other.offset < item.offset + item.bytes and item.offset < other.offset + other.bytes
        ]
        if result is not item:
            assert ahead
    cursor, late = 0, set()
    for item in objects:
        if item.offset < cursor:
            late.add(item.name)
        cursor = max(cursor, item.offset + item.bytes)
    assert {finding.object for finding in findings} == late


def test_a_part_that_is_a_link_out_of_the_folder_is_refused_unread(tmp_path: Path):
    outside = tmp_path / "outside"
    outside.write_bytes(b"secret")
    folder = tmp_path / "set"
    folder.mkdir()
    files = [{"path": None, "payload_bytes": 1}, {"path": "p", "payload_bytes": 1}]
    (folder / "a.ninfer").write_bytes(ninfer_file(3, revision_3(files=files), b"\1"))
    (folder / "p").symlink_to(outside)
    report = run(folder / "a.ninfer")
    assert "structure.part_path_unsafe" in codes(report)
    assert b"secret".hex(" ") not in json.dumps(report.as_json())
    # A download cache keeps the files of a set in one place and links to them.
    cache = tmp_path / "cache"
    cache.mkdir()
    part = b"NINPRT\0\3" + (1).to_bytes(8, "little") + bytes(16)
    (cache / "2").write_bytes(part.ljust(4096, b"\0") + b"\2")
    (folder / "a.ninfer").rename(cache / "1")
    (folder / "p").unlink()
    (folder / "a.ninfer").symlink_to(cache / "1")
    (folder / "p").symlink_to(cache / "2")
    assert run(folder / "a.ninfer").verdict == "passed"


def test_file_names_that_are_no_text(tmp_path: Path):
    name = os.fsdecode(b"e\xff.ninfer")
    files = [{"path": None, "payload_bytes": 1}, {"path": "p", "payload_bytes": 1}]
    (tmp_path / name).write_bytes(ninfer_file(3, revision_3(files=files), b"\1"))
    (tmp_path / "p").write_bytes(
        (b"NINPRT\0\3" + (1).to_bytes(8, "little") + bytes(16)).ljust(4096, b"\0") + b"\2"
    )
    report = run(tmp_path / name)
    assert report.verdict == "passed"
    json.dumps(report.as_json(), ensure_ascii=False).encode()


def test_half_a_surrogate_never_reaches_a_report(tmp_path: Path):
    root = {"identity": {"model_id": "\ud800", "weights_id": "\udcff"}, "objects": [{**RECORD, "\udc80": 1}]}
    path = tmp_path / "a.ninfer"
    path.write_bytes(ninfer_file(2, root, b"\1"))
    report = run(path)
    assert "structure.json_surrogate" in codes(report)
    json.dumps(report.as_json(), ensure_ascii=False).encode()
    assert json.loads("".join(report.json_pieces())) == report.as_json()


def test_only_revision_3_forbids_a_zero_character(tmp_path: Path):
    path = tmp_path / "a.ninfer"
    path.write_bytes(ninfer_file(2, {"identity": IDENTITY, "objects": [{**RECORD, "name": "a\0b"}]}, b"\1"))
    assert run(path).verdict == "passed"


def test_objects_beyond_the_listed_findings_fail_too(tmp_path: Path):
    """Ten thousand and three tensors with a code under a zero scale: the last three have no finding of their own."""
    count = 10_003
    payload = np.zeros((count, 512), np.uint8)
    payload[:, 0] = 5
    item = {
        "kind": "tensor",
        "shape": [1, 1],
        "format": "W8G32_F16S",
        "layout": "row-split-k128-v1",
        "bytes": 264,
    }
    objects = [{"name": str(i), **item, "offset": 512 * i} for i in range(count)]
    path = tmp_path / "a.ninfer"
    path.write_bytes(ninfer_file(2, {"identity": IDENTITY, "objects": objects}, payload.tobytes()))
    report = run(path)
    assert {result.outcome for result in report.objects} == {"failed"}
    assert report.unlisted == {"values.zero_scale_nonzero_code": 3}


def test_a_legal_name_that_looks_like_a_place_is_not_blamed(tmp_path: Path):
    path = tmp_path / "a.ninfer"
    objects = [{"kind": "resource"}, {**RECORD, "name": "objects[0]"}]
    path.write_bytes(ninfer_file(2, {"identity": IDENTITY, "objects": objects}, b"\1"))
    assert [item.outcome for item in run(path).objects] == ["failed", "passed"]


@pytest.mark.parametrize(
    "files",
    [
        [{"path": None, "payload_bytes": 1}, {"path": "p", "payload_bytes": 0}],
        [{"path": None, "payload_bytes": 0}, {"path": "p", "payload_bytes": 1}],
    ],
)
def test_no_digest_of_a_set_that_is_not_known(files: list[dict[str, Any]], tmp_path: Path):
    (tmp_path / "a.ninfer").write_bytes(ninfer_file(3, revision_3(files=files), b"\1"))
    (tmp_path / "p").write_bytes(
        (b"NINPRT\0\3" + (1).to_bytes(8, "little") + bytes(16)).ljust(4096, b"\0") + b"\2"
    )
    report = run(tmp_path / "a.ninfer")
    assert report.verdict == "failed"
    assert report.digest is None
    assert [file.name for file in report.files] == ["a.ninfer"]


def test_a_cut_entry_still_has_its_digest(tmp_path: Path):
    path = tmp_path / "a.ninfer"
    path.write_bytes(ninfer_file(3, revision_3(files=[{"path": None, "payload_bytes": 100}]), b"\1"))
    report = run(path)
    assert "structure.entry_size_mismatch" in codes(report)
    assert report.digest == "sha256:" + hashlib.sha256(path.read_bytes()).hexdigest()
    assert [item.outcome for item in report.objects] == ["not_checked"]


def test_places_between_objects_count_in_the_logical_file(tmp_path: Path):
    path = tmp_path / "a.ninfer"
    objects = [RECORD, {**RECORD, "name": "b", "offset": 9}]
    content = ninfer_file(2, {"identity": IDENTITY, "objects": objects}, b"\1\0\0\0\7\0\0\0\0\1")
    path.write_bytes(content)
    finding = run(path).findings[0]
    assert finding.code == "structure.unreferenced_bytes"
    assert content[finding.where["offset"]] == 7


def test_a_bad_part_beyond_the_listed_findings_is_still_bad(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """What is not listed any more is judged all the same: nothing is read out of a part that is not one."""
    monkeypatch.setattr("ninfer_core.findings.MAX_PER_CODE", 1)
    names = ("p1", "p2")
    files = [{"path": None, "payload_bytes": 1}, *({"path": name, "payload_bytes": 1} for name in names)]
    resource = {"kind": "resource", "encoding": "raw_bytes_v1", "bytes": 1}
    objects = [{"id": str(offset), **resource, "offset": offset} for offset in range(3)]
    (tmp_path / "a.ninfer").write_bytes(ninfer_file(3, revision_3(objects=objects, files=files), b"\1"))
    for name in names:
        (tmp_path / name).write_bytes(b"no part".ljust(4097, b"\0"))
    report = run(tmp_path / "a.ninfer")
    assert [item.outcome for item in report.objects] == ["passed", "not_checked", "not_checked"]
    assert report.digest is None
