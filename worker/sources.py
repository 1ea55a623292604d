"""Stored files as a pass reads them: every read may be told to stop, and a file knows the digest it was stored under."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress

import structlog

from ninfer_core.errors import CannotRead, CutShort, OutOfStep
from ninfer_core.identity import FileDigest
from ninfer_core.io import Buffer
from ninfer_core.verify.files import digest_tasks
from ninfer_core.verify.outcomes import Outcome
from ninfer_core.verify.pool import Pool
from ninfer_core.verify.task import Task
from service import metrics
from service.blobs import BlobFiles, Blobs, OpenBlob
from worker.errors import ContentMisread, MayPass
from worker.retries import may_pass
from worker.watch import Watch

log = structlog.get_logger()


@contextmanager
def _passing_through() -> Iterator[None]:
    """Keep what may pass from becoming a finding of the file: the whole piece of work is tried again. Raises: MayPass."""
    try:
        yield
    except CannotRead as error:
        if may_pass(error):
            raise MayPass(error) from error
        raise


def _alarm(name: str, sha256: str, change: str) -> None:
    metrics.DAMAGED.inc()
    log.error("blob.damaged", file=name, sha256=sha256, change=change)


class StoredFile:
    """A stored file (a `ByteSource`)."""

    def __init__(self, source: OpenBlob, sha256: str, watch: Watch) -> None:
        self.name, self.size = source.name, source.size
        self.sha256 = sha256  # that it was stored under
        self._source, self._watch = source, watch
        self._found: str | None = None
        self._alarmed = False

    def read_into(self, buffer: Buffer, offset: int) -> None:
        """See `ByteSource.read_into`. Raises also: what `Watch.check` does."""
        self._watch.check()
        with _passing_through():
            self._source.read_into(buffer, offset)

    def found(self, sha256: str) -> None:
        """A pass has read the whole file, and this was its digest. Raises: ContentMisread, StoreAway.

        Before that counts against the content it is read once more, from where it lies.
        """
        if sha256 != self.sha256 and self._again() == self.sha256:
            raise ContentMisread(self.name)
        self._found = sha256

    def _again(self) -> str | None:
        with suppress(CannotRead):
            return self._source.reread()
        return None

    def changed(self) -> str | None:
        """What became of it since it was opened, or since it was stored; the first who asks raises the alarm."""
        change = self._source.changed()
        if self._found is not None and self._found != self.sha256:
            change = f"stored as sha256 {self.sha256}, its content now has {self._found}"
        if change is not None and not self._alarmed:
            self._alarmed = True
            _alarm(self.name, self.sha256, change)
        return change


class Sources:
    """The stored files that a recipe reads. They are hashed by tasks of the job's own, before what is made of them counts.

    What was made of damaged bytes must never be said to come from the content that was stored.
    """

    def __init__(self, files: Sequence[StoredFile] = ()) -> None:
        self._files = tuple(files)

    def tasks(self, pool: Pool) -> list[Task[[], Outcome]]:
        """One for each file; in a job's list they stand before all others."""
        return list(digest_tasks(self._files, pool))

    def compared(self, outcomes: Iterable[Outcome]) -> Iterator[Outcome]:
        """Holds the first outcomes, those of `tasks`, against what was stored, and yields the rest.

        The core asks every source at the end whether it changed, and makes a finding of it. Raises: OutOfStep.
        """
        rest = iter(outcomes)
        for file in self._files:
            outcome = next(rest, None)
            if not isinstance(outcome, FileDigest | CutShort | CannotRead):
                raise OutOfStep(f"expected the digest of {file.name}, got a {type(outcome).__name__}")
            file.found(outcome.sha256 if isinstance(outcome, FileDigest) else f"none: {outcome}")
        yield from rest


class StoredFiles:
    """The files of an artifact or a checkpoint (a `FileSet`), open until `close`."""

    def __init__(self, blobs: Blobs, digests: Mapping[str, str], watch: Watch) -> None:
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
            try:
                with _passing_through():
                    source = self._files.open(name)
            except CannotRead as error:
                if name in self:
                    _alarm(name, self._digests[name], str(error))
                raise
            self._open[name] = StoredFile(source, self._digests[name], self._watch)
        return self._open[name]

    @property
    def opened(self) -> list[StoredFile]:
        """Those that were opened, by name."""
        return [self._open[name] for name in sorted(self._open)]

    def compare(self, file: FileDigest) -> None:
        """Hold a digest that a pass took against the one that the file was stored under; `changed` says it then."""
        if file.name in self._open:
            self._open[file.name].found(file.sha256)

    def close(self) -> None:
        """Close every file that was opened."""
        self._files.close()
        self._open.clear()
