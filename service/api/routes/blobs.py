"""Content by its digest."""

from fastapi import APIRouter, Request, Response
from starlette.responses import StreamingResponse

from service import conditional, contents, download
from service.api import examples
from service.api.parameters import BlobDigest, CallerParam, PartsParam, SubmitCaller
from service.api.problems import describe
from service.api.schemas.content import BlobRead
from service.api.upload import receive
from service.errors import (
    BlobNotFound,
    BodyTooLarge,
    ContentLost,
    DigestHeaderMalformed,
    DigestMismatch,
    InvalidRequest,
    MediaTypeUnsupported,
    QuotaExceeded,
    RangeNotSatisfiable,
    StorageFailed,
    TooSlow,
)

router = APIRouter(prefix="/v1/blobs", tags=["content"])

_DIGEST = {"type": "string"}
_BINARY = {"type": "string", "format": "binary"}
_UPLOAD = {
    "parameters": [
        {
            "name": name,
            "in": "header",
            "required": False,
            "description": "RFC 9530; sha-256 and sha-512 are checked, other algorithms left alone.",
            "schema": {**_DIGEST, "examples": [examples.REPR_DIGEST]},
        }
        for name in ("Repr-Digest", "Content-Digest")
    ],
    "requestBody": {
        "required": True,
        "content": {
            "application/octet-stream": {
                "schema": _BINARY,
                "examples": {"a_file": {"summary": "a file", "value": examples.CONTENT}},
            }
        },
    },
}


@router.post(
    "",
    status_code=201,
    summary="Push content",
    openapi_extra=_UPLOAD,
    responses={
        200: {"model": BlobRead, "description": "The project held this content already."},
        **describe(
            DigestHeaderMalformed,
            TooSlow,
            BodyTooLarge,
            MediaTypeUnsupported,
            DigestMismatch,
            StorageFailed,
            QuotaExceeded,
        ),
    },
)
async def push(request: Request, response: Response, parts: PartsParam, caller: SubmitCaller) -> BlobRead:
    """Send the bytes of a file as the body, of any length up to the service's limit.

    They are hashed while they arrive and kept under their digest. When the connection breaks off, or the digest header
    names another digest, nothing is kept.
    """
    stored = await receive(request, parts, caller.project_id)
    response.headers["Location"] = f"/v1/blobs/{stored.digest}"
    response.status_code = 201 if stored.new else 200
    return BlobRead.of(stored)


@router.get(
    "/{digest}",
    summary="Fetch content",
    response_class=StreamingResponse,
    responses={
        200: {"content": {"application/octet-stream": {"schema": _BINARY}}, "description": "The bytes."},
        206: {"content": {"application/octet-stream": {"schema": _BINARY}}, "description": "The range."},
        **conditional.DESCRIBED,
        **describe(BlobNotFound, InvalidRequest, RangeNotSatisfiable, ContentLost),
    },
)
def fetch(digest: BlobDigest, request: Request, parts: PartsParam, caller: CallerParam) -> Response:
    """The bytes that the project holds under this digest, or one range of them (`Range: bytes=...`).

    Bytes are not hashed again on their way out: who fetches compares them with the digest.
    """
    blob = contents.find_blob(parts, caller.project_id, digest)
    if same := conditional.unchanged(request, blob.sha256):
        return same
    return download.stored_content(
        request, parts.blobs, blob.sha256, blob.bytes, conditional.headers(blob.sha256)
    )


@router.head(
    "/{digest}",
    summary="Whether content is here",
    response_class=Response,
    responses={
        200: {"description": "The project holds this content.", "content": {}},
        **describe(BlobNotFound, InvalidRequest, ContentLost),
    },
)
def look(digest: BlobDigest, parts: PartsParam, caller: CallerParam) -> Response:
    """200 when the project holds it, with `Content-Length`; 404 when it does not. Neither has a body."""
    blob = contents.find_blob(parts, caller.project_id, digest)
    return Response(headers={"Content-Length": str(blob.bytes)}, media_type="application/octet-stream")
