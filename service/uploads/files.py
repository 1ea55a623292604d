"""The file of an upload: its size is the offset and nothing else is, and one writer at a time holds it.

    <scratch>/incoming/<upload id>     what has come in so far; linked or copied into the store at the end

The lock is the kernel's, on the file itself: it holds between processes too, and ends with the process that has it.
"""

import fcntl
import os
import re
import stat
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import IO, Final, Self

from service.blobs import sync_folder
from service.blobs.errors import not_written
from service.errors import UploadBusy, UploadGone

_ID: Final = re.compile(r"[0-9a-f]{32}\Z")
_PIECE_BYTES: Final = 8 << 20


def place(scratch: Path, upload_id: str) -> Path:
    """Where its file lies or would lie. Raises: ValueError for anything but 32 hex digits."""
    if not _ID.match(upload_id):
        raise ValueError("an upload is named by 32 lower-case hex digits")
    return scratch / "incoming" / upload_id


def create(scratch: Path, upload_id: str) -> None:
    """An empty file, whose name is durable. Raises: CannotWrite."""
    path = place(scratch, upload_id)
    try:
        flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC
        os.close(os.open(path, flags, 0o600))
    except OSError as error:
        raise not_written(error) from error
    sync_folder(path.parent)


def size(scratch: Path, upload_id: str) -> int | None:
    """Bytes that came in; None where its file is not on this machine."""
    try:
        status = place(scratch, upload_id).lstat()
    except OSError:
        return None
    return status.st_size if stat.S_ISREG(status.st_mode) else None


def remove(scratch: Path, upload_id: str) -> None:
    """Its bytes are of no use any more; none there is fine."""
    with suppress(OSError):
        place(scratch, upload_id).unlink(missing_ok=True)


def lying(scratch: Path) -> Iterator[str]:
    """Ids of the uploads that have a file here."""
    with suppress(OSError):
        yield from filter(_ID.match, os.listdir(scratch / "incoming"))


class Held:
    """The file while nobody else has it."""

    def __init__(self, scratch: Path, upload_id: str, *, write: bool) -> None:
        """Without `write` it may be what the store has linked already. Raises: UploadBusy, UploadGone, CannotWrite."""
        self.path = place(scratch, upload_id)
        self._folder = self.path.parent
        flags = os.O_RDWR | os.O_APPEND if write else os.O_RDONLY
        try:
            self._fd = os.open(self.path, flags | os.O_NOFOLLOW | os.O_CLOEXEC)
        except FileNotFoundError:
            raise _gone() from None
        except OSError as error:
            raise not_written(error) from error
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            status = os.fstat(self._fd)
            if status.st_nlink == 0 or not stat.S_ISREG(status.st_mode):  # removed between the two
                raise _gone()
        except BlockingIOError:
            os.close(self._fd)
            raise UploadBusy("Another request writes to this upload.", headers={"Retry-After": "1"}) from None
        except BaseException:
            os.close(self._fd)
            raise

    @property
    def size(self) -> int:
        """The offset."""
        return os.fstat(self._fd).st_size

    def append(self, content: memoryview) -> None:
        """Raises: CannotWrite; what was written until then stays, and counts."""
        done = 0
        while done < len(content):
            try:
                done += os.write(self._fd, content[done:])
            except OSError as error:
                raise not_written(error) from error

    def aside(self) -> IO[bytes]:
        """A nameless file, for bytes that may yet turn out to be wrong. Raises: CannotWrite."""
        try:
            return tempfile.TemporaryFile(dir=self._folder)
        except OSError as error:
            raise not_written(error) from error

    def back_to(self, offset: int) -> None:
        """Forget what came after `offset`. Raises: CannotWrite."""
        try:
            os.ftruncate(self._fd, offset)
        except OSError as error:
            raise not_written(error) from error

    def sync(self) -> None:
        """What came in survives a power cut. Raises: CannotWrite."""
        try:
            os.fsync(self._fd)
        except OSError as error:
            raise not_written(error) from error

    def pieces(self) -> Iterator[memoryview]:
        """All of it, in pieces that are overwritten by the next. Raises: OSError."""
        buffer = memoryview(bytearray(_PIECE_BYTES))
        offset = 0
        while count := os.preadv(self._fd, [buffer], offset):
            yield buffer[:count]
            offset += count

    def close(self) -> None:
        """Let the next one in; twice is harmless."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _gone() -> UploadGone:
    return UploadGone("What had come in of this upload is not here any more.")
