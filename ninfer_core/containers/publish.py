"""New files that appear whole or not at all: written without a name, linked in at the end, never over another file."""

import os
import secrets
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from ninfer_core.errors import CannotWrite, NameTaken
from ninfer_core.io import Buffer, fill


class NewFile:
    """A file under construction; readable and writable at any offset, unread bytes are zero. Is a `ByteSource`."""

    def __init__(self, path: Path, size: int) -> None:
        """Raises: CannotWrite when the folder cannot be written."""
        self.path = path
        self.name = path.name
        self.size = size
        self._temporary: Path | None = None
        self._fd = -1
        try:
            self._fd = self._create()
            os.ftruncate(self._fd, size)
        except OSError as error:
            self.close()
            raise CannotWrite(f"cannot write in {path.parent}: {error.strerror}") from error

    def _create(self) -> int:
        # An unnamed file vanishes with its process, also after a kill; not every file system has them.
        with suppress(OSError):
            return os.open(self.path.parent, os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC, 0o644)
        self._temporary = self.path.with_name(f".{self.path.name}.{secrets.token_hex(6)}.partial")
        return os.open(self._temporary, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o644)

    def write(self, content: Buffer | bytes, offset: int) -> None:
        """All of `content` at `offset`. Raises: CannotWrite."""
        pour(self._fd, self.path, content, offset)

    def read_into(self, buffer: Buffer, offset: int) -> None:
        """See `ByteSource.read_into`."""
        fill(self._fd, self.name, buffer, offset)

    def changed(self) -> None:
        """Nobody else knows this file."""
        return

    def link(self) -> None:
        """Give the finished file its name. Raises: NameTaken."""
        try:
            self.link_as(self.path)
        except FileExistsError:
            raise NameTaken(f"{self.path} exists and is never overwritten") from None

    def link_as(self, path: Path, mode: int | None = None) -> None:
        """Give the finished file a name on the same file system, and permissions if given; its bytes are on disk then.

        The name itself is there for good when its folder is synced. Raises: FileExistsError, CannotWrite.
        """
        try:
            if mode is not None:
                os.fchmod(self._fd, mode)
            os.fsync(self._fd)
            if self._temporary is not None:
                os.link(self._temporary, path)
            else:
                folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
                try:
                    os.link(f"/proc/self/fd/{self._fd}", path.name, dst_dir_fd=folder, follow_symlinks=True)
                finally:
                    os.close(folder)
        except FileExistsError:
            raise
        except OSError as error:
            raise CannotWrite(f"cannot publish {path}: {error.strerror}") from error

    def withdraw(self) -> None:
        """Take the name back where it is this file's: an interrupt may come between the link and its being noted."""
        with suppress(OSError):
            if os.path.samestat(os.lstat(self.path), os.fstat(self._fd)):
                self.path.unlink()

    def close(self) -> None:
        """Forget what was not linked."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
        if self._temporary is not None:
            self._temporary.unlink(missing_ok=True)


def pour(descriptor: int, path: Path, content: Buffer | bytes, offset: int) -> None:
    """Write all of `content` at `offset` of an open file, which is `path`. Raises: CannotWrite."""
    view = memoryview(content).cast("B")
    done = 0
    while done < len(view):
        try:
            done += os.pwrite(descriptor, view[done:], offset + done)
        except OSError as error:
            raise CannotWrite(f"cannot write {path}: {error.strerror}") from error


def require_free(paths: Sequence[Path]) -> None:
    """Raises: NameTaken, CannotWrite without a folder; links that lead nowhere take their name too."""
    for path in paths:
        if path.exists() or path.is_symlink():
            raise NameTaken(f"{path} exists and is never overwritten")
        if not path.parent.is_dir():
            raise CannotWrite(f"there is no folder {path.parent}")


def publish(files: Sequence[NewFile]) -> None:
    """Link parts before the entry, which is first; on a failure nothing of them stays. Raises: CannotWrite."""
    try:
        for file in reversed(files):
            file.link()
        _sync(files[0].path.parent)
    except BaseException:
        for file in files:  # the entry first: never is there one without its parts
            file.withdraw()
        raise


def _sync(folder: Path) -> None:
    # The names are on disk only when their folder is; not every file system can say so.
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
