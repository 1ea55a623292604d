"""The store as one into which clients put parts themselves, where it is one."""

import structlog

from service.blobs import Blobs, PartStore, S3Store, StoreAway
from service.records.models import Upload

log = structlog.get_logger()


def store_of(blobs: Blobs) -> PartStore | None:
    """The store, where it takes parts."""
    return blobs if isinstance(blobs, S3Store) else None


def drop(blobs: Blobs, upload: Upload) -> None:
    """Forget the parts of an upload that is over; those that a store which is away keeps lie there until it is cleared."""
    store = store_of(blobs)
    if upload.protocol != "parts" or store is None:
        return
    try:
        store.drop_upload(upload.id)
    except StoreAway as error:
        log.warning("upload.parts_kept", upload=upload.id, error=str(error))
