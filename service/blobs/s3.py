"""Content by its digest in a bucket of an S3-compatible server, for any number of machines.

    <prefix>/blobs/ab/<sha256>           content
    <prefix>/work/<job id>/<sha256>      segments of a running conversion
    <prefix>/uploads/<upload id>/<part>  parts that clients put there themselves, until they are made content

A machine's own folder holds what is on its way, and its cache. An object is there whole or not at all; the server
proves each part by the digest that its signature covers, and an object by its size; what is sent is hashed as it goes.
"""

import re
import secrets
import shutil
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

import structlog

from ninfer_core.containers.publish import NewFile
from ninfer_core.errors import CannotRead, CannotWrite
from ninfer_core.io import ByteSource, DiskFile
from service.blobs.bucket import Bucket, Found, Missing
from service.blobs.cache import Cache
from service.blobs.errors import StoreAway, WrongContent, not_written
from service.blobs.local import job_named, sha256_named
from service.blobs.remote import RemoteFile
from service.blobs.sending import BLOCK_BYTES, Outgoing
from service.blobs.spool import Spool

log = structlog.get_logger()

MAX_PARTS: Final = 10_000  # of one upload
_PROBED_SECONDS: Final = 10.0  # that a store found writable is taken to be so
_LOOKS_AT_ONCE: Final = 16
_UPLOAD_ID = re.compile(r"[0-9a-f]{32}\Z")
_PIECE_BYTES: Final = 4 << 20


