"""What a content store can do, wherever its bytes lie: every other room speaks to it in these words alone."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self, runtime_checkable

from ninfer_core.containers.publish import NewFile
from ninfer_core.io import ByteSource

Content = bytes | memoryview


class OpenBlob(ByteSource, Protocol):
    """Stored content, open for reading until `close`."""

    def reread(self) -> str | None:
        """Its digest, all of it read anew past every cache; None where there is no other way to it than `read_into`.

        Raises: CannotRead, StoreAway.
        """
        ...

    def close(self) -> None:
        """Let go of it; twice is harmless."""
        ...


class Writer(Protocol):
    """New content, its digest not known before its end; nothing of it is anywhere until `commit`."""

    bytes: int

    @property
    def sha256(self) -> str:
        """Hex digest of what was written so far."""
        ...

    def write(self, content: Content) -> None:
        """Append all of `content`. Raises: CannotWrite."""
        ...

    def commit(self) -> tuple[str, int]:
        """(sha256, bytes), durable under its digest; the writer is closed. Raises: CannotWrite."""
        ...

    def abort(self) -> None:
        """Forget what was not committed; twice is harmless."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


class Blobs(Protocol):
    """The content of every project; who may know of it is the database's business.

    Errors that may pass: `StoreAway`, which is no `CannotRead`, for it says nothing of the content; and where something
    was to be stored `StoreAwayForWriting` and `StoreFull`, which are a `CannotWrite` too.
    """

    scratch: Path  # a folder of this machine's own, for what is on its way

    def holds(self, sha256: str, size: int) -> bool:
        """Whether content of this size lies under this digest; its bytes are not looked at. Raises: StoreAway."""
        ...

    def held(self, wanted: Mapping[str, int]) -> frozenset[str]:
        """`holds` of many at once: sha256 to size."""
        ...

    def open(self, sha256: str, name: str) -> OpenBlob:
        """The content, called `name` in reports. Raises: CannotRead."""
        ...

    def pieces(self, sha256: str, start: int, stop: int) -> Iterator[bytes]:
        """The bytes from `start` to before `stop`, in pieces of a few MiB. Raises: CannotRead."""
        ...

    def writer(self) -> Writer:
        """New content. Raises: CannotWrite."""
        ...

    def take(self, path: Path, sha256: str) -> None:
        """Take in a finished file of `scratch` whose digest is known to be this; the file may be gone afterwards. Raises: CannotWrite."""
        ...

    def adopt(self, file: NewFile, sha256: str) -> None:
        """Take in a file that was composed in `scratch`. Raises: CannotWrite."""
        ...

    def remove(self, sha256: str) -> None:
        """Forget content that no project holds; nothing there is fine. Raises: CannotWrite."""
        ...

    def require_writable(self) -> None:
        """Raises: CannotWrite when new content could not be stored."""
        ...

    def work(self, job_id: str) -> Path:
        """A folder of this machine for what a job writes on its way. Raises: ValueError, CannotWrite."""
        ...

    def keep_segment(self, job_id: str, path: Path, sha256: str) -> None:
        """Put a finished file of `work` where every worker finds it by its digest; the file is gone afterwards. Raises: CannotWrite."""
        ...

    def segment(self, job_id: str, sha256: str) -> OpenBlob:
        """What `keep_segment` put there. Raises: CannotRead."""
        ...

    def clear_work(self, job_id: str) -> None:
        """Remove what a job left on its way, here and where all find it; nothing there is fine."""
        ...

    def works(self) -> Iterator[str]:
        """Ids of the jobs that left something on their way."""
        ...


@runtime_checkable
class PartStore(Protocol):
    """A store into which clients put parts of an upload themselves; only over the network is there one."""

    def presign_put(self, upload_id: str, part: int, expires_seconds: float) -> str:
        """An address to which one part, numbered from 1, may be PUT for so long. Raises: ValueError, StoreAway."""
        ...

    def parts(self, upload_id: str) -> dict[int, int]:
        """Number and bytes of the parts that are there. Raises: StoreAway."""
        ...

    def promote(self, upload_id: str, parts: Mapping[int, int], sha256: str) -> None:
        """Make content of parts in their order, which have these sizes, and together this digest; parts stay.

        Nothing is stored when one is missing or the digest is another. Raises: WrongContent, CannotRead, StoreAway.
        """
        ...

    def uploads(self) -> Iterator[str]:
        """Ids of the uploads that have parts here. Raises: StoreAway."""
        ...

    def drop_upload(self, upload_id: str) -> None:
        """Forget all parts; none there is fine. Raises: StoreAway."""
        ...
