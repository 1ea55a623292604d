"""Stored files as a pass reads them: every read may be told to stop, and a file knows the digest it was stored under."""

from collections.abc import Mapping

from ninfer_core.identity import FileDigest
from ninfer_core.io import Buffer, ByteSource
from service.blobs import BlobFiles, BlobStore
from worker.watch import Watch


class StoredFile:
    """A stored file (a `ByteSource`)."""

    def __init__(self, source: ByteSource, sha256: str, watch: Watch) -> None:
        self.name, self.size = source.name, source.size
        self._source, self._sha256, self._watch = source, sha256, watch
        self._found: str | None = None

    def read_into(self, buffer: Buffer, offset: int) -> None:
        """See `ByteSource.read_into`. Raises also: what `Watch.check` does."""
        self._watch.check()
        self._source.read_into(buffer, offset)

    def found(self, sha256: str) -> None:
        """A pass has read the whole file, and this was its digest."""
        self._found = sha256

    def changed(self) -> str | None:
        """What became of it since it was opened, or since it was stored."""
        if self._found is not None and self._found != self._sha256:
            return f"stored as sha256 {self._sha256}, its content now has {self._found}"
        return self._source.changed()


class StoredFiles:
    """The files of an artifact or a checkpoint (a `FileSet`), open until `close`."""

    def __init__(self, blobs: BlobStore, digests: Mapping[str, str], watch: Watch) -> None:
        """`digests` is name to sha256."""
        self._files = BlobFiles(blobs, digests)
        self._digests, self._watch = digests, watch
        self._open: dict[str, StoredFile] = {}
        self.names = self._files.names

    def __contains__(self, name: object) -> bool:
        return name in self._files

    def open(self, name: str) -> StoredFile:
        """See `FileSet.open`. Raises: CannotRead."""
        if name not in self._open:
            self._open[name] = StoredFile(self._files.open(name), self._digests[name], self._watch)
        return self._open[name]

    def compare(self, file: FileDigest) -> None:
        """Hold a digest that a pass took against the one that the file was stored under; `changed` says it then."""
        if file.name in self._open:
            self._open[file.name].found(file.sha256)

    def close(self) -> None:
        """Close every file that was opened."""
        self._files.close()
        self._open.clear()
