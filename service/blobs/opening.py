"""The store that the settings name."""

from dataclasses import replace

from service.blobs.bucket import Bucket, Server
from service.blobs.local import BlobStore
from service.blobs.protocol import Blobs
from service.blobs.s3 import S3Store
from service.blobs.waiting import Check, never
from service.settings import Settings

_QUICK_SECONDS = 5.0


def open_store(settings: Settings, check: Check = never) -> Blobs:
    """`check` is asked while a thread waits for a store over the network, and may raise. Raises: CannotWrite."""
    if settings.store is None:
        return BlobStore(settings.data)
    name, _, prefix = settings.store.removeprefix("s3://").partition("/")
    prefix = prefix.strip("/")
    patient = server(settings)
    quick = replace(patient, patient=False, seconds=_QUICK_SECONDS)
    return S3Store(
        Bucket(patient, name, prefix, check),
        Bucket(quick, name, prefix, check),
        settings.data,
        settings.cache_bytes,
    )


def server(settings: Settings) -> Server:
    """The server that the settings name."""
    return Server(settings.s3_endpoint, settings.s3_region, settings.s3_public_endpoint)
