"""Segments: what is written is remembered with its place, and comes back there."""

import hashlib
import os
from pathlib import Path
from threading import Thread

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ninfer_core.containers.publish import NewFile
from ninfer_core.containers.segment import SegmentWriter, replay
from ninfer_core.errors import CannotRead, CannotWrite
from ninfer_core.io import CHUNK_BYTES, DiskFile, MemorySource


class Memory:
    """A sink that is an array of bytes."""

    def __init__(self, size: int) -> None:
        self.content = bytearray(size)

    def write(self, content: memoryview, offset: int) -> None:
        """See `Sink.write`."""
        self.content[offset : offset + len(content)] = content


@given(writes=st.lists(st.tuples(st.binary(max_size=40), st.integers(0, 200)), max_size=8))
def test_replay_is_what_was_written(
    tmp_path_factory: pytest.TempPathFactory, writes: list[tuple[bytes, int]]
):
    path = tmp_path_factory.mktemp("segment") / "s"
    straight, later = Memory(240), Memory(240)
    with SegmentWriter(path) as segment:
        for content, offset in writes:
            for sink in (straight, segment):
                sink.write(memoryview(content), offset)
    content = path.read_bytes()
    assert segment.records == [(offset, len(content)) for content, offset in writes]
    assert (segment.bytes, segment.sha256) == (len(content), hashlib.sha256(content).hexdigest())
    done: list[int] = []
    file = DiskFile(path)
    replay(file, segment.records, later, done.append)
    file.close()
    assert later.content == straight.content
    assert sum(done) == segment.bytes


def test_records_longer_than_the_buffer(tmp_path: Path):
    content = os.urandom(CHUNK_BYTES + 5)
    memory = Memory(len(content) + 1)
    done: list[int] = []
    replay(MemorySource("s", content), [(1, len(content))], memory, done.append)
    assert memory.content[1:] == content
    assert done == [CHUNK_BYTES, 5]


@pytest.mark.parametrize("records", [[], [(0, 3)], [(0, 4), (9, 1)]])
def test_records_of_another_segment_are_refused(records: list[tuple[int, int]]):
    memory = Memory(10)
    with pytest.raises(CannotRead, match="segment s has 4 bytes"):
        replay(MemorySource("s", b"abcd"), records, memory)
    assert memory.content == bytes(10)


def test_what_an_earlier_attempt_left_is_written_over(tmp_path: Path):
    (tmp_path / "s").write_bytes(b"a longer one")
    with SegmentWriter(tmp_path / "s") as segment:
        segment.write(memoryview(b"abc"), 7)
    segment.close()
    assert (tmp_path / "s").read_bytes() == b"abc"


def test_threads_may_share_a_segment(tmp_path: Path):
    memory = Memory(64_000)
    with SegmentWriter(tmp_path / "s") as segment:

        def work(number: int) -> None:
            for piece in range(100):
                segment.write(memoryview(bytes([number + 1]) * 160), (number * 100 + piece) * 160)

        threads = [Thread(target=work, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    replay(MemorySource("s", (tmp_path / "s").read_bytes()), segment.records, memory)
    assert memory.content == b"".join(bytes([number + 1]) * 16_000 for number in range(4))


def test_a_segment_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    with pytest.raises(CannotWrite):
        SegmentWriter(tmp_path / "no" / "s")

    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.pwrite", full)
    with SegmentWriter(tmp_path / "s") as segment, pytest.raises(CannotWrite, match="No space left"):
        segment.write(memoryview(b"abc"), 0)
    assert (segment.records, segment.bytes) == ([], 0)


@pytest.mark.parametrize("named", [False, True], ids=["unnamed", "temporary name"])
def test_a_finished_file_under_another_name(named: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    if named:
        monkeypatch.setattr(
            "os.O_TMPFILE", os.O_WRONLY
        )  # refused for a folder, as file systems without it do
    folder, blobs = tmp_path / "work", tmp_path / "blobs"
    folder.mkdir()
    blobs.mkdir()
    file = NewFile(folder / "a", 3)
    try:
        file.write(b"abc", 0)
        file.link_as(blobs / "ff", 0o444)
        with pytest.raises(FileExistsError):
            file.link_as(blobs / "ff")
        with pytest.raises(CannotWrite, match="cannot publish"):
            file.link_as(tmp_path / "no" / "ff")
    finally:
        file.close()
    assert (blobs / "ff").read_bytes() == b"abc"
    assert (blobs / "ff").stat().st_mode & 0o777 == 0o444
    assert list(folder.iterdir()) == []
