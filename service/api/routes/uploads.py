"""Content in pieces: tus 1.0.0, with a JSON view of every upload."""

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from pydantic import Field
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect

from ninfer_core.errors import NinferError
from service.api import examples, tus, tus_described
from service.api.parameters import CallerParam, GivenUpId, Paging, PartsParam, SubmitCaller, UploadId
from service.api.problems import describe
from service.api.receiving import receive, too_many
from service.api.schemas.base import Digest, PageOf
from service.api.schemas.uploads import UploadRead
from service.api.upload import length_of, require_identity
from service.errors import (
    BodyTooLarge,
    ChecksumMismatch,
    DigestMismatch,
    InvalidRequest,
    MediaTypeUnsupported,
    OffsetConflict,
    QuotaExceeded,
    StorageFailed,
    TooManyUploads,
    TooSlow,
    TusVersionUnsupported,
    UploadBusy,
    UploadConflict,
    UploadElsewhere,
    UploadGone,
    UploadHeaderMalformed,
    UploadNotFound,
)
from service.records.models import Upload
from service.uploads import ledger
from service.uploads.receiving import require_offset

router = APIRouter(prefix=tus.PATH, tags=["uploads"])


class UploadPaging(Paging):
    """Open uploads, or those in a state; of a digest that was declared."""

    state: ledger.State | None = None
    digest: Digest | None = Field(None, examples=[examples.CONTENT_DIGEST])


@router.options(
    "",
    status_code=204,
    summary="What uploads can be",
    response_class=Response,
    responses=tus_described.ABILITIES,
)
def abilities(parts: PartsParam, _caller: CallerParam) -> Response:
    """What of tus is spoken here: `Tus-Version`, `Tus-Extension`, `Tus-Max-Size`, `Tus-Checksum-Algorithm`."""
    return Response(status_code=204, headers=tus.abilities(parts))


@router.post(
    "",
    status_code=201,
    summary="Begin an upload",
    response_class=Response,
    openapi_extra=tus_described.BEGIN,
    responses={
        201: {"description": "`Location` is the upload's address.", "content": {}},
        **describe(
            TusVersionUnsupported,
            UploadHeaderMalformed,
            MediaTypeUnsupported,
            BodyTooLarge,
            QuotaExceeded,
            TooManyUploads,
            ChecksumMismatch,
            DigestMismatch,
            StorageFailed,
            TooSlow,
        ),
    },
)
async def begin(request: Request, parts: PartsParam, caller: SubmitCaller) -> Response:
    """Room for all its bytes is taken now. The first of them may come as the body of this request."""
    tus.require_version(request)
    announced = tus.announced(request)
    if announced.bytes > parts.settings.max_blob_bytes:
        raise BodyTooLarge(f"An upload has at most {parts.settings.max_blob_bytes:,} bytes.")
    length = length_of(request)
    brings = tus.carries_bytes(request)
    checksum = tus.checksum(request)
    if length and not brings:
        tus.require_bytes(request)
    require_identity(request)
    if length is not None and length > announced.bytes:
        raise too_many(announced.bytes)
    upload = await run_in_threadpool(ledger.begin, parts, caller.project_id, caller.actor, announced)
    headers = {"Location": f"{tus.PATH}/{upload.id}", **tus.expires(upload)}
    if brings or not announced.bytes:
        try:
            headers["Upload-Offset"] = str(await receive(request, parts, upload, 0, checksum))
        except (NinferError, ClientDisconnect):
            # Nobody was told of it, so that nobody can go on with it, and its room would stay taken.
            await run_in_threadpool(ledger.give_up, parts, caller.project_id, upload.id)
            raise
    return Response(status_code=201, headers=headers)


@router.get("", summary="Uploads, newest first", responses=describe(InvalidRequest))
def page(
    parts: PartsParam, caller: CallerParam, query: Annotated[UploadPaging, Query()]
) -> PageOf[UploadRead]:
    """Those that are open, unless `state` asks for others. With `digest` a client finds the one to go on with."""
    query.within(parts)
    found = ledger.page(
        parts,
        caller.project_id,
        limit=query.limit,
        cursor=query.cursor,
        state=query.state,
        digest=query.digest,
    )
    return PageOf(items=[UploadRead.of(seen) for seen in found.items], next=found.next)


