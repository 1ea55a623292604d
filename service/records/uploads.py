"""Queries over content on its way in, and over what a project holds and has asked room for."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

from sqlalchemy import delete, func, literal, select, text, tuple_
from sqlalchemy.orm import Session

from service.records.models import Blob, Upload
from service.records.pages import Page, cut, decode, encode, fetched, identifier
from service.records.types import first_id, now

OPEN: Final = ("receiving", "storing")
# Spelled as in the index `ix_uploads_open`, or SQLite does not use it.
IS_OPEN: Final = text("uploads.state IN ('receiving', 'storing')")
Key = tuple[str, str]  # project and id
FIRST: Final[Key] = ("", "")
_LISTING = "uploads"


def add(session: Session, upload: Upload) -> None:
    """A new upload; its bytes count from now on."""
    session.add(upload)
    session.flush()


def find(session: Session, project_id: str, upload_id: str) -> Upload | None:
    """The upload of this project."""
    query = select(Upload).where(Upload.project_id == project_id, Upload.id == upload_id)
    return session.scalars(query).one_or_none()


def get(session: Session, upload_id: str) -> Upload | None:
    """The upload, whichever project it belongs to: for what goes on without a caller."""
    return session.get(Upload, upload_id)


def locked(session: Session, upload_id: str) -> Upload | None:
    """The upload, which nobody else changes until the end of the transaction."""
    return session.get(Upload, upload_id, with_for_update=True, populate_existing=True)


def page(
    session: Session,
    project_id: str,
    *,
    limit: int,
    cursor: str | None = None,
    states: Sequence[str] = (),
    sha256: str | None = None,
) -> Page[Upload]:
    """Uploads, newest first. Raises: BadCursor."""
    query = select(Upload).where(Upload.project_id == project_id)
    if states:
        query = query.where(IS_OPEN if tuple(states) == OPEN else Upload.state.in_(states))
    if sha256 is not None:
        query = query.where(Upload.sha256 == sha256)
    after = decode(cursor, _LISTING, identifier)
    if after is not None:
        query = query.where(Upload.id < after[0])
    rows = session.scalars(query.order_by(Upload.id.desc()).limit(fetched(limit))).all()
    return cut(rows, limit, lambda row: encode(_LISTING, row.id))


def end(upload: Upload, state: str, *, sha256: str | None = None, error: Any = None) -> None:
    """The upload is `stored` or `failed`; what it is of is known then."""
    upload.state = state
    upload.error = error
    upload.finished_at = now()
    if sha256 is not None:
        upload.sha256 = sha256


def remove(session: Session, upload_id: str) -> None:
    """Forget an upload; none of that id is fine."""
    session.execute(delete(Upload).where(Upload.id == upload_id))


def storing(session: Session, protocol: str, limit: int, after: Key = FIRST) -> list[Upload]:
    """Uploads of every project that have all their bytes and are not stored yet, by project, the oldest first."""
    key = tuple_(Upload.project_id, Upload.id)
    query = select(Upload).where(IS_OPEN, Upload.state == "storing", Upload.protocol == protocol)
    query = query.where(key > tuple_(*map(literal, after)))  # as the index goes
    return list(session.scalars(query.order_by(Upload.project_id, Upload.id).limit(limit)))


def expired(session: Session, moment: datetime, limit: int) -> list[Upload]:
    """Open uploads of every project whose time is over."""
    query = select(Upload).where(IS_OPEN, Upload.expires_at < moment)
    return list(session.scalars(query.order_by(Upload.expires_at).limit(limit)))


def forget_ended(session: Session, before: datetime, limit: int) -> int:
    """Remove the rows of uploads that ended before that, some of them; what they brought in stays."""
    ended = (
        select(Upload.id)
        # What was begun later has not ended before: of the rows only the oldest are looked at.
        .where(Upload.id < first_id(before), Upload.finished_at < before)
        .order_by(Upload.id)
        .limit(limit)
    )
    ids = list(session.scalars(ended))
    session.execute(delete(Upload).where(Upload.id.in_(ids)))
    return len(ids)


def known(session: Session, ids: Sequence[str]) -> frozenset[str]:
    """Those of these ids that are uploads which are not over."""
    query = select(Upload.id).where(Upload.id.in_(ids), IS_OPEN)
    return frozenset(session.scalars(query))


def held_bytes(session: Session, project_id: str) -> int:
    """Bytes of content that a project holds."""
    query = select(func.coalesce(func.sum(Blob.bytes), 0)).where(Blob.project_id == project_id)
    return int(session.execute(query).scalar_one())


def open_count(session: Session, project_id: str) -> int:
    """Open uploads of a project."""
    query = select(func.count()).select_from(Upload).where(Upload.project_id == project_id, IS_OPEN)
    return int(session.execute(query).scalar_one())


def open_bytes(session: Session, project_id: str) -> int:
    """Bytes that open uploads of a project have asked room for."""
    query = select(func.coalesce(func.sum(Upload.bytes), 0)).where(Upload.project_id == project_id, IS_OPEN)
    return int(session.execute(query).scalar_one())
