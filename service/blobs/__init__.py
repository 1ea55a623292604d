"""Content by its digest: written once, synced, never modified, wherever it lies."""

from service.blobs.errors import StoreAway, StoreAwayForWriting, StoreFull, WrongContent
from service.blobs.local import BlobStore, BlobWriter, sync_folder
from service.blobs.named import BlobFiles
from service.blobs.opening import open_store
from service.blobs.protocol import Blobs, OpenBlob, PartStore, Writer
from service.blobs.s3 import S3Store

__all__ = [
    "BlobFiles",
    "BlobStore",
    "BlobWriter",
    "Blobs",
    "OpenBlob",
    "PartStore",
    "S3Store",
    "StoreAway",
    "StoreAwayForWriting",
    "StoreFull",
    "Writer",
    "WrongContent",
    "open_store",
    "sync_folder",
]
