"""Content in a bucket, open for reading: in ranges of the very object that was opened, through the machine's cache."""

import hashlib
import threading

from ninfer_core.errors import CannotRead, CutShort
from ninfer_core.io import Buffer, printable_name
from service.blobs.bucket import Bucket, Found, Replaced
from service.blobs.cache import Cache
from service.blobs.sending import BLOCK_BYTES


class RemoteFile:
    """An object (an `OpenBlob`); with a digest, one that is put again meanwhile is still the same content."""

    def __init__(
        self, bucket: Bucket, found: Found, name: str, sha256: str | None, cache: Cache | None
    ) -> None:
        self.name, self.size = printable_name(name), found.size
        self._bucket, self._found, self._sha256 = bucket, found, sha256
        self._cache = cache if cache is not None and cache.on and sha256 is not None else None
        self._change: str | None = None
        self._lock = threading.Lock()

    def read_into(self, buffer: Buffer, offset: int) -> None:
        """See `ByteSource.read_into`. Raises also: StoreAway."""
        view = memoryview(buffer).cast("B")
        if offset + len(view) > self.size:
            raise CutShort(self.name, offset, len(view), max(0, self.size - offset))
        at, end = offset, offset + len(view)
        while at < end:
            block = at // BLOCK_BYTES
            stop = min(end, (block + 1) * BLOCK_BYTES if self._cache is not None else at + BLOCK_BYTES)
            part = view[at - offset : stop - offset]
            if self._cache is None:
                part[:] = self._fetch(at, stop)
            elif not self._cache.read(self._key, block, part, at - block * BLOCK_BYTES):
                begin = block * BLOCK_BYTES
                content = self._fetch(begin, min(self.size, begin + BLOCK_BYTES))
                self._cache.keep(self._key, block, content)
                part[:] = content[at - begin : stop - begin]
            at = stop

    @property
    def _key(self) -> str:
        # Another object under the same key has blocks of its own: one that was damaged, or mended, is read anew.
        version = hashlib.sha256(f"{self._found.etag} {self.size}".encode()).hexdigest()
        return f"{self._sha256}{version[:16]}"

    def _fetch(self, start: int, stop: int) -> memoryview:
        while True:
            found = self._found
            try:
                return self._bucket.read(found.key, start, stop, found.etag)
            except Replaced as error:
                self._follow(found)
                if self._change is not None:
                    raise CannotRead(f"{self.name} was changed in the store: {self._change}") from error

    def _follow(self, before: Found) -> None:
        """Find out what lies there by now: the same content, which goes on, or a change."""
        with self._lock:
            if self._found is not before or self._change is not None:
                return  # another thread did
            found = self._bucket.find(before.key)
            if found is None:
                self._change = "it is gone"
            elif found.size != self.size:
                self._change = f"{self.size:,} bytes when opened, {found.size:,} bytes now"
            elif self._sha256 is None:
                self._change = "written to after it was opened"
            elif (digest := self._digest(found)) != self._sha256:
                self._change = f"stored as sha256 {self._sha256}, replaced by content with {digest}"
            else:
                self._found = found

    def _digest(self, found: Found) -> str:
        digest = hashlib.sha256()
        for start in range(0, found.size, BLOCK_BYTES):
            stop = min(found.size, start + BLOCK_BYTES)
            digest.update(self._bucket.read(found.key, start, stop, found.etag))
        return digest.hexdigest()

    def reread(self) -> str:
        """See `OpenBlob.reread`."""
        if self._cache is not None and self._sha256 is not None:
            self._cache.forget(self._sha256)
        return self._digest(self._found)

    def changed(self) -> str | None:
        """What lies under the key by now, against what was opened. Raises: StoreAway."""
        before = self._found
        now = self._bucket.find(before.key) if self._change is None else None
        if self._change is None and (now is None or (now.etag, now.size) != (before.etag, before.size)):
            try:
                self._follow(before)
            except Replaced:  # once more, while it was hashed
                return "written to again and again"
        return self._change

    def close(self) -> None:
        """Nothing is held open."""
        return
