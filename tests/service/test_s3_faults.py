"""A store in a bucket whose server fails: what passes is tried again, what does not has a name, and nothing is lost."""

import errno
import hashlib
import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from ninfer_core.containers.publish import NewFile
from ninfer_core.errors import CannotRead, CannotWrite
from ninfer_core.io import read
from service.blobs import BlobStore, S3Store, StoreAway, StoreFull, WrongContent, open_store
from service.blobs import bucket as buckets
from service.settings import Settings
from tests.s3 import S3Server
from tests.service.test_s3 import CONTENT, JOB, LARGE, LARGE_SHA256, SHA256, UPLOAD, bucket_of, opened, put

_SOON = timedelta(milliseconds=20)
_HASTY = {
    **buckets._RETRIES,
    "max_retries": 2,
    "backoff": {"init_backoff": _SOON, "max_backoff": _SOON, "base": 2},
}


class Told(Exception):
    """The work was told to stop."""


class Check:
    """Says stop some time after it was armed."""

    def __init__(self) -> None:
        self.at: float | None = None

    def __call__(self) -> None:
        if self.at is not None and time.monotonic() > self.at:
            raise Told


@pytest.fixture
def check() -> Check:
    return Check()


@pytest.fixture
def store(
    tmp_path: Path, s3_settings: dict[str, Any], check: Check, monkeypatch: pytest.MonkeyPatch
) -> S3Store:
    """A store with little patience and no cache."""
    monkeypatch.setattr(buckets, "_RETRIES", _HASTY)
    return opened(tmp_path / "data", s3_settings, check, cache_bytes=0)


def left(store: S3Store) -> list[str]:
    """What is still on its way on this machine."""
    return os.listdir(store.scratch / "incoming")


def test_what_passes_is_tried_again(store: S3Store, s3: S3Server) -> None:
    s3.fail(status=500, times=2, method="PUT")
    put(store)
    for fault in ({"status": 503}, {"status": 429}, {"cut": True}):
        for method in ("HEAD", "GET"):
            s3.fail(times=2, method=method, **fault)
            assert read(store.open(SHA256, "a"), 7, 1000) == CONTENT[7:1007]
    with store.writer() as writer:
        writer.write(LARGE)
        s3.fail(status=500, times=2, key="/blobs/")
        writer.commit()
    s3.mend()
    assert read(store.open(LARGE_SHA256, "a"), 0, len(LARGE)) == LARGE


@pytest.mark.parametrize("fault", [{"status": 500}, {"status": 403}], ids=str)
def test_a_store_that_does_not_answer_says_nothing_of_content(
    store: S3Store, s3: S3Server, s3_settings: dict[str, Any], fault: dict[str, Any]
) -> None:
    put(store)
    file = store.open(SHA256, "a")
    part = put_part(store, s3, bucket_of(s3_settings))
    s3.fail(key=bucket_of(s3_settings), **fault)
    said = []
    for ask in (
        lambda: store.holds(SHA256, 1),
        lambda: store.held({SHA256: 1}),
        lambda: store.open(SHA256, "a"),
        lambda: read(file, 0, 5),
        lambda: next(store.pieces(SHA256, 0, 5)),
        lambda: store.segment(JOB, SHA256),
    ):
        with pytest.raises(StoreAway) as away:
            ask()
        assert not isinstance(away.value, CannotRead)
        said.append(str(away.value))
    work = store.work(JOB) / "x.partial"
    work.write_bytes(CONTENT)
    composed = NewFile(store.work(JOB) / "out", len(CONTENT))
    composed.write(CONTENT, 0)
    writer = store.writer()
    writer.write(LARGE)
    for keep in (
        writer.commit,
        lambda: store.take(work, SHA256),
        lambda: store.adopt(composed, SHA256),
        lambda: store.keep_segment(JOB, work, SHA256),
        lambda: store.remove(SHA256),
        store.require_writable,
    ):
        with pytest.raises(StoreAway) as away:
            keep()
        assert isinstance(away.value, CannotWrite)
        assert away.value.passing
        said.append(str(away.value))
    with pytest.raises(StoreAway):
        store.promote(UPLOAD, part, LARGE_SHA256)
    composed.close()
    store.clear_work(JOB)
    for text in said:
        assert "127.0.0.1" not in text, text
        assert "tests" not in text, text
    s3.mend()
    assert s3.keys(bucket_of(s3_settings)) == sorted(
        [f"gate/blobs/{SHA256[:2]}/{SHA256}", f"gate/uploads/{UPLOAD}/00001"]
    )
    assert read(file, 0, 5) == CONTENT[:5]
    store.promote(UPLOAD, part, LARGE_SHA256)
    assert store.holds(LARGE_SHA256, len(LARGE))
    assert left(store) == []


def put_part(store: S3Store, s3: S3Server, bucket: str) -> dict[int, int]:
    assert UPLOAD in store.presign_put(UPLOAD, 1, 60)
    s3.put(bucket, f"gate/uploads/{UPLOAD}/00001", LARGE)
    return {1: len(LARGE)}


def test_a_bucket_or_a_server_that_is_not_there(
    store: S3Store, s3: S3Server, s3_settings: dict[str, Any], tmp_path: Path
) -> None:
    for settings in (
        {**s3_settings, "store": "s3://not-there/gate"},
        {**s3_settings, "s3_endpoint": "http://127.0.0.1:1"},
    ):
        other = opened(tmp_path / "other", settings)
        for ask in (
            partial(other.holds, SHA256, 1),
            partial(other.open, SHA256, "a"),
            partial(next, other.works()),
        ):
            with pytest.raises(StoreAway):
                ask()
        begin = time.monotonic()
        with pytest.raises(CannotWrite):
            other.require_writable()
        assert time.monotonic() - begin < 5
        with pytest.raises(StoreAway):
            put(other)
    store.require_writable()
    requests = len(s3.requests)
    store.require_writable()
    assert len(s3.requests) == requests  # it was asked a moment ago


