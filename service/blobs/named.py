"""Stored files by the names that an artifact or a checkpoint gives them."""

from collections.abc import Mapping
from types import TracebackType
from typing import Self

from ninfer_core.errors import CannotRead
from service.blobs.protocol import Blobs, OpenBlob


class BlobFiles:
    """Stored files by the names that an artifact or a checkpoint gives them (a `FileSet`); opened on demand."""

    def __init__(self, store: Blobs, files: Mapping[str, str]) -> None:
        """`files` is name to sha256."""
        self._store = store
        self._files = dict(files)
        self._open: dict[str, OpenBlob] = {}
        self.names = tuple(self._files)

    def __contains__(self, name: object) -> bool:
        return name in self._files

    def open(self, name: str) -> OpenBlob:
        """See `FileSet.open`. Raises: CannotRead."""
        if name not in self._files:
            raise CannotRead(f"there is no file {name!r}")
        if name not in self._open:
            self._open[name] = self._store.open(self._files[name], name)
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
