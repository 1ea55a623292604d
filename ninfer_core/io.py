"""Where bytes come from: disk, later a blob store, are one path through `ByteSource` and `FileSet`.

Reads fill the caller's reused buffer with `preadv`; nothing is mapped, because mapped pages count as memory
and a file that is cut while mapped ends the process.
"""

import hashlib
import os
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

from ninfer_core.errors import CannotRead, CutShort

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
    """A regular file on disk, open for reading until `close`."""

    def __init__(self, path: Path, name: str | None = None) -> None:
        self.name = name if name is not None else path.name
        try:
            # Non-blocking, or opening a named pipe would wait for its writer.
            self._fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
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
    """The files directly inside one folder, or a chosen few of them; opened on demand, closed together."""

    def __init__(self, folder: Path, names: Sequence[str] | None = None) -> None:
        self.folder = folder
        self._open: dict[str, DiskFile] = {}
        if names is not None:
            self.names = tuple(names)
            return
        try:
            self.names = tuple(sorted(entry.name for entry in os.scandir(folder) if entry.is_file()))
        except OSError as error:
            raise CannotRead(f"cannot list {folder}: {error.strerror}") from error

    def __contains__(self, name: object) -> bool:
        return name in self.names

    def open(self, name: str) -> DiskFile:
        """The file called `name`, which must be one of `names`. Raises: CannotRead."""
        if name not in self.names:
            raise CannotRead(f"there is no file {name!r} in {self.folder}")
        if name not in self._open:
            self._open[name] = DiskFile(self.folder / name)
        return self._open[name]

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
        self._parts: list[tuple[int, int, ByteSource, int]] = []
        begin = 0
        for source, offset, length in parts:
            self._parts.append((begin, begin + length, source, offset))
            begin += length
        self.size = begin

    def read_into(self, buffer: Buffer, offset: int) -> None:
        """See `ByteSource.read_into`; a range may straddle parts."""
        view = memoryview(buffer).cast("B")
        end = offset + len(view)
        if end > self.size:
            raise CutShort(self.name, offset, len(view), max(0, self.size - offset))
        for begin, stop, source, first in self._parts:
            low, high = max(begin, offset), min(stop, end)
            if low < high:
                source.read_into(view[low - offset : high - offset], first + low - begin)

    def changed(self) -> str | None:
        """The first change among the parts."""
        for _, _, source, _ in self._parts:
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


def is_plain_name(name: str) -> bool:
    """Whether a name from outside may name a sibling file: decided on its text alone, before anything is opened."""
    if not name or name in (".", "..") or any(c in name for c in "/\\\0"):
        return False
    with suppress(UnicodeEncodeError):
        return len(name.encode()) <= 255
    return False
