"""Uploads in parts: clients put them straight into the S3 store, and a worker makes content of them."""

from dataclasses import dataclass
from typing import Final

from service.blobs import PartStore
from service.blobs.s3 import MAX_PARTS
from service.errors import PartsUnavailable, UploadConflict, UploadGone
from service.parts import Parts
from service.records import uploads
from service.records.models import Upload
from service.records.pages import Page, decode, encode, ordinal
from service.settings import Settings
from service.uploads import ledger
from service.uploads.part_store import store_of
from service.uploads.times import expiry

SIGNED_SECONDS: Final = 3600.0  # for how long an address of a part is good
_LISTING: Final = "upload.parts"
_MIB: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class Part:
    """One part; `address` is where to put it, None for one that is there."""

    number: int
    bytes: int
    address: str | None


def part_bytes(settings: Settings, size: int) -> int:
    """Of each part but the last: as the settings say, or as much more as it takes to have few enough."""
    least = -(-size // MAX_PARTS)
    return max(settings.upload_part_bytes, -(-least // _MIB) * _MIB)


def begin(parts: Parts, project_id: str, actor: str, announced: ledger.Announced) -> Upload:
    """A new upload. Raises: PartsUnavailable, QuotaExceeded."""
    _require_store(parts)
    return ledger.begin(parts, project_id, actor, announced, part_bytes(parts.settings, announced.bytes))


def page(parts: Parts, project_id: str, upload_id: str, *, limit: int, cursor: str | None) -> Page[Part]:
    """The parts in order, with addresses for those that are not there.

    Raises: UploadNotFound, UploadGone, UploadConflict, BadCursor, StoreAway.
    """
    upload = _open(parts, project_id, upload_id)
    store = _require_store(parts)
    after = decode(cursor, _LISTING, ordinal)
    first = 1 if after is None else after[0] + 1
    sizes = expected(upload)
    here = store.parts(upload.id)
    last = min(len(sizes), first + limit - 1)
    items = [
        Part(
            number,
            sizes[number],
            None if here.get(number) == sizes[number] else _signed(store, upload, number),
        )
        for number in range(first, last + 1)
    ]
    return Page(items, encode(_LISTING, last) if last < len(sizes) else None)


def complete(parts: Parts, project_id: str, upload_id: str) -> Upload:
    """All parts are there: from now on it is `storing`, and a job is to be made for it, unless one is.

    Raises: UploadNotFound, UploadGone, UploadConflict, StoreAway.
    """
    upload = _open(parts, project_id, upload_id)
    store, sizes = _require_store(parts), expected(upload)
    if upload.state == "receiving":
        here = store.parts(upload.id)
        missing = [number for number, size in sizes.items() if here.get(number) != size]
        if missing:
            raise UploadConflict(
                f"{len(missing):,} of {len(sizes):,} parts are missing, or not as long as they are to be."
            )
    with parts.database.write() as session:
        found = uploads.locked(session, upload_id)
        if found is None or found.state == "failed":
            raise UploadGone("The upload was ended meanwhile.")
        if found.state == "receiving":
            found.state = "storing"
            found.expires_at = expiry(parts.settings)
        return found


def expected(upload: Upload) -> dict[int, int]:
    """Number and bytes of every part of an upload."""
    size = upload.part_bytes or upload.bytes
    count = -(-upload.bytes // size)
    return {number: min(size, upload.bytes - (number - 1) * size) for number in range(1, count + 1)}


def _open(parts: Parts, project_id: str, upload_id: str) -> Upload:
    upload = ledger.receiving(parts, project_id, upload_id)
    if upload.protocol != "parts":
        raise UploadConflict("The upload is one of tus, and has no parts.")
    return upload


def _require_store(parts: Parts) -> PartStore:
    store = store_of(parts.blobs)
    if store is None:
        raise PartsUnavailable(
            "Content lies on a disk of the service, which only the service itself can write."
        )
    return store


def _signed(store: PartStore, upload: Upload, number: int) -> str:
    return store.presign_put(upload.id, number, SIGNED_SECONDS)