@router.options(
    "/{upload}",
    status_code=204,
    summary="What this upload can be",
    response_class=Response,
    responses={**tus_described.ABILITIES, **describe(InvalidRequest)},
)
def abilities_of_one(upload: UploadId, parts: PartsParam, _caller: CallerParam) -> Response:
    """The same for every upload, whether there is one or not."""
    return Response(status_code=204, headers=tus.abilities(parts))


@router.get(
    "/{upload}", summary="An upload", responses=describe(UploadNotFound, UploadElsewhere, InvalidRequest)
)
def one(upload: UploadId, response: Response, parts: PartsParam, caller: CallerParam) -> UploadRead:
    """With its state. While it is `storing`, `Retry-After` says when to ask again."""
    seen = ledger.seen(parts, ledger.find(parts, caller.project_id, upload))
    if seen.upload.state == "storing":
        response.headers["Retry-After"] = "1"
    return UploadRead.of(seen)


@router.head(
    "/{upload}",
    summary="How far an upload is",
    response_class=Response,
    openapi_extra=tus_described.LOOK,
    responses={
        200: {"description": "`Upload-Offset` says where it goes on.", "content": {}},
        **describe(
            TusVersionUnsupported,
            UploadNotFound,
            UploadGone,
            UploadElsewhere,
            UploadConflict,
            InvalidRequest,
        ),
    },
)
def look(request: Request, upload: UploadId, parts: PartsParam, caller: CallerParam) -> Response:
    """`Upload-Offset` and `Upload-Length`, and `Upload-Metadata` as it was sent."""
    tus.require_version(request)
    found = _speaking_tus(ledger.receiving(parts, caller.project_id, upload))
    seen = ledger.seen(parts, found)
    if seen.offset is None:
        raise UploadGone("What had come in of this upload is not here any more.")
    headers = {"Upload-Offset": str(seen.offset), "Upload-Length": str(found.bytes), **tus.expires(found)}
    if found.said is not None:
        headers["Upload-Metadata"] = found.said
    return Response(headers=headers)


@router.patch(
    "/{upload}",
    status_code=204,
    summary="Go on with an upload",
    response_class=Response,
    openapi_extra=tus_described.GO_ON,
    responses={
        204: {"description": "`Upload-Offset` says how far it is.", "content": {}},
        **describe(
            TusVersionUnsupported,
            UploadHeaderMalformed,
            MediaTypeUnsupported,
            UploadNotFound,
            UploadGone,
            UploadBusy,
            UploadElsewhere,
            OffsetConflict,
            UploadConflict,
            BodyTooLarge,
            QuotaExceeded,
            ChecksumMismatch,
            DigestMismatch,
            StorageFailed,
            TooSlow,
            InvalidRequest,
        ),
    },
)
async def go_on(request: Request, upload: UploadId, parts: PartsParam, caller: SubmitCaller) -> Response:
    """Bytes for the end of what is there. When the connection breaks off, those that came count.

    The last ones make it content of the project, at once or soon after: GET tells when.
    """
    tus.require_version(request)
    tus.require_bytes(request)
    require_identity(request)
    offset, checksum = tus.offset(request), tus.checksum(request)
    found = _speaking_tus(await run_in_threadpool(ledger.receiving, parts, caller.project_id, upload))
    length = length_of(request)
    if length is not None and offset + length > found.bytes:
        raise too_many(found.bytes)
    if found.state == "stored":
        require_offset(found.bytes, offset)
        if length is None:
            raise too_many(found.bytes)
        return Response(status_code=204, headers={"Upload-Offset": str(found.bytes)})
    await run_in_threadpool(ledger.require_here, parts, found)
    after = await receive(request, parts, found, offset, checksum)
    return Response(status_code=204, headers={"Upload-Offset": str(after), **tus.expires(found)})


@router.delete(
    "/{upload}",
    status_code=204,
    summary="Give an upload up",
    response_class=Response,
    responses={
        204: {"description": "It is forgotten.", "content": {}},
        **describe(TusVersionUnsupported, UploadNotFound, InvalidRequest),
    },
)
def give_up(request: Request, upload: GivenUpId, parts: PartsParam, caller: SubmitCaller) -> Response:
    """What came in is removed; content that it has become stays. Without `Tus-Resumable` it is understood too."""
    if tus.is_tus(request):
        tus.require_version(request)
    ledger.give_up(parts, caller.project_id, upload)
    return Response(status_code=204)


def _speaking_tus(upload: Upload) -> Upload:
    if upload.protocol != "tus":
        raise UploadConflict("The upload comes in parts, straight to the store.")
    return upload
