"""What the writer lays out, the reader takes; files fill up as the rules say; nothing is ever overwritten."""

import json
import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ninfer_core.containers.ninfer import read_artifact
from ninfer_core.containers.publish import NewFile, publish, require_free
from ninfer_core.containers.spelling import PAGE
from ninfer_core.containers.writer import Heading, ResourceSpec, TensorSpec, blueprint
from ninfer_core.errors import CannotWrite, Usage
from ninfer_core.findings import Findings
from ninfer_core.formats import BF16, FORMATS, Q5G64_F16S
from ninfer_core.io import DiskFiles
from ninfer_core.layouts import canonical_layout
from tests.build import legal_payload, run, write_artifact

HEADING = Heading("m", "w", {"text": {"config": {}}}, {"metadata": {"name": "n"}})


def specs(count: int) -> list[TensorSpec | ResourceSpec]:
    made: list[TensorSpec | ResourceSpec] = []
    for index in range(count):
        if index % 3 == 2:
            made.append(ResourceSpec(f"r/{index}", 1 + 37 * index))
        else:
            fmt = BF16 if index % 3 else Q5G64_F16S
            made.append(TensorSpec(f"w/{index}", (index + 1, 70), fmt, canonical_layout(fmt)))
    return made


@given(count=st.integers(1, 12), limit=st.integers(12_000, 60_000))
def test_split_files_hold_the_payload_and_keep_the_limit(
    tmp_path_factory: pytest.TempPathFactory, count: int, limit: int
):
    objects = specs(count)
    draft = blueprint("x.ninfer", objects, HEADING, 3, limit)
    total = draft.offsets[-1] + objects[-1].bytes
    assert sum(file.payload_bytes for file in draft.files) == total
    assert all(file.bytes <= limit for file in draft.files)
    assert all(file.payload_bytes % PAGE == 0 for file in draft.files[:-1])
    folder = tmp_path_factory.mktemp("split")
    for file in draft.files:
        (folder / file.name).write_bytes(file.header.ljust(file.bytes, b"\0"))
    findings = Findings()
    with DiskFiles(folder) as files:
        artifact = read_artifact(files, "x.ninfer", findings)
    assert not list(findings)
    assert artifact is not None
    assert [item.offset for item in artifact.objects] == list(draft.offsets)
    assert artifact.payload.size == total
    assert artifact.name == "n"
    assert set(artifact.sections["bindings"]) == {
        item.name for item in objects if isinstance(item, TensorSpec)
    }


def test_directory_is_compact_and_in_the_stated_order():
    header = blueprint("x", specs(3), HEADING).files[0].header
    root = json.loads(header[16:])
    assert header[16:] == json.dumps(root, separators=(",", ":")).encode()
    assert list(root) == ["identity", "objects"]
    assert list(root["objects"][0]) == ["name", "kind", "shape", "format", "layout", "offset", "bytes"]
    assert list(root["objects"][2]) == ["name", "kind", "encoding", "offset", "bytes"]


def test_refuses_what_it_cannot_write():
    with pytest.raises(Usage):
        blueprint("x", specs(1), HEADING, 1)
    with pytest.raises(Usage, match="revision 3"):
        blueprint("x", specs(9), HEADING, 2, 5000)
    with pytest.raises(Usage, match="no room"):
        blueprint("x", specs(9), HEADING, 3, 4096)


@pytest.mark.parametrize("fmt", FORMATS, ids=lambda fmt: fmt.name)
@pytest.mark.parametrize("revision", [2, 3])
def test_every_format_round_trips(fmt, revision: int, tmp_path: Path):
    shape = (128, 64) if fmt.name == "NVFP4" else (3, 130)
    payload = legal_payload(fmt, shape, np.random.default_rng(5))
    report = run(write_artifact(tmp_path / "a.ninfer", {"w": (fmt, shape, payload)}, revision))
    assert report.verdict == "passed"
    assert (report.revision, report.objects[0].format, report.objects[0].shape) == (revision, fmt.name, shape)


def test_publishing_never_overwrites_and_leaves_nothing_behind(tmp_path: Path):
    (tmp_path / "b").write_bytes(b"precious")
    with pytest.raises(CannotWrite, match="never overwritten"):
        require_free([tmp_path / "a", tmp_path / "b"])
    files = [NewFile(tmp_path / "b", 4), NewFile(tmp_path / "b.part-0001", 4)]
    with pytest.raises(CannotWrite):
        publish(files)
    for file in files:
        file.close()
    assert [path.name for path in tmp_path.iterdir()] == ["b"]
    assert (tmp_path / "b").read_bytes() == b"precious"


@pytest.mark.parametrize("after", [1, 2, 3])
def test_an_interrupt_between_two_links_takes_all_of_them_back(
    after: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    real, calls = os.link, []

    def link(*arguments, **options):
        real(*arguments, **options)
        calls.append(arguments)
        if len(calls) == after:
            raise KeyboardInterrupt

    monkeypatch.setattr("os.link", link)
    files = [NewFile(tmp_path / name, 4) for name in ("x", "x.part-0001", "x.part-0002")]
    with pytest.raises(KeyboardInterrupt):
        publish(files)
    for file in files:
        file.close()
    assert list(tmp_path.iterdir()) == []


def test_named_temporary_files_vanish_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("os.O_TMPFILE", 0)  # as on a file system without unnamed files
    file = NewFile(tmp_path / "a", 4)
    assert len(list(tmp_path.iterdir())) == 1
    file.write(b"abcd", 0)
    publish([file])
    file.close()
    assert [path.name for path in tmp_path.iterdir()] == ["a"]
    assert (tmp_path / "a").read_bytes() == b"abcd"
    NewFile(tmp_path / "c", 4).close()
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_a_folder_that_is_not_there(tmp_path: Path):
    with pytest.raises(CannotWrite, match="no folder"):
        require_free([tmp_path / "no" / "a"])
    with pytest.raises(CannotWrite):
        NewFile(tmp_path / "no" / "a", 1)


def test_a_file_that_cannot_grow_leaves_no_temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def refuse(*_):
        raise OSError(27, "File too large")

    monkeypatch.setattr("os.O_TMPFILE", 0)
    monkeypatch.setattr("os.ftruncate", refuse)
    with pytest.raises(CannotWrite, match="too large"):
        NewFile(tmp_path / "a", 4)
    assert list(tmp_path.iterdir()) == []
