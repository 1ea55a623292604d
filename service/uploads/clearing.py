"""What is left of uploads that are over: rows that nobody asks for any more, and bytes that no open upload has."""

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Final

import structlog

from service.blobs import Blobs
from service.records import uploads
from service.records.database import Database
from service.records.rows import batches
from service.records.types import now
from service.settings import Settings
from service.uploads import files
from service.uploads.part_store import drop, store_of

log = structlog.get_logger()

_AT_ONCE: Final = 500


def _on() -> None:
    pass


def clear(database: Database, blobs: Blobs, settings: Settings, check: Callable[[], None] = _on) -> None:
    """End what rested too long, forget what ended long ago, and remove what no open upload has; for a worker.

    `check` is called between steps and may end it by raising. Raises: SQLAlchemyError, CannotWrite, StoreAway.
    """
    while _expire(database, blobs):
        check()
    before = now() - timedelta(seconds=settings.keep_uploads_seconds)
    forgotten = _AT_ONCE
    while forgotten:
        with database.write() as session:
            forgotten = uploads.forget_ended(session, before, _AT_ONCE)
        check()
    clear_files(database, blobs.scratch, check)
    clear_parts(database, blobs, check)


def clear_parts(database: Database, blobs: Blobs, check: Callable[[], None] = _on) -> None:
    """Remove the parts in the store that no open upload has: of one whose end was the end of its process, or put too late.

    Raises: SQLAlchemyError, StoreAway.
    """
    store = store_of(blobs)
    if store is None:
        return
    for batch in batches(store.uploads(), _AT_ONCE):
        # As with files: a row is committed before anybody is told where its parts go.
        with database.read() as session:
            known = uploads.known(session, batch)
        for upload_id in sorted(set(batch) - known):
            check()
            store.drop_upload(upload_id)


def clear_files(database: Database, scratch: Path, check: Callable[[], None] = _on) -> None:
    """Remove the files of this machine that no open upload has. Raises: SQLAlchemyError."""
    for batch in batches(files.lying(scratch), _AT_ONCE):
        # Rows are committed before their files are made: a file without one never gets one.
        with database.read() as session:
            known = uploads.known(session, batch)
        for upload_id in set(batch) - known:
            files.remove(scratch, upload_id)
        check()


def _expire(database: Database, blobs: Blobs) -> int:
    with database.read() as session:
        found = uploads.expired(session, now(), _AT_ONCE)
    for stale in found:
        with database.write() as session:
            upload = uploads.locked(session, stale.id)
            if upload is None or upload.state not in uploads.OPEN or upload.expires_at >= now():
                continue
            uploads.end(
                upload, "failed", error={"code": "expired", "detail": "It rested too long and has expired."}
            )
        files.remove(blobs.scratch, stale.id)
        drop(blobs, stale)
        log.info("upload.expired", upload=stale.id)
    return len(found)
