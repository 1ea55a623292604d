"""Content on its way in, piece by piece."""

from service.errors.base import NotFound, ServiceError


class UploadNotFound(NotFound):
    """An upload that this project does not have."""

    code = "upload_not_found"
    title = "No such upload"
    help = "GET /v1/uploads lists those that are open; POST /v1/uploads begins one."


class UploadGone(ServiceError):
    """An upload that can't go on: it expired, failed, or its bytes are not on this machine."""

    code = "upload_gone"
    status = 410
    title = "The upload is over"
    help = "Begin a new one with POST /v1/uploads."


class UploadBusy(ServiceError):
    """An upload that somebody writes to at this moment."""

    code = "upload_busy"
    status = 423
    title = "The upload is being written"
    help = "Ask for its offset again in a moment; one writer at a time is let in."


class UploadElsewhere(ServiceError):
    """An upload whose bytes are on another machine of the service, which does not share its folder with this one."""

    code = "upload_elsewhere"
    status = 503
    title = "The upload goes on at another machine"
    help = (
        "Ask again: the load balancer may choose the right one. It expires like any upload; if that machine is gone, "
        "begin a new one."
    )

    def __init__(self) -> None:
        super().__init__(
            "Its bytes come in at another machine of this service.", headers={"Retry-After": "1"}
        )


class TooManyUploads(ServiceError):
    """One more upload than a project may have open."""

    code = "too_many_uploads"
    status = 409
    title = "The project has too many open uploads"
    help = (
        "GET /v1/uploads lists them; finish some, or give them up with DELETE. `max_open_uploads` of the service's "
        "settings is the limit."
    )


class OffsetConflict(ServiceError):
    """Bytes for another place than the one where the upload goes on."""

    code = "upload_offset_conflict"
    status = 409
    title = "The upload goes on elsewhere"
    help = "Nothing was changed. `Upload-Offset` says where it goes on."


class UploadConflict(ServiceError):
    """Something that this kind of upload, or its state, has no place for."""

    code = "upload_conflict"
    status = 409
    title = "The upload takes no such request"
    help = "GET /v1/uploads/{upload} says its protocol and state."


class TusVersionUnsupported(ServiceError):
    """Another version of the tus protocol, or none."""

    code = "tus_version_unsupported"
    status = 412
    title = "No version of tus that is spoken here"
    help = "Send `Tus-Resumable: 1.0.0`."


class UploadHeaderMalformed(ServiceError):
    """A header of the tus protocol that can't be read, or is missing."""

    code = "upload_header_malformed"
    status = 400
    title = "A header of the upload cannot be read"
    help = "OPTIONS /v1/uploads says what is understood; the tus protocol says how headers are written."


class ChecksumMismatch(ServiceError):
    """Bytes of one request that have another checksum than it says."""

    code = "upload_checksum_mismatch"
    status = 460
    title = "The checksum of these bytes differs"
    help = "Nothing of this request was kept. Send it again."


class PartsUnavailable(ServiceError):
    """Parts straight to the store, where the store is no S3."""

    code = "parts_unavailable"
    status = 409
    title = "The store takes no parts"
    help = "Use tus: POST /v1/uploads with `Tus-Resumable: 1.0.0`."
