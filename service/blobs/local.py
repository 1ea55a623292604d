"""Content by its digest on the local disk: written to a nameless file, synced, linked under its sha256, never modified.

    <root>/blobs/ab/<sha256>    content, mode 0444
    <root>/incoming/            content on its way in; nothing in it outlives its process where files can be nameless
    <root>/work/<job id>/       segments of a running conversion

Only digests and job ids become paths, and both are checked; a name from outside never does. The bytes are durable
before the database hears of them, so a row in `blobs` never promises what is not there.
"""

import os
import re
import secrets
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from ninfer_core.containers.publish import NewFile
from ninfer_core.errors import CannotRead, CannotWrite
from ninfer_core.io import DiskFile, read
from service.blobs.errors import not_written
from service.blobs.spool import Spool

_SHA256 = re.compile(r"[0-9a-f]{64}\Z")
_JOB_ID = re.compile(r"[0-9a-f]{32}\Z")
_MODE = 0o444
_PIECE_BYTES = 4 << 20


class StoredDisk(DiskFile):
    """Content in this store (an `OpenBlob`)."""

    def reread(self) -> None:
        """See `OpenBlob.reread`: there is no other way to these bytes."""
        return


class BlobStore:
    """The content of every project; who may know of it is the database's business."""

    def __init__(self, root: Path) -> None:
        """Raises: CannotWrite when the folders cannot be made."""
        self.root = self.scratch = root
        self._blobs, self._incoming, self._work = root / "blobs", root / "incoming", root / "work"
        try:
            root.mkdir(mode=0o700, parents=True, exist_ok=True)
            for folder in (self._blobs, self._incoming, self._work):
                folder.mkdir(mode=0o700, exist_ok=True)
        except OSError as error:
            raise not_written(error, str(root)) from error

    def path(self, sha256: str) -> Path:
        """Where content lies or would lie. Raises: ValueError for anything but 64 hex digits."""
        return self._blobs / sha256_named(sha256)[:2] / sha256

    def holds(self, sha256: str, size: int) -> bool:
        """Whether a file of this size lies where this content belongs; its bytes are not looked at."""
        try:
            status = self.path(sha256).lstat()
        except OSError:
            return False
        return stat.S_ISREG(status.st_mode) and status.st_size == size

    def held(self, wanted: Mapping[str, int]) -> frozenset[str]:
        """See `Blobs.held`."""
        return frozenset(sha256 for sha256, size in wanted.items() if self.holds(sha256, size))

    def pieces(self, sha256: str, start: int, stop: int) -> Iterator[bytes]:
        """See `Blobs.pieces`."""
        file = self.open(sha256, sha256)
        try:
            for offset in range(start, stop, _PIECE_BYTES):
                yield read(file, offset, min(_PIECE_BYTES, stop - offset))
        finally:
            file.close()

    def take(self, path: Path, sha256: str) -> None:
        """See `Blobs.take`. Raises: CannotWrite."""
        place = self.place(sha256)
        try:
            path.chmod(_MODE)
            _sync(path)
            try:
                os.link(path, place)
            except FileExistsError:
                self.replace(place, lambda partial: os.link(path, partial))
        except OSError as error:
            raise not_written(error) from error
        sync_folder(place.parent)

    def remove(self, sha256: str) -> None:
        """See `Blobs.remove`. Raises: CannotWrite."""
        path = self.path(sha256)
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            raise CannotWrite(f"cannot remove content: {error.strerror}") from error

    def open(self, sha256: str, name: str) -> StoredDisk:
        """The content, called `name` in reports. Raises: CannotRead."""
        try:
            return StoredDisk(self.path(sha256), name, follow=False)
        except CannotRead as error:
            # Told to clients: where the store lies is none of their business.
            raise CannotRead(f"the store cannot open {name}, sha256 {sha256}") from error

    def writer(self) -> "BlobWriter":
        """New content, its digest not known yet. Raises: CannotWrite."""
        return BlobWriter(self, self._incoming)

    def place(self, sha256: str) -> Path:
        """`path`, with its folder made. Raises: CannotWrite."""
        path = self.path(sha256)
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise not_written(error, str(self._blobs)) from error
        sync_folder(self._blobs)  # also when it was there: who made it may have died before this
        return path

    def adopt(self, file: NewFile, sha256: str) -> None:
        """Take in a file that was composed here. Raises: CannotWrite."""
        path = self.place(sha256)
        try:
            file.link_as(path, mode=_MODE)
        except FileExistsError:
            self.replace(path, lambda partial: file.link_as(partial, mode=_MODE))
        sync_folder(path.parent)

    def replace(self, path: Path, link: Callable[[Path], None]) -> None:
        """Put what `link` gives a name in the place of `path`, at once for every reader.

        It is the same content, unless what lies there was damaged: then this repairs it. Raises: CannotWrite, OSError.
        """
        partial = self._incoming / f"{secrets.token_hex(16)}.partial"
        try:
            link(partial)
            os.replace(partial, path)
        except OSError as error:
            raise not_written(error) from error
        finally:
            partial.unlink(missing_ok=True)

    def require_writable(self) -> None:
        """Raises: CannotWrite when new content could not be stored."""
        with self.writer() as writer:
            writer.write(bytes(4096))
        try:
            with tempfile.TemporaryDirectory(dir=self._blobs, prefix=".probe-"):
                pass
        except OSError as error:
            raise not_written(error, str(self._blobs)) from error

    def work(self, job_id: str) -> Path:
        """The folder for what a job writes on its way. Raises: ValueError, CannotWrite."""
        folder = self._work_of(job_id)
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise not_written(error, str(self._work)) from error
        return folder

    def keep_segment(self, job_id: str, path: Path, sha256: str) -> None:
        """See `Blobs.keep_segment`. Raises: CannotWrite."""
        folder = self._work_of(job_id)
        try:
            os.replace(path, folder / sha256)
        except OSError as error:
            raise not_written(error, str(folder)) from error
        sync_folder(folder)

    def segment(self, job_id: str, sha256: str) -> StoredDisk:
        """See `Blobs.segment`. Raises: CannotRead."""
        return StoredDisk(self._work_of(job_id) / sha256, follow=False)

    def works(self) -> Iterator[str]:
        """See `Blobs.works`."""
        with suppress(OSError):
            yield from filter(_JOB_ID.match, os.listdir(self._work))

    def clear_work(self, job_id: str) -> None:
        """Remove what a job left in its folder; nothing there is fine."""
        shutil.rmtree(self._work_of(job_id), ignore_errors=True)

    def _work_of(self, job_id: str) -> Path:
        return self._work / job_named(job_id)


