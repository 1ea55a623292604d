"""Segments: what one shard of a conversion wrote, kept in a file until one step composes the artifact of them all."""

import hashlib
import os
import threading
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from ninfer_core.containers.output import Sink
from ninfer_core.containers.publish import pour
from ninfer_core.errors import CannotRead, CannotWrite
from ninfer_core.io import CHUNK_BYTES, ByteSource, Progress, chunks, no_progress


class SegmentWriter:
    """A `Sink` that appends every write to one file; `records` say where in the payload each belongs.

    Threads may share it, but only a single one gives the same file every time.
    """

    def __init__(self, path: Path) -> None:
        """What an earlier attempt left at `path` is written over. Raises: CannotWrite."""
        self.path = path
        self.records: list[
            tuple[int, int]
        ] = []  # (offset in the logical payload, bytes), in the order of the file
        self.bytes = 0
        self._digest = hashlib.sha256()
        self._lock = threading.Lock()
        try:
            self._fd = os.open(path, os.O_CREAT | os.O_TRUNC | os.O_WRONLY | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise CannotWrite(f"cannot write {path}: {error.strerror}") from error

    def write(self, content: memoryview, offset: int) -> None:
        """See `Sink.write`."""
        with self._lock:
            pour(self._fd, self.path, content, self.bytes)
            self._digest.update(content)
            self.records.append((offset, len(content)))
            self.bytes += len(content)

    @property
    def sha256(self) -> str:
        """Of what was written so far."""
        return self._digest.hexdigest()

    def close(self) -> None:
        """Every byte is on disk then; closing twice is harmless. Raises: CannotWrite."""
        descriptor, self._fd = self._fd, -1
        if descriptor < 0:
            return
        try:
            os.fsync(descriptor)
        except OSError as error:
            raise CannotWrite(f"cannot write {self.path}: {error.strerror}") from error
        finally:
            os.close(descriptor)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def replay(
    source: ByteSource, records: Sequence[tuple[int, int]], sink: Sink, progress: Progress = no_progress
) -> None:
    """Write a finished segment into a sink, each record at its place.

    Raises: CannotRead when the records are not those of this segment, CutShort, CannotWrite, what `progress` raises.
    """
    recorded = sum(length for _, length in records)
    if recorded != source.size:
        raise CannotRead(f"segment {source.name} has {source.size:,} bytes, its records say {recorded:,}")
    buffer = bytearray(min(CHUNK_BYTES, max(1, source.size)))
    begin = 0
    for offset, length in records:
        done = 0
        for piece in chunks(source, begin, length, buffer):
            sink.write(piece, offset + done)
            done += len(piece)
            progress(len(piece))
        begin += length
