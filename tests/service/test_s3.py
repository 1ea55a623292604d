"""A store in a bucket: the same words as on disk, and what happens when the server fails."""

import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from ninfer_core.errors import CannotRead, CutShort
from ninfer_core.io import read
from service.blobs import PartStore, S3Store, WrongContent, open_store
from service.blobs import bucket as buckets
from service.settings import Settings
from tests.s3 import S3Server

CONTENT = b"weights of a network" * 1000
SHA256 = hashlib.sha256(CONTENT).hexdigest()
LARGE = os.urandom(1 << 20) * 9 + b"end"
LARGE_SHA256 = hashlib.sha256(LARGE).hexdigest()
JOB = "ab" * 16
UPLOAD = "cd" * 16
_TIMES = {**buckets._RETRIES, "max_retries": 2}


@pytest.fixture
def store(tmp_path: Path, s3_settings: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> S3Store:
    """A store with room for three blocks in its cache, and little patience."""
    monkeypatch.setattr(buckets, "_RETRIES", _TIMES)
    return opened(tmp_path / "data", s3_settings)


def opened(
    data: Path, settings: dict[str, Any], check: Callable[[], None] = lambda: None, **more: Any
) -> S3Store:
    store = open_store(Settings(data=data, **{"cache_bytes": 26 << 20, **settings, **more}), check)
    assert isinstance(store, S3Store)
    assert isinstance(store, PartStore)
    return store


def put(store: S3Store, content: bytes = CONTENT) -> str:
    with store.writer() as writer:
        for at in range(0, len(content), 3 << 20):
            writer.write(content[at : at + (3 << 20)])
        sha256, size = writer.commit()
    assert (sha256, size) == (hashlib.sha256(content).hexdigest(), len(content))
    return sha256


def bucket_of(settings: dict[str, Any]) -> str:
    return str(settings["store"]).split("/")[2]


@pytest.mark.parametrize("content", [b"", CONTENT, LARGE], ids=["nothing", "small", "large"])
def test_what_is_put_is_there_and_can_be_read_anywhere(
    store: S3Store, s3: S3Server, s3_settings: dict[str, Any], content: bytes
) -> None:
    sha256 = put(store, content)
    bucket = bucket_of(s3_settings)
    assert s3.keys(bucket) == [f"gate/blobs/{sha256[:2]}/{sha256}"]
    assert s3.unfinished(bucket) == 0
    assert s3.get(bucket, f"gate/blobs/{sha256[:2]}/{sha256}") == content
    assert store.holds(sha256, len(content))
    assert not store.holds(sha256, len(content) + 1)
    assert store.held({sha256: len(content), "0" * 64: 1}) == {sha256}
    file = store.open(sha256, "a.ninfer")
    assert (file.name, file.size) == ("a.ninfer", len(content))
    for offset, length in [(0, len(content)), (len(content) // 3, len(content) // 2), (len(content), 0)]:
        assert read(file, offset, length) == content[offset : offset + length]
    with pytest.raises(CutShort):
        read(file, 1, len(content))
    assert b"".join(store.pieces(sha256, 5, len(content) - 3)) == content[5 : max(5, len(content) - 3)]
    assert file.changed() is None
    store.remove(sha256)
    store.remove(sha256)
    assert s3.keys(bucket) == []
    assert file.changed() == "it is gone"
    with pytest.raises(CannotRead):
        store.open(sha256, "a")


def test_addresses_are_those_that_clients_reach(s3_settings: dict[str, Any], tmp_path: Path) -> None:
    public = opened(tmp_path / "data", s3_settings, s3_public_endpoint="https://files.example.org/")
    address = public.presign_put(UPLOAD, 7, 60)
    place = f"https://files.example.org/{bucket_of(s3_settings)}/gate/uploads/{UPLOAD}/00007?"
    assert address.startswith(place)
    assert "X-Amz-Expires=60" in address


@pytest.mark.parametrize(
    "store", ["s3://b", "s3://bucket/../x", "s3://bucket/a//b", "s3://bucket/.a", "bucket", "s3://bucket/a?b"]
)
def test_a_store_that_is_no_place(store: str) -> None:
    with pytest.raises(ValueError, match="store"):
        Settings(store=store)


def test_promoted_parts(store: S3Store, s3: S3Server, s3_settings: dict[str, Any]) -> None:
    bucket = bucket_of(s3_settings)
    cut = 6 << 20
    for number, part in ((2, LARGE[cut:]), (1, LARGE[:cut])):
        address = store.presign_put(UPLOAD, number, 60)
        assert address.startswith(s3.endpoint)
        httpx.put(address, content=part).raise_for_status()
    sizes = {1: cut, 2: len(LARGE) - cut}
    assert store.parts(UPLOAD) == sizes
    for wrong, digest in (
        ({1: cut}, LARGE_SHA256),
        (sizes, SHA256),
        ({**sizes, 3: 1}, LARGE_SHA256),
        ({2: 1}, SHA256),
    ):
        with pytest.raises(WrongContent):
            store.promote(UPLOAD, wrong, digest)
        assert len(s3.keys(bucket)) == 2
        assert s3.unfinished(bucket) == 0
    store.promote(UPLOAD, sizes, LARGE_SHA256)
    store.promote(UPLOAD, sizes, LARGE_SHA256)
    assert read(store.open(LARGE_SHA256, "a"), 0, len(LARGE)) == LARGE
    store.drop_upload(UPLOAD)
    store.drop_upload(UPLOAD)
    assert store.parts(UPLOAD) == {}
    assert store.holds(LARGE_SHA256, len(LARGE))