class BlobWriter(Spool):
    """Content on its way in: hashed while it is written, kept only by `commit`."""

    def __init__(self, store: BlobStore, folder: Path) -> None:
        """Raises: CannotWrite."""
        super().__init__(folder)
        self._store = store

    def commit(self) -> tuple[str, int]:
        """(sha256, bytes), durable under its digest; the writer is closed. Raises: CannotWrite."""

        def publish(descriptor: int, temporary: Path | None) -> None:
            place = self._store.place(self.sha256)
            os.fchmod(descriptor, _MODE)
            os.fsync(descriptor)
            source = temporary or f"/proc/self/fd/{descriptor}"
            try:
                _link(source, place)
            except FileExistsError:
                self._store.replace(place, lambda partial: _link(source, partial))
            sync_folder(place.parent)

        return self.finish(publish)


def sha256_named(sha256: str) -> str:
    """The same. Raises: ValueError for anything but 64 hex digits."""
    if not _SHA256.match(sha256):
        raise ValueError("a blob is named by 64 lower-case hex digits")
    return sha256


def job_named(job_id: str) -> str:
    """The same. Raises: ValueError for anything but 32 hex digits."""
    if not _JOB_ID.match(job_id):
        raise ValueError("a job is named by 32 lower-case hex digits")
    return job_id


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _link(source: Path | str, path: Path) -> None:
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        # Naming the folder by its descriptor makes Python follow the link in /proc to the nameless file.
        os.link(source, path.name, dst_dir_fd=folder, follow_symlinks=True)
    finally:
        os.close(folder)


def sync_folder(folder: Path) -> None:
    """Names are durable only when their folder is. Raises: CannotWrite."""
    try:
        _sync(folder)
    except OSError as error:
        raise not_written(error, str(folder)) from error