class S3Store:
    """The content of every project (a `Blobs`, and a `PartStore`)."""

    def __init__(self, bucket: Bucket, quick: Bucket, scratch: Path, cache_bytes: int) -> None:
        """`quick` is the same bucket with little patience, for what is asked inside of transactions. Raises: CannotWrite."""
        self.scratch = scratch
        self._bucket, self._quick = bucket, quick
        self._incoming, self._work = scratch / "incoming", scratch / "work"
        self._cache = Cache(scratch / "cache", cache_bytes)
        self._probed = -_PROBED_SECONDS
        try:
            scratch.mkdir(mode=0o700, parents=True, exist_ok=True)
            for folder in (self._incoming, self._work, scratch / "cache"):
                folder.mkdir(mode=0o700, exist_ok=True)
        except OSError as error:
            raise not_written(error, str(scratch)) from error

    def key(self, sha256: str) -> str:
        """Where content lies or would lie. Raises: ValueError for anything but 64 hex digits."""
        return f"blobs/{sha256_named(sha256)[:2]}/{sha256}"

    def holds(self, sha256: str, size: int) -> bool:
        """See `Blobs.holds`. Raises: StoreAway."""
        found = self._quick.find(self.key(sha256))
        return found is not None and found.size == size

    def held(self, wanted: Mapping[str, int]) -> frozenset[str]:
        """See `Blobs.held`. Raises: StoreAway."""
        if not wanted:
            return frozenset()
        with ThreadPoolExecutor(min(_LOOKS_AT_ONCE, len(wanted)), thread_name_prefix="held") as pool:
            answers = pool.map(lambda item: self.holds(*item), wanted.items())
            return frozenset(sha256 for sha256, here in zip(wanted, answers, strict=True) if here)

    def open(self, sha256: str, name: str) -> RemoteFile:
        """The content, called `name` in reports. Raises: CannotRead, StoreAway."""
        found = self._bucket.find(self.key(sha256))
        if found is None:
            raise CannotRead(f"the store cannot open {name}, sha256 {sha256}")
        return RemoteFile(self._bucket, found, name, sha256, self._cache)

    def pieces(self, sha256: str, start: int, stop: int) -> Iterator[bytes]:
        """See `Blobs.pieces`. Raises: CannotRead, StoreAway."""
        key = self.key(sha256)
        found = self._bucket.find(
            key
        )  # not through the cache: what is only sent out would push all else out of it
        if found is None:
            raise Missing(f"the store does not hold sha256 {sha256}")
        for offset in range(start, stop, _PIECE_BYTES):
            yield bytes(self._bucket.read(key, offset, min(stop, offset + _PIECE_BYTES), found.etag))

    def writer(self) -> "S3Writer":
        """New content, its digest not known yet. Raises: CannotWrite."""
        return S3Writer(self, self._incoming)

    def put(self, source: ByteSource, sha256: str) -> None:
        """Store the whole of `source`, whose digest is this; again, when it lies there: that repairs what was damaged.

        Raises: WrongContent, StoreAwayForWriting, CannotRead.
        """
        self._bucket.put(self.key(sha256), source, sha256)

    def take(self, path: Path, sha256: str) -> None:
        """See `Blobs.take`. Raises: CannotWrite."""
        self._take(path, self.key(sha256), sha256)

    def adopt(self, file: NewFile, sha256: str) -> None:
        """See `Blobs.adopt`. Raises: CannotWrite."""
        self.put(file, sha256)

    def remove(self, sha256: str) -> None:
        """See `Blobs.remove`. Raises: StoreAwayForWriting."""
        self._quick.remove([self.key(sha256)])
        self._cache.forget(sha256)

    def require_writable(self) -> None:
        """See `Blobs.require_writable`. A store is not asked again for some seconds."""
        with self.writer() as writer:
            writer.write(bytes(4096))
        if time.monotonic() - self._probed < _PROBED_SECONDS:
            return
        source = Spool(self._incoming)
        with source:
            source.write(secrets.token_bytes(16))
            self._quick.put("probe", source, source.sha256)
        self._probed = time.monotonic()

    def work(self, job_id: str) -> Path:
        """See `Blobs.work`. Raises: ValueError, CannotWrite."""
        folder = self._work / job_named(job_id)
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise not_written(error, str(self._work)) from error
        return folder

    def keep_segment(self, job_id: str, path: Path, sha256: str) -> None:
        """See `Blobs.keep_segment`. Raises: CannotWrite."""
        self._take(path, self._segment(job_id, sha256), sha256)
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            raise not_written(error, str(path.parent)) from error

    def segment(self, job_id: str, sha256: str) -> RemoteFile:
        """See `Blobs.segment`. Raises: CannotRead, StoreAway."""
        found = self._bucket.find(self._segment(job_id, sha256))
        if found is None:
            raise CannotRead(f"the store cannot open the segment {sha256}")
        return RemoteFile(self._bucket, found, sha256, sha256, None)

    def clear_work(self, job_id: str) -> None:
        """See `Blobs.clear_work`: what a store that is away keeps is cleared when it is tidied."""
        shutil.rmtree(self._work / job_named(job_id), ignore_errors=True)
        try:
            self._bucket.remove([found.key for found in self._bucket.below(f"work/{job_id}")])
        except StoreAway as error:
            log.warning("work.kept", job=job_id, error=str(error))

    def works(self) -> Iterator[str]:
        """See `Blobs.works`. Raises: StoreAway."""
        here = {path.name for path in self._work.iterdir()}
        for name in sorted(here.union(self._bucket.folders("work"))):
            try:
                yield job_named(name)
            except ValueError:
                continue  # nothing of ours

    def presign_put(self, upload_id: str, part: int, expires_seconds: float) -> str:
        """See `PartStore.presign_put`. Raises: ValueError, StoreAway."""
        return self._bucket.sign("PUT", self._part(upload_id, part), expires_seconds)

    def parts(self, upload_id: str) -> dict[int, int]:
        """See `PartStore.parts`. Raises: StoreAway."""
        return {number: found.size for number, found in self._parts(upload_id).items()}

    def promote(self, upload_id: str, parts: Mapping[int, int], sha256: str) -> None:
        """See `PartStore.promote`. Raises: WrongContent, Missing, StoreAway."""
        key, found = self.key(sha256), self._parts(upload_id)
        for number, size in sorted(parts.items()):
            if number not in found or found[number].size != size:
                there = f"{found[number].size:,} bytes" if number in found else "missing"
                raise WrongContent(f"{size:,} bytes in part {number}", there)
        joined = _Parts(self._bucket, [found[number] for number in sorted(parts)])
        self._bucket.put_pieces(key, Outgoing(joined.size, sha256, joined.get))

    def uploads(self) -> Iterator[str]:
        """See `PartStore.uploads`. Raises: StoreAway."""
        yield from filter(_UPLOAD_ID.match, self._bucket.folders("uploads"))

    def drop_upload(self, upload_id: str) -> None:
        """See `PartStore.drop_upload`. Raises: StoreAway."""
        self._bucket.remove([found.key for found in self._bucket.below(f"uploads/{_upload(upload_id)}")])

    def _take(self, path: Path, key: str, sha256: str) -> None:
        try:
            source = DiskFile(path, follow=False)
        except CannotRead as error:
            raise CannotWrite(str(error)) from error
        try:
            self._bucket.put(key, source, sha256)
        finally:
            source.close()

    def _segment(self, job_id: str, sha256: str) -> str:
        return f"work/{job_named(job_id)}/{sha256_named(sha256)}"

    def _part(self, upload_id: str, part: int) -> str:
        if not 1 <= part <= MAX_PARTS:
            raise ValueError(f"a part has a number from 1 to {MAX_PARTS}")
        return f"uploads/{_upload(upload_id)}/{part:05}"

    def _parts(self, upload_id: str) -> dict[int, Found]:
        found = {}
        for item in self._bucket.below(f"uploads/{_upload(upload_id)}"):
            name = item.key.rsplit("/", 1)[-1]
            if name.isdecimal():
                found[int(name)] = item
        return found


class S3Writer(Spool):
    """Content on its way in: hashed into a file of this machine, put into the store by `commit`."""

    def __init__(self, store: S3Store, folder: Path) -> None:
        """Raises: CannotWrite."""
        super().__init__(folder)
        self._store = store

    def commit(self) -> tuple[str, int]:
        """(sha256, bytes), durable under its digest; the writer is closed. Raises: CannotWrite, StoreAway."""
        return self.finish(lambda _descriptor, _name: self._store.put(self, self.sha256))


class _Parts:
    """The parts of an upload in their order, read as one; each of them the object that was listed."""

    def __init__(self, bucket: Bucket, parts: list[Found]) -> None:
        self._bucket, self._parts = bucket, parts
        self.size = sum(part.size for part in parts)

    def get(self, start: int, stop: int) -> bytes:
        """The bytes from one offset to before another. Raises: CannotRead, StoreAway."""
        content = bytearray()
        first = 0
        for part in self._parts:
            begin, end = max(start, first), min(stop, first + part.size)
            for at in range(begin, end, BLOCK_BYTES):
                until = min(end, at + BLOCK_BYTES)
                content += self._bucket.read(part.key, at - first, until - first, part.etag)
            first += part.size
        return bytes(content)


def _upload(upload_id: str) -> str:
    if not _UPLOAD_ID.match(upload_id):
        raise ValueError("an upload is named by 32 lower-case hex digits")
    return upload_id
