"""The cache of a machine: it is never wrong, never larger than it may be, and nobody waits for it."""

import errno
import fcntl
import os
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from ninfer_core.io import read
from service import metrics
from service.blobs.cache import Cache
from service.blobs.sending import BLOCK_BYTES
from tests.s3 import S3Server
from tests.service.test_s3 import LARGE, LARGE_SHA256, bucket_of, opened, put

KEY = "ab" * 20
SMALL = os.urandom(600_001)
FILE_BYTES = 1024  # of a block's table


def size(folder: Path) -> int:
    """Bytes of all files, while nobody begins or names one; one that is given up meanwhile may count or not."""
    with (folder / "total").open("a") as total:
        fcntl.flock(total, fcntl.LOCK_EX)
        sizes = []
        for path in folder.glob("*/*"):
            with suppress(FileNotFoundError):
                sizes.append(path.stat().st_size)
        return sum(sizes)


def found(cache: Cache, key: str, block: int, offset: int, length: int) -> bytes | None:
    buffer = bytearray(length)
    return bytes(buffer) if cache.read(key, block, memoryview(buffer), offset) else None


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "cache"
    made.mkdir()
    return made


@pytest.mark.parametrize("at", [0, 600, 1024, 1024 + 300_000, 1024 + 600_000])
def test_what_a_disk_damaged_is_not_believed(folder: Path, at: int) -> None:
    cache = Cache(folder, 64 << 20)
    assert cache.on
    cache.keep(KEY, 3, memoryview(SMALL))
    for offset, length in ((0, 600_001), (1, 10), (262_143, 2), (600_000, 1), (600_001, 0), (5, 599_000)):
        assert found(cache, KEY, 3, offset, length) == SMALL[offset : offset + length]
    for other in ((KEY, 2, 0, 1), (KEY + "cd", 3, 0, 1), (KEY, 3, 600_000, 2)):
        assert found(cache, *other) is None
    cache.keep(KEY, 3, memoryview(SMALL))
    (path,) = (path for path in folder.rglob("*") if path.is_file() and path.name != "total")
    content = bytearray(path.read_bytes())
    content[at] ^= 1
    path.write_bytes(content)
    got = found(cache, KEY, 3, 0, 600_001)
    assert got == (None if at != 600 else SMALL)  # an unused place of the table
    if at != 600:
        assert not path.exists()  # fetched and kept again next time
    for cut in (0, 100, 1024, 2000):
        cache.keep(KEY, 4, memoryview(SMALL))
        path.with_name(f"{KEY}.4").write_bytes(bytes(content[:cut]))
        assert found(cache, KEY, 4, 0, 10_000) is None


def test_it_is_bounded_over_all_who_use_it_and_the_longest_unused_goes_first(folder: Path) -> None:
    most = 10 * (len(SMALL) + FILE_BYTES) + BLOCK_BYTES
    caches = [Cache(folder, most) for _ in range(4)]
    sizes = []

    def work(number: int) -> None:
        caches[number % 4].keep(f"{number:040x}", 0, memoryview(SMALL))
        sizes.append(size(folder))

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(60)))
    assert max(sizes) <= most
    assert size(folder) > most // 2
    kept = sorted(path for path in folder.glob("*/*"))
    old, new = kept[0], kept[1]
    for place, path in enumerate(kept):
        os.utime(path, (1_000_000 + place, 1_000_000 + place))
    assert found(caches[0], old.stem, 0, 0, 1) == SMALL[:1]  # used now
    for number in range(100, 100 + len(kept) // 2):
        work(number)
    assert old.exists()
    assert not new.exists()
    caches[0].forget(old.stem)
    assert not old.exists()
    (folder / "total").write_bytes(b"damaged")
    work(200)
    assert size(folder) <= most


def test_whoever_counts_sees_each_block(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A block has its name changed under the lock: one that lists the folder meanwhile would find neither."""
    real, named = os.replace, []

    def replace(source: Path, target: Path) -> None:
        with (folder / "total").open("a") as total, pytest.raises(BlockingIOError):
            fcntl.flock(total, fcntl.LOCK_EX | fcntl.LOCK_NB)
        named.append(target)
        real(source, target)

    monkeypatch.setattr(os, "replace", replace)
    Cache(folder, 64 << 20).keep(KEY, 0, memoryview(SMALL))
    assert named == list(folder.glob("*/*"))


def test_nobody_waits_for_it(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = Cache(folder, 64 << 20)
    descriptor = os.open(folder / "total", os.O_RDWR | os.O_CREAT)
    fcntl.flock(descriptor, fcntl.LOCK_EX)  # a process that was stopped
    cache.keep(KEY, 0, memoryview(SMALL))
    assert found(cache, KEY, 0, 0, 1) is None
    os.close(descriptor)
    real = os.replace

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    cache.keep(KEY, 0, memoryview(SMALL))
    assert size(folder) == 0
    monkeypatch.setattr(os, "replace", real)
    cache.keep(KEY, 0, memoryview(SMALL))
    assert found(cache, KEY, 0, 0, 1) == SMALL[:1]
    assert not Cache(folder, 0).on
    for wrong in ("", "../x", "AB", KEY + "/"):
        with pytest.raises(ValueError, match="hex"):
            cache.keep(wrong, 0, memoryview(SMALL))


def counted(answer: str) -> float:
    value: float = metrics.CACHE.labels(found=answer)._value.get()
    return value


def test_what_was_read_once_is_not_fetched_again(
    tmp_path: Path, s3: S3Server, s3_settings: dict[str, Any]
) -> None:
    store = opened(tmp_path / "data", s3_settings)
    put(store, LARGE)
    fetched = f"GET /{bucket_of(s3_settings)}/gate/{store.key(LARGE_SHA256)}"
    hits, misses = counted("yes"), counted("no")
    for _ in range(2):
        again = opened(tmp_path / "data", s3_settings).open(
            LARGE_SHA256, "a"
        )  # another process of this machine
        assert read(again, 0, len(LARGE)) == LARGE
        assert read(again, 3 << 20, 6 << 20) == LARGE[3 << 20 : 9 << 20]
    assert s3.requests.count(fetched) == 2  # two blocks
    assert counted("no") - misses == 2
    assert counted("yes") - hits == 6
    blocks = list((store.scratch / "cache").glob("*/*"))
    assert len(blocks) == 2
    for path in blocks:
        content = path.read_bytes()
        path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    assert read(store.open(LARGE_SHA256, "a"), 0, len(LARGE)) == LARGE
    assert s3.requests.count(fetched) == 4
    assert b"".join(store.pieces(LARGE_SHA256, 0, len(LARGE))) == LARGE
    store.remove(LARGE_SHA256)
    assert list((store.scratch / "cache").glob("*/*")) == []


def test_bytes_damaged_on_their_way_are_told_from_damage_in_the_store(
    tmp_path: Path, s3: S3Server, s3_settings: dict[str, Any]
) -> None:
    store = opened(tmp_path / "data", s3_settings)
    put(store, LARGE)
    s3.fail(method="GET", key="/blobs/", flip=True, times=1)
    file = store.open(LARGE_SHA256, "a")
    assert read(file, 0, len(LARGE)) != LARGE
    assert read(file, 0, len(LARGE)) != LARGE  # out of the cache, which knows no better
    assert file.reread() == LARGE_SHA256
    assert read(file, 0, len(LARGE)) == LARGE
