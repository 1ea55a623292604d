"""Where bytes come from: disk, later a blob store, are one path through `ByteSource` and `FileSet`.

Reads fill the caller's reused buffer with `preadv`; nothing is mapped, because mapped pages count as memory
and a file that is cut while mapped ends the process.
"""

import hashlib
import os
import stat
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from itertools import accumulate
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

from ninfer_core.errors import CannotRead, CutShort, LeadsOutside

CHUNK_BYTES = 8 << 20

Buffer = bytearray | memoryview
Progress = Callable[[int], None]  # called with the bytes just done


def no_progress(_: int) -> None:
    """Progress nobody looks at."""


class ByteSource(Protocol):
    """A sized sequence of bytes that any thread may read at any offset."""

    @property
    def name(self) -> str: ...

    @property
    def size(self) -> int: ...

    def read_into(self, buffer: Buffer, offset: int) -> None:
        """Fill the whole `buffer` from byte `offset`. Raises: CutShort, CannotRead."""
        ...

    def changed(self) -> str | None:
        """What became of the file since it was opened, in words; None when it is still the same."""
        ...


class FileSet(Protocol):
    """Files by plain name; a name that came out of a file is only ever looked up here, never joined to a path."""

    @property
    def names(self) -> tuple[str, ...]: ...

    def __contains__(self, name: object) -> bool: ...

    def open(self, name: str) -> ByteSource:
        """Raises: CannotRead."""
        ...


class MemorySource:
    """Bytes already in memory."""

    def __init__(self, name: str, content: bytes | memoryview) -> None:
        self.name = name
        self.size = len(content)
        self._content = memoryview(content)

    def read_into(self, buffer: Buffer, offset: int) -> None:
        """See `ByteSource.read_into`."""
        view = memoryview(buffer).cast("B")
        part = self._content[offset : offset + len(view)]
        if len(part) != len(view):
            raise CutShort(self.name, offset, len(view), len(part))
        view[:] = part

    def changed(self) -> None:
        """Memory does not change."""
        return


def fill(fd: int, name: str, buffer: Buffer, offset: int) -> None:
    """Fill the whole `buffer` from byte `offset` of an open file. Raises: CutShort, CannotRead."""
    view = memoryview(buffer).cast("B")
    done = 0
    while done < len(view):
        try:
            got = os.preadv(fd, [view[done:]], offset + done)
        except OSError as error:
            raise CannotRead(f"cannot read {name} at offset {offset + done:,}: {error.strerror}") from error
        if got == 0:
            raise CutShort(name, offset, len(view), done)
        done += got


