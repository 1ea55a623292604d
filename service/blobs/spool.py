"""Content on its way in: a nameless file of this machine, hashed while it is written."""

import hashlib
import os
import secrets
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from ninfer_core.io import Buffer, fill
from service.blobs.errors import not_written
from service.blobs.protocol import Content


class Spool:
    """A writer whose content is kept only by what its `commit` adds to this; readable meanwhile (a `ByteSource`)."""

    name = "content"

    def __init__(self, folder: Path) -> None:
        """Raises: CannotWrite."""
        self._hash = hashlib.sha256()
        self._lock = threading.Lock()  # a request that is broken off aborts while its thread still writes
        self._temporary: Path | None = None
        self._fd = -1
        self.bytes = 0
        try:
            self._fd = self._create(folder)
        except OSError as error:
            raise not_written(error, str(folder)) from error

    def _create(self, folder: Path) -> int:
        # A nameless file vanishes with its process, also after a kill; not every file system has them.
        with suppress(OSError):
            return os.open(folder, os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC, 0o600)
        self._temporary = folder / f"{secrets.token_hex(16)}.partial"
        return os.open(self._temporary, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o600)

    @property
    def sha256(self) -> str:
        """Hex digest of what was written so far."""
        return self._hash.hexdigest()

    @property
    def size(self) -> int:
        """Bytes written so far."""
        return self.bytes

    def write(self, content: Content) -> None:
        """Append all of `content`. Raises: CannotWrite."""
        view = memoryview(content)
        with self._lock:
            self._hash.update(view)
            done = 0
            while done < len(view):
                try:
                    done += os.write(self._fd, view[done:])
                except OSError as error:
                    raise not_written(error) from error
            self.bytes += len(view)

    def read_into(self, buffer: Buffer, offset: int) -> None:
        """See `ByteSource.read_into`."""
        fill(self._fd, self.name, buffer, offset)

    def changed(self) -> None:
        """Nobody else knows this file."""
        return

    def finish(self, publish: Callable[[int, Path | None], None]) -> tuple[str, int]:
        """(sha256, bytes) when `publish` has taken the descriptor, and the name where it has one; closed then."""
        sha256 = self.sha256
        try:
            publish(self._fd, self._temporary)
        except OSError as error:
            raise not_written(error) from error
        finally:
            self.abort()
        return sha256, self.bytes

    def abort(self) -> None:
        """Forget what was not committed; doing it twice is harmless."""
        with self._lock:
            if self._fd >= 0:
                os.close(self._fd)
                self._fd = -1
            if self._temporary is not None:
                self._temporary.unlink(missing_ok=True)
                self._temporary = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.abort()
