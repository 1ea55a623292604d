"""Content that a project holds, and files that are named out of it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from sqlalchemy.orm import Session

from ninfer_core.errors import CannotWrite
from ninfer_core.identity import DIGEST_PREFIX, FileDigest
from ninfer_core.io import is_plain_name
from service import quotas
from service.blobs import Blobs, Writer
from service.errors import BlobNotFound, BlobsMissing, ContentLost, Fault, InvalidRequest, TooManyFiles
from service.records import content, retention
from service.records.database import Database
from service.records.models import Blob
from service.settings import Settings

if TYPE_CHECKING:
    from service.parts import Parts


_SLOWEST: Final = 1 << 20  # bytes a second that the way to a store takes at least


class Collected(CannotWrite):
    """Content that a collector removed while it came in again; it has to be put in place once more."""

    passing = True

    def __init__(self, sha256: str) -> None:
        super().__init__(f"content with sha256 {sha256} was removed while it came in again")


@dataclass(frozen=True, slots=True)
class Stored:
    """Content that the project holds now; `new` says whether it did not before."""

    digest: str
    bytes: int
    new: bool

    @property
    def sha256(self) -> str:
        """Bare hex."""
        return self.digest.removeprefix(DIGEST_PREFIX)


@dataclass(frozen=True, slots=True)
class NamedDigest:
    """A file as a client names it."""

    name: str
    digest: str


def keep(parts: "Parts", project_id: str, writer: Writer) -> Stored:
    """Make what was written durable, then the project's. Raises: QuotaExceeded, CannotWrite."""
    sha256 = writer.sha256
    prepare(parts.database, parts.settings, project_id, sha256, writer.bytes)
    sha256, size = writer.commit()
    with parts.database.write() as session:
        new = hold(session, parts.blobs, parts.settings, project_id, sha256, size)
    return Stored(DIGEST_PREFIX + sha256, size, new)


def prepare(
    database: Database,
    settings: Settings,
    project_id: str,
    sha256: str,
    size: int,
    *,
    whole: int | None = None,
    has_room: bool = False,
) -> None:
    """Before content is put in place: there is room for it, and a collector does not take it away again.

    What is about to be removed under this digest is gone by now, or stays for the collector's whole grace, which begins
    when all that is put in place together (`whole` bytes) has had time to get there; so do bytes whose process dies
    before their row is written, and then they go. Raises: QuotaExceeded, unless it `has_room` already.
    """
    with database.read() as session:
        if not has_room:
            _require_room(session, settings, project_id, sha256, size, only_look=True)
        held = content.find_blob(session, project_id, sha256) is not None
        doomed = content.doomed(session, sha256)
    if doomed or not held:
        with database.write() as session:
            on_its_way = timedelta(seconds=max(size, whole or 0) / _SLOWEST)
            retention.promise(session, sha256, size, on_its_way)


def hold(session: Session, blobs: Blobs, settings: Settings, project_id: str, sha256: str, size: int) -> bool:
    """Content that is in place becomes the project's; whether it is new there.

    Raises: QuotaExceeded, Collected.
    """
    _require_room(session, settings, project_id, sha256, size)
    # In this order, which is the collector's: the other way round the two could wait for each other.
    new = content.add_blob(session, project_id, sha256, size)
    content.spare(session, sha256)
    # Asked after the row that dooms it was waited for: from here on nobody removes it.
    if not blobs.holds(sha256, size):
        raise Collected(sha256)
    return new


def _require_room(
    session: Session, settings: Settings, project_id: str, sha256: str, size: int, only_look: bool = False
) -> None:
    if content.find_blob(session, project_id, sha256) is None:
        quotas.require(session, settings, project_id, size, only_look=only_look)


def find_blob(parts: "Parts", project_id: str, digest: str) -> Blob:
    """Content of this project. Raises: BlobNotFound, ContentLost."""
    with parts.database.read() as session:
        blob = content.find_blob(session, project_id, digest.removeprefix(DIGEST_PREFIX))
    if blob is None:
        raise BlobNotFound(f"This project holds no {digest}.")
    if not parts.blobs.holds(blob.sha256, blob.bytes):
        raise ContentLost(f"The store does not hold the {blob.bytes:,} bytes of {digest} any more.")
    return blob


def look(parts: "Parts", project_id: str, files: Sequence[NamedDigest]) -> frozenset[str]:
    """`lost` of files, before the transaction in which `named_files` names them.

    Raises: TooManyFiles, InvalidRequest for names, StoreAway.
    """
    max_files = parts.settings.max_files
    if len(files) > max_files:
        fault = Fault("body", "$.files", f"{len(files):,} files; at most {max_files:,} are taken")
        raise TooManyFiles(f"{len(files):,} files are more than {max_files:,}.", fault)
    require_names([file.name for file in files])
    return lost(parts, project_id, {file.digest for file in files})


def named_files(
    session: Session, project_id: str, files: Sequence[NamedDigest], lost: frozenset[str]
) -> list[FileDigest]:
    """The files with their sizes; `lost` is what `look` gave. Raises: BlobsMissing."""
    held = held_content(session, project_id, {file.digest for file in files}, lost)
    missing = [
        Fault("body", f"$.files[{index}].digest", f"this project does not hold {file.digest}")
        for index, file in enumerate(files)
        if file.digest.removeprefix(DIGEST_PREFIX) not in held
    ]
    if missing:
        raise BlobsMissing(f"{len(missing):,} of {len(files):,} files have no content here.", *missing)
    return [
        FileDigest(file.name, held[sha256].bytes, sha256)
        for file in files
        for sha256 in (file.digest.removeprefix(DIGEST_PREFIX),)
    ]


def lost(parts: "Parts", project_id: str, digests: Iterable[str]) -> frozenset[str]:
    """The sha256 of what the project holds and the store does not, asked before a transaction: a store may be slow.

    What is there now is there as long as a project's row says so: whoever makes such a row has looked, and a collector
    removes no bytes while there is one. So within the transaction the rows alone are looked at again. Raises: StoreAway.
    """
    with parts.database.read() as session:
        rows = content.find_blobs(session, project_id, _shas(digests))
    wanted = {sha256: row.bytes for sha256, row in rows.items()}
    return frozenset(wanted) - parts.blobs.held(wanted)


def held_content(
    session: Session, project_id: str, digests: Iterable[str], lost: frozenset[str]
) -> dict[str, Blob]:
    """What of this the project holds and is not `lost`, by sha256; it stays until the transaction ends."""
    rows = content.find_blobs(session, project_id, _shas(digests), hold=True)
    return {sha256: row for sha256, row in rows.items() if sha256 not in lost}


def _shas(digests: Iterable[str]) -> list[str]:
    return [digest.removeprefix(DIGEST_PREFIX) for digest in digests]


def require_names(names: Sequence[str]) -> None:
    """Raises: InvalidRequest for names that are not plain or not unique."""
    faults: list[Fault] = []
    seen: set[str] = set()
    for index, name in enumerate(names):
        place = f"$.files[{index}].name"
        if not is_plain_name(name):
            faults.append(Fault("body", place, "not a plain file name: no folders, at most 255 bytes"))
        elif name in seen:
            faults.append(Fault("body", place, f"{name!r} is named twice"))
        seen.add(name)
    if faults:
        raise InvalidRequest("Names of files are plain and different.", *faults)
