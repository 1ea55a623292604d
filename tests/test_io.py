"""Byte sources: whole reads or a named failure, ranges that straddle parts, names that stay names."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ninfer_core.errors import CannotRead, CutShort
from ninfer_core.io import DiskFile, DiskFiles, Joined, MemorySource, chunks, is_plain_name, read, sha256


def test_reading_past_the_end_is_cut_short(tmp_path: Path):
    path = tmp_path / "a"
    path.write_bytes(b"0123456789")
    for source in (
        DiskFile(path),
        MemorySource("a", b"0123456789"),
        Joined("a", [(MemorySource("a", b"0123456789"), 0, 10)]),
    ):
        assert read(source, 3, 4) == b"3456"
        with pytest.raises(CutShort) as error:
            read(source, 8, 5)
        assert (error.value.wanted, error.value.got) == (5, 2)


def test_what_is_no_regular_file_is_refused_at_once(tmp_path: Path):
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path, tmp_path / "pipe", tmp_path / "none", Path("/dev/zero")):
        with pytest.raises(CannotRead):
            DiskFile(path)


def test_changes_are_told(tmp_path: Path):
    path = tmp_path / "a"
    path.write_bytes(b"0123456789")
    file = DiskFile(path)
    assert file.changed() is None
    os.utime(path, ns=(1, 1))
    assert file.changed() == "written to after it was opened"
    path.write_bytes(b"01")
    assert "2 bytes now" in (file.changed() or "")
    file.close()
    file.close()


@given(parts=st.lists(st.binary(min_size=1, max_size=9), min_size=1, max_size=5), data=st.data())
def test_joined_ranges(parts: list[bytes], data: st.DataObject):
    joined = Joined(
        "j", [(MemorySource(str(i), b"xx" + part + b"y"), 2, len(part)) for i, part in enumerate(parts)]
    )
    whole = b"".join(parts)
    begin = data.draw(st.integers(0, len(whole)))
    end = data.draw(st.integers(begin, len(whole)))
    assert read(joined, begin, end - begin) == whole[begin:end]
    assert (
        b"".join(bytes(piece) for piece in chunks(joined, begin, end - begin, bytearray(3)))
        == whole[begin:end]
    )


def test_digest_reports_its_progress():
    done: list[int] = []
    digest = sha256(MemorySource("a", b"abc"), progress=done.append)
    assert digest == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    assert done == [3]


def test_only_listed_names_are_opened(tmp_path: Path):
    (tmp_path / "a").write_bytes(b"1")
    (tmp_path / "sub").mkdir()
    with DiskFiles(tmp_path) as files:
        assert files.names == ("a",)
        assert files.open("a") is files.open("a")
        for name in ("../a", "sub", "/etc/passwd", "b"):
            with pytest.raises(CannotRead):
                files.open(name)


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "a\\b", "a\0b", "/a", "\ud800", "x" * 256])
def test_names_that_are_no_plain_names(name: str):
    assert not is_plain_name(name)


def test_plain_names():
    assert all(map(is_plain_name, ("a", "m.ninfer.part-0001", "...", "ä", "x" * 255)))
