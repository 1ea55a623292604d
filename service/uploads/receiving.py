"""Bytes of one request on their way to the end of an upload: offset looked at, written and moved on under one lock."""

import hashlib
from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType
from typing import IO, Final, Self

from ninfer_core.errors import CannotWrite
from service.blobs import BlobStore
from service.blobs.errors import not_written
from service.errors import ChecksumMismatch, OffsetConflict, UploadGone
from service.parts import Parts
from service.records import uploads
from service.records.models import Upload
from service.records.types import now
from service.uploads import files, storing
from service.uploads.files import Held
from service.uploads.times import expiry

CHECKSUMS: Final = ("sha256", "sha512", "sha1", "md5")  # sha1 is demanded by tus; the first is ours
_PIECE_BYTES: Final = 4 << 20
_FRESH: Final = 0.9  # of the time that an upload may rest: with more left its row is not written again


@dataclass(frozen=True, slots=True)
class Checksum:
    """What the bytes of one request have to be."""

    algorithm: str
    value: bytes


def require_offset(offset: int, said: int) -> None:
    """Raises: OffsetConflict for bytes that go elsewhere than where the upload goes on."""
    if said != offset:
        raise OffsetConflict(
            f"The upload goes on at {offset:,}, not at {said:,}.",
            headers={"Upload-Offset": str(offset)},
            offset=offset,
        )


class Receipt:
    """One request's hold on an upload. Everything here may block, and is done in threads."""

    def __init__(self, parts: Parts, upload: Upload, offset: int, checksum: Checksum | None) -> None:
        """Raises: UploadBusy, UploadGone, OffsetConflict, CannotWrite."""
        self._parts, self._upload, self._checksum = parts, upload, checksum
        here = files.size(parts.blobs.scratch, upload.id)
        self._held = Held(parts.blobs.scratch, upload.id, write=here is not None and here < upload.bytes)
        try:
            self.start = self._held.size
            require_offset(self.start, offset)
            self._hash = parts.storing.hashes.take(upload.id, self.start)
            self._hashed = self.start  # bytes that `_hash` has seen
            self._check = None if checksum is None else hashlib.new(checksum.algorithm, usedforsecurity=False)
            self._aside: IO[bytes] | None = None if checksum is None else self._held.aside()
        except BaseException:
            self._held.close()
            raise

    @property
    def left(self) -> int:
        """Bytes that the upload lacked when this request came."""
        return self._upload.bytes - self.start

    def absorb(self, content: memoryview) -> None:
        """Some of the body, in order. Raises: CannotWrite."""
        if self._aside is None or self._check is None:
            self._append(content)
            return
        # Until all of it is known to be right, nothing of it may count: not even when this process dies here.
        self._check.update(content)
        try:
            self._aside.write(content)
        except OSError as error:
            raise not_written(error) from error

    def end(self) -> int:
        """The whole body came: the new offset, which survives a power cut. Raises: ChecksumMismatch, CannotWrite."""
        if self._aside is not None and self._check is not None and self._checksum is not None:
            if self._check.digest() != self._checksum.value:
                raise ChecksumMismatch(
                    f"{self._checksum.algorithm} of the bytes is {self._check.hexdigest()}, "
                    f"not {self._checksum.value.hex()}.",
                    headers={"Upload-Offset": str(self.start)},
                )
            self._aside.seek(0)
            while piece := self._aside.read(_PIECE_BYTES):
                self._append(memoryview(piece))
        self._held.sync()
        return self._held.size

    def settle(self) -> bool:
        """After `end`: whether the upload is whole. Then it is stored, or soon will be, and else its time begins anew.

        Raises: UploadGone, DigestMismatch, QuotaExceeded, CannotWrite.
        """
        if self._held.size < self._upload.bytes:
            self._touch()
            return False
        local = isinstance(self._parts.blobs, BlobStore)  # then storing it is a link, and no journey
        if local and self._hash is not None and self._hashed == self._upload.bytes:
            storing.store(self._parts, self._upload.id, self._held, self._hash.hexdigest())
        else:
            self.close()
            storing.begin(self._parts, self._upload.id)
        return True

    def keep_what_came(self) -> None:
        """The connection broke off: what was absorbed counts, but where a checksum was to tell whether it is right."""
        with suppress(CannotWrite):
            self._held.sync()

    def take_back(self) -> None:
        """The request was wrong: nothing of it counts. Raises: CannotWrite."""
        self._hash = None
        if self._held.size > self.start:
            self._held.back_to(self.start)

    def close(self) -> None:
        """Let the next request in; twice is harmless."""
        if self._aside is not None:
            self._aside.close()
            self._aside = None
        if self._hash is not None:
            self._parts.storing.hashes.put(self._upload.id, self._hashed, self._hash)
            self._hash = None
        self._held.close()

    def _append(self, content: memoryview) -> None:
        self._held.append(content)
        if self._hash is not None:
            self._hash.update(content)
            self._hashed += len(content)

    def _touch(self) -> None:
        rest = (self._upload.expires_at - now()).total_seconds()
        if rest > self._parts.settings.upload_seconds * _FRESH:
            return
        with self._parts.database.write() as session:
            upload = uploads.locked(session, self._upload.id)
            if upload is None or upload.state != "receiving":
                raise UploadGone("The upload was ended meanwhile.")
            upload.expires_at = self._upload.expires_at = expiry(self._parts.settings)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