def test_work_that_waits_for_a_store_can_be_stopped(
    store: S3Store, s3: S3Server, s3_settings: dict[str, Any], check: Check
) -> None:
    put(store)
    file = store.open(SHA256, "a")
    s3.fail(key="/blobs/", seconds=3)
    works: list[Callable[[], object]] = [lambda: read(file, 0, 5), lambda: put(store, LARGE)]
    for work in works:
        check.at = time.monotonic() + 0.3
        with pytest.raises(Told):
            work()
        assert time.monotonic() - check.at < 1.5
        check.at = None
    s3.mend()
    bucket = bucket_of(s3_settings)
    deadline = time.monotonic() + 20
    while s3.unfinished(bucket) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert s3.unfinished(bucket) == 0
    assert s3.keys(bucket) == [f"gate/blobs/{SHA256[:2]}/{SHA256}"]


def test_content_that_is_put_again_while_it_is_read(
    store: S3Store, s3: S3Server, s3_settings: dict[str, Any]
) -> None:
    put(store, LARGE)
    bucket, key = bucket_of(s3_settings), f"gate/{store.key(LARGE_SHA256)}"
    file = store.open(LARGE_SHA256, "a")
    before = buckets_etag(store, LARGE_SHA256)
    s3.put(bucket, key, LARGE)  # in one part: the same bytes, and another tag
    assert buckets_etag(store, LARGE_SHA256) != before
    assert read(file, 5, 100) == LARGE[5:105]
    assert file.changed() is None
    for other in (LARGE[:-1] + b"?", LARGE[:-1]):
        s3.put(bucket, key, LARGE)
        file = store.open(LARGE_SHA256, "a")
        s3.put(bucket, key, other)
        with pytest.raises(CannotRead, match="changed in the store"):
            read(file, 5, 100)
        change = file.changed()
        assert change is not None
        assert (hashlib.sha256(other).hexdigest() in change) == (len(other) == len(LARGE))
    put(store, LARGE)  # what is pushed again mends it
    assert read(store.open(LARGE_SHA256, "a"), 0, len(LARGE)) == LARGE


def buckets_etag(store: S3Store, sha256: str) -> str | None:
    found = store._bucket.find(store.key(sha256))
    assert found is not None
    return found.etag


def test_what_is_sent_is_what_was_promised(store: S3Store, s3: S3Server, s3_settings: dict[str, Any]) -> None:
    path = store.work(JOB) / "x"
    for content, digest in ((LARGE, SHA256), (CONTENT, LARGE_SHA256)):
        path.write_bytes(content)
        for keep in (partial(store.take, path, digest), partial(store.keep_segment, JOB, path, digest)):
            with pytest.raises(WrongContent):
                keep()
    assert s3.keys(bucket_of(s3_settings)) == []
    assert s3.unfinished(bucket_of(s3_settings)) == 0


def test_segments_of_a_job_are_found_anywhere(
    store: S3Store, s3: S3Server, s3_settings: dict[str, Any], tmp_path: Path
) -> None:
    path = store.work(JOB) / "x.partial"
    path.write_bytes(CONTENT)
    store.keep_segment(JOB, path, SHA256)
    assert not path.exists()
    other = opened(tmp_path / "other", s3_settings)
    assert list(other.works()) == [JOB]
    assert read(other.segment(JOB, SHA256), 0, len(CONTENT)) == CONTENT
    other.clear_work(JOB)
    other.clear_work(JOB)
    assert list(other.works()) == []
    assert s3.keys(bucket_of(s3_settings)) == []
    for wrong in ("", "..", "x" * 32, JOB + "/"):
        for name in (store.work, store.clear_work, store.parts, store.drop_upload):
            with pytest.raises(ValueError, match="hex digits"):
                name(wrong)
    with pytest.raises(ValueError, match="number"):
        store.presign_put(UPLOAD, 0, 60)


@pytest.mark.parametrize("place", ["disk", "bucket"])
def test_a_full_disk(
    tmp_path: Path, s3_settings: dict[str, Any], monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    settings = Settings(data=tmp_path / "data", **(s3_settings if place == "bucket" else {}))
    made = open_store(settings)
    assert isinstance(made, S3Store if place == "bucket" else BlobStore)

    def full(*_: object, **__: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch, made.writer() as writer:
        writer.write(CONTENT)
        patch.setattr(os, "write", full)
        with pytest.raises(StoreFull, match="No space left"):
            writer.write(CONTENT)
        with pytest.raises(StoreFull):
            made.require_writable()
    assert os.listdir(made.scratch / "incoming") == []
    with made.writer() as writer:
        writer.write(CONTENT)
        assert writer.commit() == (SHA256, len(CONTENT))
    if place == "disk":
        with monkeypatch.context() as patch, made.writer() as writer:
            writer.write(CONTENT)
            patch.setattr(os, "link", full)
            with pytest.raises(StoreFull):
                writer.commit()
    assert made.holds(SHA256, len(CONTENT))


def test_many_threads_read_and_write(store: S3Store) -> None:
    def work(number: int) -> bool:
        content = CONTENT + str(number % 2).encode()
        return read(store.open(put(store, content), "a"), 0, len(content)) == content

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work, range(8)))
