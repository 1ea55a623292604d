"""What imports may read: decided on the text of an address, then opened beneath its root, whatever is linked or renamed."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from ninfer_core.errors import CannotRead, LeadsOutside
from ninfer_core.io import ByteSource, read
from service import outside
from service.errors import ImportRefused, ServiceError, TooManyFiles
from service.outside import open_outside
from service.settings import Settings
from tests.s3 import S3Server


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A root with a model in it, and a secret beside it."""
    root = tmp_path / "models"
    (root / "one" / "inner").mkdir(parents=True)
    (root / "one" / "a.safetensors").write_bytes(b"a" * 100)
    (root / "one" / "b.json").write_bytes(b"{}")
    (root / "one" / "inner" / "c").write_bytes(b"c")
    (root / "blobs").mkdir()
    (root / "blobs" / "x").write_bytes(b"blob")
    (tmp_path / "secret").write_bytes(b"secret")
    (tmp_path / "models-too").mkdir()
    (tmp_path / "models-too" / "s").write_bytes(b"secret")
    return root


def settings(tree: Path, **more: Any) -> Settings:
    return Settings(data=tree.parent / "data", import_roots=(tree,), **more)


def contents(files: list[tuple[str, ByteSource]]) -> dict[str, bytes]:
    return {name: read(file, 0, file.size) for name, file in files}


def still_open(tree: Path) -> list[str]:
    """What this process holds open of a tree."""
    found = []
    for name in os.listdir("/proc/self/fd"):
        with suppress(FileNotFoundError):
            found.append(os.readlink(f"/proc/self/fd/{name}"))
    return [path for path in found if path.startswith(str(tree.parent))]


@contextmanager
def no_more_open(tree: Path) -> Iterator[None]:
    before = still_open(tree)
    yield
    assert still_open(tree) == before


def test_a_file_and_the_files_of_a_folder(tree: Path) -> None:
    with no_more_open(tree):
        with open_outside(settings(tree), f"{tree}/one/a.safetensors") as files:
            assert contents(files) == {"a.safetensors": b"a" * 100}
            assert files[0][1].changed() is None
        with open_outside(settings(tree), f"{tree}/one/") as files:
            assert contents(files) == {"a.safetensors": b"a" * 100, "b.json": b"{}"}
        with pytest.raises(TooManyFiles), open_outside(settings(tree, max_files=1), f"{tree}/one"):
            pass


@pytest.mark.parametrize("address", ["{0}/../secret", "{0}/one/../../secret", "{0}/./one", "{0}//one", "{1}/secret",
    "{1}/nothing", "{1}/models-too/s", "/etc/passwd", "/etc/nothing", "/", "", "one/a.safetensors", "../secret", "{0}/o\0ne", "{0}/\ud800",
    "file://{0}/one", "s3://bucket/a", "s3://", "s3:///a", "S3://bucket/a", "http://127.0.0.1/", "{0}/" + "a/" * 5000])  # fmt: skip
