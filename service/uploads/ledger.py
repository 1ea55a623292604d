"""Uploads by their rows: begun with room for all their bytes, looked at, and given up."""

from dataclasses import dataclass
from typing import Literal

import structlog

from ninfer_core.errors import CannotWrite
from ninfer_core.identity import DIGEST_PREFIX
from service import quotas
from service.errors import UploadElsewhere, UploadGone, UploadNotFound
from service.parts import Parts
from service.records import uploads
from service.records.models import Upload
from service.records.pages import Page
from service.records.types import new_id, now
from service.uploads import files, places, storing
from service.uploads.part_store import drop
from service.uploads.times import expiry

log = structlog.get_logger()

Protocol = Literal["tus", "parts"]
State = Literal["receiving", "storing", "stored", "failed"]


@dataclass(frozen=True, slots=True)
class Announced:
    """What a client says of content that it is about to send."""

    bytes: int
    name: str | None = None
    sha256: str | None = None
    said: str | None = None  # as the header spelled it


@dataclass(frozen=True, slots=True)
class Seen:
    """An upload, and how many of its bytes are here; None where that is not known: parts are counted by the store."""

    upload: Upload
    offset: int | None
    elsewhere: bool = False  # its bytes come in at another machine


def begin(
    parts: Parts, project_id: str, actor: str, announced: Announced, part_bytes: int | None = None
) -> Upload:
    """A new upload, with room for all its bytes; of parts where `part_bytes` is given.

    Raises: TooManyUploads, QuotaExceeded, CannotWrite.
    """
    moment = now()
    scratch = parts.blobs.scratch
    upload = Upload(
        id=new_id(),
        project_id=project_id,
        protocol="tus" if part_bytes is None else "parts",
        name=announced.name,
        said=announced.said,
        bytes=announced.bytes,
        sha256=announced.sha256,
        part_bytes=part_bytes,
        place=places.make(scratch) if part_bytes is None else None,
        state="receiving",
        error=None,
        created_by=actor[:200],
        created_at=moment,
        expires_at=expiry(parts.settings),
        finished_at=None,
    )
    with parts.database.write() as session:
        quotas.require_another_upload(session, parts.settings, project_id)
        quotas.require(session, parts.settings, project_id, announced.bytes)
        uploads.add(session, upload)
    if part_bytes is None:
        # A file without a row is nobody's and cleared away; a row without a file says that it is over.
        try:
            files.create(scratch, upload.id)
        except CannotWrite:
            with parts.database.write() as session:
                uploads.remove(session, upload.id)  # or its room would be taken until it has expired
            raise
    log.info("upload.begun", upload=upload.id, bytes=upload.bytes, protocol=upload.protocol)
    return upload


def find(parts: Parts, project_id: str, upload_id: str) -> Upload:
    """Raises: UploadNotFound."""
    with parts.database.read() as session:
        upload = uploads.find(session, project_id, upload_id)
    if upload is None:
        raise UploadNotFound(f"This project has no upload {upload_id}.")
    return upload


def receiving(parts: Parts, project_id: str, upload_id: str) -> Upload:
    """One that takes bytes, or has all of them. Raises: UploadNotFound, UploadGone."""
    upload = find(parts, project_id, upload_id)
    if upload.state == "failed":
        raise UploadGone(f"The upload failed: {upload.error['detail']}")
    if upload.state == "receiving" and upload.expires_at < now():
        raise UploadGone("The upload rested too long and has expired.")
    return upload


def require_here(parts: Parts, upload: Upload) -> None:
    """Raises: UploadElsewhere for an open one whose bytes come in at another machine."""
    if upload.state in uploads.OPEN and places.elsewhere(parts.blobs.scratch, upload):
        raise UploadElsewhere


def seen(parts: Parts, upload: Upload) -> Seen:
    """How far it is. One that is whole and that nobody stores, since a process died just then, is stored now.

    Raises: UploadElsewhere where only another machine knows.
    """
    if upload.state == "receiving":
        require_here(parts, upload)
    found = _glimpsed(parts, upload)
    if upload.protocol == "tus" and found.offset == upload.bytes and not found.elsewhere:
        if upload.state == "receiving":
            storing.begin(parts, upload.id)
        elif upload.state == "storing":
            parts.storing.start(parts)
    return found


def page(
    parts: Parts,
    project_id: str,
    *,
    limit: int,
    cursor: str | None = None,
    state: State | None = None,
    digest: str | None = None,
) -> Page[Seen]:
    """Newest first; those that are open, unless a state is asked for. Raises: BadCursor."""
    sha256 = None if digest is None else digest.removeprefix(DIGEST_PREFIX)
    states = uploads.OPEN if state is None else (state,)
    with parts.database.read() as session:
        found = uploads.page(session, project_id, limit=limit, cursor=cursor, states=states, sha256=sha256)
    return Page([_glimpsed(parts, upload) for upload in found.items], found.next)


def _glimpsed(parts: Parts, upload: Upload) -> Seen:
    if upload.state == "stored":
        return Seen(upload, upload.bytes)
    if upload.protocol != "tus":
        return Seen(upload, None)
    if upload.state in uploads.OPEN and places.elsewhere(parts.blobs.scratch, upload):
        return Seen(upload, upload.bytes if upload.state == "storing" else None, elsewhere=True)
    return Seen(upload, files.size(parts.blobs.scratch, upload.id))


def give_up(parts: Parts, project_id: str, upload_id: str) -> None:
    """Forget an upload, whatever its state; content that it brought in stays. Raises: UploadNotFound."""
    with parts.database.write() as session:
        upload = uploads.find(session, project_id, upload_id)
        if upload is None:
            raise UploadNotFound(f"This project has no upload {upload_id}.")
        uploads.remove(session, upload_id)
    storing.forget(parts, upload_id)
    drop(parts.blobs, upload)
    log.info("upload.given_up", upload=upload_id)