class DiskFile:
    """A regular file on disk, open for reading until `close`; `name` is text that any report can hold."""

    def __init__(self, path: Path, name: str | None = None, follow: bool = True) -> None:
        """Raises: CannotRead; also for a symbolic link unless `follow`."""
        self.name = printable_name(name if name is not None else path.name)
        # Non-blocking, or opening a named pipe would wait for its writer.
        flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | (0 if follow else os.O_NOFOLLOW)
        try:
            self._fd = os.open(path, flags)
        except OSError as error:
            raise CannotRead(f"cannot open {path}: {error.strerror}") from error
        status = os.fstat(self._fd)
        if not stat.S_ISREG(status.st_mode):
            os.close(self._fd)
            raise CannotRead(f"cannot read {path}: it is not a regular file")
        self.size = status.st_size
        self._stamp = (status.st_size, status.st_mtime_ns)

    def read_into(self, buffer: Buffer, offset: int) -> None:
        """See `ByteSource.read_into`."""
        fill(self._fd, self.name, buffer, offset)

    def changed(self) -> str | None:
        """Size or modification time against the moment of opening."""
        status = os.fstat(self._fd)
        if status.st_size != self._stamp[0]:
            return f"{self._stamp[0]:,} bytes when opened, {status.st_size:,} bytes now"
        if status.st_mtime_ns != self._stamp[1]:
            return "written to after it was opened"
        return None

    def close(self) -> None:
        """Close the file; closing twice is harmless."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


class DiskFiles:
    """The files directly inside one folder, or a chosen few of them; opened on demand, closed together.

    The first file opened is the one that a person named. What it names in turn may be a link only to a file beside
    it, or beside where it really lies, as download caches keep their files: a name out of a file leads nowhere else.
    """

    def __init__(self, folder: Path, names: Sequence[str] | None = None) -> None:
        self.folder = folder
        self._open: dict[str, DiskFile] = {}
        self._homes: set[str] = set()
        if names is None:
            try:
                names = sorted(entry.name for entry in os.scandir(folder) if entry.is_file())
            except OSError as error:
                raise CannotRead(f"cannot list {folder}: {error.strerror}") from error
        self.names = tuple(names)
        self._known = frozenset(self.names)

    def __contains__(self, name: object) -> bool:
        return name in self._known

    def open(self, name: str) -> DiskFile:
        """The file called `name`, which must be one of `names`. Raises: CannotRead."""
        if name not in self._known:
            raise CannotRead(f"there is no file {name!r} in {self.folder}")
        if name not in self._open:
            path = Path(os.path.realpath(self.folder / name))
            if not self._homes:
                self._homes = {os.path.realpath(self.folder), str(path.parent)}
            if str(path.parent) not in self._homes:
                raise LeadsOutside(f"{name!r} is a link that leads out of its folder")
            self._open[name] = DiskFile(path, name, follow=False)
        return self._open[name]

    @property
    def opened(self) -> tuple[DiskFile, ...]:
        """The files that were opened, by name."""
        return tuple(self._open[name] for name in sorted(self._open))

    def close(self) -> None:
        """Close every file that was opened."""
        for file in self._open.values():
            file.close()
        self._open.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class Joined:
    """Byte ranges of several sources as one: the logical payload of a split artifact."""

    def __init__(self, name: str, parts: Sequence[tuple[ByteSource, int, int]]) -> None:
        """`parts` holds (source, first byte, bytes) in logical order."""
        self.name = name
        self._parts = [(source, offset, length) for source, offset, length in parts if length]
        self._ends = list(accumulate(length for _, _, length in self._parts))
        self.size = self._ends[-1] if self._ends else 0

    def read_into(self, buffer: Buffer, offset: int) -> None:
        """See `ByteSource.read_into`; a range may straddle parts."""
        view = memoryview(buffer).cast("B")
        end = offset + len(view)
        if end > self.size:
            raise CutShort(self.name, offset, len(view), max(0, self.size - offset))
        at = offset
        index = bisect_right(self._ends, offset)
        while at < end:
            source, first, length = self._parts[index]
            stop = min(end, self._ends[index])
            source.read_into(view[at - offset : stop - offset], first + length - (self._ends[index] - at))
            at, index = stop, index + 1

    def changed(self) -> str | None:
        """The first change among the parts."""
        for source, _, _ in self._parts:
            if what := source.changed():
                return f"{source.name}: {what}"
        return None


def read(source: ByteSource, offset: int, length: int) -> bytes:
    """`length` bytes at `offset`; the caller has compared `length` with the file. Raises: CutShort, CannotRead."""
    buffer = bytearray(length)
    source.read_into(buffer, offset)
    return bytes(buffer)


def chunks(source: ByteSource, offset: int, length: int, buffer: Buffer) -> Iterator[memoryview]:
    """The range in order, piece by piece, each piece valid until the next is asked for."""
    view = memoryview(buffer)
    end = offset + length
    while offset < end:
        piece = view[: min(len(buffer), end - offset)]
        source.read_into(piece, offset)
        yield piece
        offset += len(piece)


def sha256(
    source: ByteSource, offset: int = 0, length: int | None = None, progress: Progress = no_progress
) -> str:
    """Hex sha256 of a range, the whole source by default. Raises: CutShort, CannotRead."""
    digest = hashlib.sha256()
    length = source.size - offset if length is None else length
    for piece in chunks(source, offset, length, bytearray(min(CHUNK_BYTES, max(1, length)))):
        digest.update(piece)
        progress(len(piece))
    return digest.hexdigest()


def printable_name(name: str) -> str:
    """A file name as text that any report can hold: bytes that are no UTF-8 are spelled out."""
    return name if name.isascii() else name.encode("utf-8", "backslashreplace").decode()


def is_plain_name(name: str) -> bool:
    """Whether a name from outside may name a sibling file: decided on its text alone, before anything is opened."""
    if not name or name in (".", "..") or any(c in name for c in "/\\\0"):
        return False
    with suppress(UnicodeEncodeError):
        return len(name.encode()) <= 255
    return False
