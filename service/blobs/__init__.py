"""Content by its digest: written once, synced, never modified, wherever it lies."""

from service.blobs.local import BlobStore, BlobWriter, sync_folder
from service.blobs.named import BlobFiles
from service.blobs.protocol import Blobs, OpenBlob, Writer

__all__ = ["BlobFiles", "BlobStore", "BlobWriter", "Blobs", "OpenBlob", "Writer", "sync_folder"]