def test_what_is_not_below_a_root_is_refused_unseen(
    tree: Path, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = set()

    def looked(*_: object, **__: object) -> None:
        raise AssertionError("it was looked at")

    source = address.format(tree, tree.parent)
    made = settings(tree)
    for name in ("open", "stat", "lstat", "readlink", "listdir"):
        monkeypatch.setattr(os, name, looked)
    monkeypatch.setattr(outside, "Bucket", looked)
    with pytest.raises(ImportRefused) as refused, open_outside(made, source):
        pass
    told.add(str(refused.value))
    assert told == {"This is not below a folder, and not in a bucket, that imports may read."}


def test_links(tree: Path) -> None:
    one = tree / "one"
    (one / "near").symlink_to("../blobs/x")
    (one / "whole").symlink_to(tree / "blobs" / "x")
    (tree / "way").symlink_to("one/inner/../../blobs")
    (one / "away").symlink_to("../../secret")
    (one / "passwd").symlink_to("/etc/passwd")
    (one / "nothing").symlink_to("/nothing/at/all")
    (one / "loop").symlink_to("loop")
    (tree / "up").symlink_to("..")
    os.mkfifo(one / "pipe")
    made = settings(tree)
    with no_more_open(tree):
        for path, content in (("one/near", b"blob"), ("one/whole", b"blob"), ("way/x", b"blob")):
            with open_outside(made, f"{tree}/{path}") as files:
                assert contents(files) == {path.rpartition("/")[2]: content}
        said = set()
        for path in ("one/away", "one/passwd", "one/nothing", "up/secret", "up/models-too"):
            with pytest.raises(LeadsOutside) as refused, open_outside(made, f"{tree}/{path}"):
                pass
            said.add(str(refused.value).partition(" ")[2])
        assert len(said) == 1  # the same whether something is there or not
        for path in ("one/loop", "one/none", "one/a.safetensors/x", "one/pipe", "nothing"):
            with pytest.raises(CannotRead), open_outside(made, f"{tree}/{path}"):
                pass
        with open_outside(
            made, f"{tree}/one"
        ) as files:  # what leads away is not there, and neither is a pipe
            assert sorted(contents(files)) == ["a.safetensors", "b.json", "near", "whole"]


def test_nothing_is_swapped_between_the_look_and_the_reading(tree: Path) -> None:
    made = settings(tree)
    file = tree / "one" / "b.json"
    for swap in (
        lambda: file.symlink_to("../../secret"),
        lambda: file.write_bytes(b"[]"),
        lambda: os.mkfifo(file),
    ):
        with open_outside(made, f"{tree}/one") as files:
            file.unlink()
            swap()
            with pytest.raises(CannotRead):
                contents(files)
        file.unlink()
        file.write_bytes(b"{}")
    with open_outside(made, f"{file}") as files:
        contents(files)
        (tree / "one").rename(tree / "two")
        (tree / "one").symlink_to("..")
        assert contents(files) == {"b.json": b"{}"}
        file = tree / "two" / "b.json"
        file.write_bytes(b"{ }")
        assert files[0][1].changed() is not None


def test_objects_of_buckets(tree: Path, s3: S3Server) -> None:
    bucket, other = s3.bucket(), s3.bucket()
    for key in ("public/m/a", "public/m/b c+%20é.bin", "public/m/deep/c", "public-not/x", "private/s"):
        s3.put(bucket, key, key.encode())
    s3.put(other, "public/m/a", b"other")
    made = settings(tree, s3_endpoint=s3.endpoint, import_buckets=(f"{bucket}/public",))
    with open_outside(made, f"s3://{bucket}/public/m/a") as files:
        assert contents(files) == {"a": b"public/m/a"}
        assert files[0][1].changed() is None
        s3.put(bucket, "public/m/a", b"another!!!")
        assert files[0][1].changed() is not None
        with pytest.raises(CannotRead):
            contents(files)
    with open_outside(made, f"s3://{bucket}/public/m/") as files:
        assert sorted(contents(files)) == ["a", "b c+%20é.bin"]
    few = made.model_copy(update={"max_files": 1})
    with pytest.raises(TooManyFiles), open_outside(few, f"s3://{bucket}/public/m"):
        pass
    for number in range(51):
        s3.put(bucket, f"public/deep/{number}/x", b"x")
    with pytest.raises(TooManyFiles), open_outside(few, f"s3://{bucket}/public/deep"):
        pass
    s3.requests.clear()
    for source in (f"{bucket}/private/s", f"{bucket}/private/none", f"{bucket}/public-not/x", f"{other}/public/m/a",
                   f"{bucket}/public/../private/s", bucket, f"{bucket}/", f"{bucket}//public"):  # fmt: skip
        with pytest.raises(ImportRefused), open_outside(made, f"s3://{source}"):
            pass
    assert s3.requests == []
    for nothing in ("public/none", "public", "public/m/\x01"):
        with pytest.raises((CannotRead, ServiceError)), open_outside(made, f"s3://{bucket}/{nothing}"):
            pass
