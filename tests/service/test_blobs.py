"""The content store: whole or not at all, under its digest, never modified, and no name becomes a path."""

import hashlib
import os
import stat
import threading
from pathlib import Path

import pytest

from ninfer_core.containers.publish import NewFile
from ninfer_core.errors import CannotRead, CannotWrite
from ninfer_core.io import read
from service.blobs import BlobFiles, BlobStore, BlobWriter

CONTENT = b"weights" * 1000
SHA256 = hashlib.sha256(CONTENT).hexdigest()


@pytest.fixture
def store(tmp_path: Path) -> BlobStore:
    return BlobStore(tmp_path / "data")


def put(store: BlobStore, content: bytes = CONTENT) -> str:
    """The sha256 of content that is stored now."""
    with store.writer() as writer:
        writer.write(content)
        return writer.commit()[0]


def files(store: BlobStore) -> list[Path]:
    """Every file in the store's folder."""
    return [path for path in store.root.rglob("*") if path.is_file()]


def test_content_is_kept_under_its_digest_and_may_not_be_written(store: BlobStore) -> None:
    with store.writer() as writer:
        for begin in range(0, len(CONTENT), 100):
            writer.write(CONTENT[begin : begin + 100])
        assert files(store) == [] or writer._temporary is not None
        assert writer.commit() == (SHA256, len(CONTENT))
    path = store.root / "blobs" / SHA256[:2] / SHA256
    assert files(store) == [path] == [store.path(SHA256)]
    assert path.read_bytes() == CONTENT
    assert stat.S_IMODE(path.stat().st_mode) == 0o444
    assert store.holds(SHA256, len(CONTENT))
    assert not store.holds(SHA256, len(CONTENT) - 1)


def test_the_same_content_again_changes_nothing(store: BlobStore) -> None:
    put(store)
    reader = store.open(SHA256, "reader")
    assert put(store) == SHA256
    assert read(reader, 0, reader.size) == CONTENT
    assert reader.changed() is None
    reader.close()
    assert store.path(SHA256).read_bytes() == CONTENT
    assert store.path(SHA256).stat().st_mode & 0o777 == 0o444
    assert files(store) == [store.path(SHA256)]


@pytest.mark.parametrize("damaged", [b"", b"x" * len(CONTENT)], ids=["cut", "changed"])
def test_content_that_was_damaged_is_repaired_by_the_next_who_brings_it(
    store: BlobStore, damaged: bytes
) -> None:
    path = store.path(put(store))

    def damage() -> None:
        path.chmod(0o644)
        path.write_bytes(damaged)

    damage()
    put(store)
    assert path.read_bytes() == CONTENT
    damage()
    file = NewFile(store.work("ab" * 16) / "out.ninfer", len(CONTENT))
    file.write(CONTENT, 0)
    store.adopt(file, SHA256)
    file.close()
    assert path.read_bytes() == CONTENT
    assert path.stat().st_mode & 0o777 == 0o444
    assert files(store) == [path]


def test_many_writers_of_the_same_content(store: BlobStore) -> None:
    found: list[str] = []
    threads = [threading.Thread(target=lambda: found.append(put(store))) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [SHA256] * 16
    assert files(store) == [store.path(SHA256)]


def test_what_is_not_committed_leaves_nothing(store: BlobStore) -> None:
    writer = store.writer()
    writer.write(CONTENT)
    writer.abort()
    writer.abort()
    assert files(store) == []
    with pytest.raises(CannotWrite):
        writer.write(b"after the end")


def test_a_file_system_without_nameless_files(store: BlobStore, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.open

    def refusing(path: Path, flags: int, *more: int, **names: int) -> int:
        if flags & os.O_TMPFILE == os.O_TMPFILE:
            raise OSError(95, "not supported")
        return real(path, flags, *more, **names)

    monkeypatch.setattr(os, "open", refusing)
    writer = store.writer()
    writer.write(CONTENT)
    assert [path.parent.name for path in files(store)] == ["incoming"]
    writer.abort()
    assert files(store) == []
    assert put(store) == SHA256
    assert files(store) == [store.path(SHA256)]


def test_an_empty_file_is_content(store: BlobStore) -> None:
    assert store.holds(put(store, b""), 0)


def test_a_composed_file_is_adopted(store: BlobStore) -> None:
    job = "ab" * 16
    file = NewFile(store.work(job) / "out.ninfer", len(CONTENT))
    file.write(CONTENT, 0)
    store.adopt(file, SHA256)
    store.adopt(file, SHA256)  # a step that is done twice
    file.close()
    store.clear_work(job)
    store.clear_work(job)
    assert files(store) == [store.path(SHA256)]
    assert stat.S_IMODE(store.path(SHA256).stat().st_mode) == 0o444
    assert not (store.root / "work" / job).exists()


@pytest.mark.parametrize(
    "name", ["", "..", "../" * 20 + "etc", SHA256.upper(), SHA256 + "0", SHA256[:-1], SHA256 + "\n"]
)
def test_only_digests_become_paths(store: BlobStore, name: str) -> None:
    with pytest.raises(ValueError, match="hex digits"):
        store.path(name)
    with pytest.raises(ValueError, match="hex digits"):
        store.work(name)
    with pytest.raises(ValueError, match="hex digits"):
        store.clear_work(name)


def test_files_by_the_names_of_an_artifact(store: BlobStore) -> None:
    put(store)
    with BlobFiles(store, {"a.ninfer": SHA256, "gone": "0" * 64}) as named:
        assert named.names == ("a.ninfer", "gone")
        assert "a.ninfer" in named
        assert "b" not in named
        opened = named.open("a.ninfer")
        assert opened is named.open("a.ninfer")
        assert (opened.name, opened.size) == ("a.ninfer", len(CONTENT))
        assert read(opened, 7, 7) == b"weights"
        for name in ("gone", "b", f"../{SHA256}"):
            with pytest.raises(CannotRead):
                named.open(name)


def test_a_link_in_place_of_content_is_not_followed(store: BlobStore, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("secret")
    store.place(SHA256).symlink_to(secret)
    with pytest.raises(CannotRead):
        store.open(SHA256, "a")


def test_a_full_disk_is_told(store: BlobStore, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    writer: BlobWriter = store.writer()
    monkeypatch.setattr(os, "write", full)
    with pytest.raises(CannotWrite, match="No space left"):
        writer.write(CONTENT)
    writer.abort()


def test_a_place_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(CannotWrite):
        BlobStore(tmp_path / "file")
    store = BlobStore(tmp_path / "data")
    store.require_writable()
    (tmp_path / "data" / "incoming").rmdir()
    with pytest.raises(CannotWrite):
        store.require_writable()
