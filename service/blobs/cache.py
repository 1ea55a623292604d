"""Blocks of content that a machine has fetched, kept on its disk: bounded over all its processes, oldest use goes first.

    <scratch>/cache/ab/<key>.<block>    the digests of its pieces, then its bytes
    <scratch>/cache/total               bytes that all files together have at most, changed under a lock

A block is believed only as far as its pieces have their digests: what a disk damaged is fetched again. Losing any of
it, or all, costs time alone; so nothing here is synced, and no failure here is told.
"""

import fcntl
import hashlib
import os
import re
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from service import metrics
from service.blobs.sending import BLOCK_BYTES

_PIECE_BYTES: Final = 256 << 10
_DIGEST_BYTES: Final = 32
_TABLE_BYTES: Final = BLOCK_BYTES // _PIECE_BYTES * _DIGEST_BYTES
_KEEP: Final = 0.9  # of the bound, after some had to go
_TOUCH_SECONDS: Final = 60.0  # uses closer than this are one
_STALE_SECONDS: Final = 3600.0  # a file under construction this old has lost its process
_LOCK_TRIES, _LOCK_SECONDS = 20, 0.01
_KEY = re.compile(r"[0-9a-f]{2,160}\Z")


class Cache:
    """The cache of this machine, for every process with the same folder."""

    def __init__(self, folder: Path, max_bytes: int) -> None:
        self._folder, self._max = folder, max_bytes

    @property
    def on(self) -> bool:
        """Whether a single block has room."""
        return self._max >= BLOCK_BYTES + _TABLE_BYTES

    def read(self, key: str, block: int, view: memoryview, offset: int) -> bool:
        """Fill `view` from byte `offset` of a block; False where that cannot be had, and `view` is anything then."""
        found = False
        with suppress(OSError):
            found = self._read(self._path(key, block), view, offset)
        metrics.CACHE.labels(found="yes" if found else "no").inc()
        return found

    def keep(self, key: str, block: int, content: memoryview) -> None:
        """Keep a whole block, where there is room for it or can be made."""
        path = self._path(key, block)
        with suppress(OSError):
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            partial = path.with_name(f".{secrets.token_hex(8)}")
            try:
                if not path.exists() and self._reserve(partial, _TABLE_BYTES + len(content)):
                    _write(partial, content)
                    with self._locked() as descriptor:  # whoever counts sees one of its names, never neither
                        if descriptor is not None:
                            os.replace(partial, path)
            finally:
                partial.unlink(missing_ok=True)

    def forget(self, key: str) -> None:
        """Remove what is kept under keys that begin with this."""
        with suppress(OSError):
            for path in self._path(key, 0).parent.glob(f"{key}*"):
                path.unlink(missing_ok=True)

    def _path(self, key: str, block: int) -> Path:
        if not _KEY.match(key):
            raise ValueError("a key of the cache is hex digits")
        return self._folder / key[:2] / f"{key}.{block}"

    def _read(self, path: Path, view: memoryview, offset: int) -> bool:
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except FileNotFoundError:
            return False
        try:
            status = os.fstat(descriptor)
            sound = _fill(descriptor, status.st_size - _TABLE_BYTES, view, offset)
            if not sound:
                path.unlink(missing_ok=True)
            elif time.time() - status.st_mtime > _TOUCH_SECONDS:
                os.utime(path)
            return sound
        finally:
            os.close(descriptor)

    def _reserve(self, path: Path, size: int) -> bool:
        """Count a file and make it, empty but of its size, so that whoever counts anew finds it."""
        with self._locked() as descriptor:
            if descriptor is None:
                return False
            known = os.pread(descriptor, 20, 0)
            total = int(known) if known.isdigit() else self._max  # never counted, or damaged: count anew
            if total + size > self._max:
                total = self._clear(int(self._max * _KEEP) - size)
                if total + size > self._max:
                    return False
            os.pwrite(descriptor, b"%020d" % (total + size), 0)
            made = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            try:
                os.ftruncate(made, size)
            finally:
                os.close(made)
            return True

    def _clear(self, leave: int) -> int:
        """Remove the blocks longest unused until so many bytes are left; how many there are then."""
        now = time.time()
        files = []
        total = 0
        for folder in self._folder.glob("??"):
            for entry in os.scandir(folder):
                with suppress(FileNotFoundError):
                    status = entry.stat(follow_symlinks=False)
                    total += status.st_size
                    if not entry.name.startswith(".") or now - status.st_mtime > _STALE_SECONDS:
                        files.append((status.st_mtime, status.st_size, entry.path))
        for _, size, path in sorted(files):
            if total <= leave:
                break
            with suppress(FileNotFoundError):
                os.unlink(path)
            total -= size
        return total

    @contextmanager
    def _locked(self) -> Iterator[int | None]:
        """The descriptor of the total; None where another process keeps it: that may be stopped, and nobody waits for it."""
        descriptor = os.open(self._folder / "total", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            yield descriptor if _lock(descriptor) else None
        finally:
            os.close(descriptor)


def _lock(descriptor: int) -> bool:
    for _ in range(_LOCK_TRIES):
        with suppress(BlockingIOError):
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        time.sleep(_LOCK_SECONDS)
    return False


def _write(path: Path, content: memoryview) -> None:
    table = b"".join(
        hashlib.sha256(content[at : at + _PIECE_BYTES]).digest()
        for at in range(0, len(content), _PIECE_BYTES)
    )
    with path.open("r+b") as file:
        file.write(table.ljust(_TABLE_BYTES, b"\0"))
        file.write(content)


def _fill(descriptor: int, size: int, view: memoryview, offset: int) -> bool:
    """Whether every piece that has a part of the range is what its digest says."""
    stop = offset + len(view)
    if not 0 <= offset <= stop <= size <= BLOCK_BYTES:
        return False
    table = os.pread(descriptor, _TABLE_BYTES, 0)
    spare = bytearray(_PIECE_BYTES)
    for begin in range(offset // _PIECE_BYTES * _PIECE_BYTES, stop, _PIECE_BYTES):
        end = min(begin + _PIECE_BYTES, size)
        whole = offset <= begin and end <= stop
        piece = view[begin - offset : end - offset] if whole else memoryview(spare)[: end - begin]
        if os.preadv(descriptor, [piece], _TABLE_BYTES + begin) != len(piece):
            return False
        number = begin // _PIECE_BYTES
        if hashlib.sha256(piece).digest() != table[number * _DIGEST_BYTES : (number + 1) * _DIGEST_BYTES]:
            return False
        if not whole:
            first, last = max(begin, offset), min(end, stop)
            view[first - offset : last - offset] = piece[first - begin : last - begin]
    return True
