"""Content in pieces: tus 1.0.0, with a JSON view of every upload."""

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response
from pydantic import Field
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect

from service import metrics
from service.api import examples, tus
from service.api.pace import paced
from service.api.parameters import CallerParam, GivenUpId, Paging, PartsParam, SubmitCaller, UploadId
from service.api.problems import describe
from service.api.schemas.base import Digest, PageOf
from service.api.schemas.uploads import UploadRead
from service.api.upload import length_of, pump, require_identity
from service.errors import (
    BodyTooLarge,
    ChecksumMismatch,
    DigestMismatch,
    InvalidRequest,
    MediaTypeUnsupported,
    OffsetConflict,
    QuotaExceeded,
    ServiceError,
    StorageFailed,
    TooSlow,
    TusVersionUnsupported,
    Unavailable,
    UploadBusy,
    UploadConflict,
    UploadGone,
    UploadHeaderMalformed,
    UploadNotFound,
)
from service.parts import Parts
from service.records.models import Upload
from service.uploads import ledger
from service.uploads.receiving import Checksum, Receipt, require_offset

router = APIRouter(prefix=tus.PATH, tags=["uploads"])

_BYTES = {tus.MEDIA_TYPE: {"schema": {"type": "string", "format": "binary"}}}


def _header(name: str, example: str, what: str, required: bool = False) -> dict[str, object]:
    schema = {"type": "string", "examples": [example]}
    return {"name": name, "in": "header", "required": required, "description": what, "schema": schema}


_VERSION = _header("Tus-Resumable", tus.VERSION, "The version of tus that is spoken.", required=True)
_CHECKSUM = _header("Upload-Checksum", examples.UPLOAD_CHECKSUM, "Algorithm, a space, and base64.")
_ABILITIES: dict[int | str, dict[str, Any]] = {
    204: {"description": "Version, extensions, largest size and checksums, as headers.", "content": {}}
}


class UploadPaging(Paging):
    """Open uploads, or those in a state; of a digest that was declared."""

    state: ledger.State | None = None
    digest: Digest | None = Field(None, examples=[examples.CONTENT_DIGEST])


@router.options(
    "",
    status_code=204,
    summary="What uploads can be",
    response_class=Response,
    responses=_ABILITIES,
)
def abilities(parts: PartsParam, _caller: CallerParam) -> Response:
    """What of tus is spoken here: `Tus-Version`, `Tus-Extension`, `Tus-Max-Size`, `Tus-Checksum-Algorithm`."""
    return Response(status_code=204, headers=tus.abilities(parts))


@router.post(
    "",
    status_code=201,
    summary="Begin an upload",
    response_class=Response,
    openapi_extra={
        "parameters": [
            _VERSION,
            _header(
                "Upload-Length", str(len(examples.CONTENT)), "Bytes of the whole content.", required=True
            ),
            _header(
                "Upload-Metadata",
                examples.UPLOAD_METADATA,
                "`filename` is kept for people; with `sha256` (64 hex digits) other content ends the upload as failed.",
            ),
            _CHECKSUM,
        ],
        "requestBody": {
            "required": False,
            "content": {
                kind: {
                    **content,
                    "examples": {"all_of_it": {"summary": "all of it", "value": examples.CONTENT}},
                }
                for kind, content in _BYTES.items()
            },
        },
    },
    responses={
        201: {"description": "`Location` is the upload's address.", "content": {}},
        **describe(
            TusVersionUnsupported,
            UploadHeaderMalformed,
            MediaTypeUnsupported,
            BodyTooLarge,
            QuotaExceeded,
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
        raise _too_many(announced.bytes)
    upload = await run_in_threadpool(ledger.begin, parts, caller.project_id, caller.actor, announced)
    headers = {"Location": f"{tus.PATH}/{upload.id}", **tus.expires(upload)}
    if brings or not announced.bytes:
        try:
            headers["Upload-Offset"] = str(await _receive(request, parts, upload, 0, checksum))
        except ServiceError:
            # Nobody was told of it, so that nobody can go on with it.
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
    responses={**_ABILITIES, **describe(InvalidRequest)},
)
def abilities_of_one(upload: UploadId, parts: PartsParam, _caller: CallerParam) -> Response:
    """The same for every upload, whether there is one or not."""
    return Response(status_code=204, headers=tus.abilities(parts))


@router.get("/{upload}", summary="An upload", responses=describe(UploadNotFound, InvalidRequest))
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
    openapi_extra={"parameters": [_VERSION]},
    responses={
        200: {"description": "`Upload-Offset` says where it goes on.", "content": {}},
        **describe(TusVersionUnsupported, UploadNotFound, UploadGone, UploadConflict, InvalidRequest),
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
    openapi_extra={
        "parameters": [
            _VERSION,
            _header("Upload-Offset", "0", "Where the bytes go: where the upload is.", required=True),
            _CHECKSUM,
        ],
        "requestBody": {
            "required": True,
            "content": {
                kind: {
                    **content,
                    "examples": {"all_of_it": {"summary": "all of it", "value": examples.CONTENT}},
                }
                for kind, content in _BYTES.items()
            },
        },
    },
    responses={
        204: {"description": "`Upload-Offset` says how far it is.", "content": {}},
        **describe(
            TusVersionUnsupported,
            UploadHeaderMalformed,
            MediaTypeUnsupported,
            UploadNotFound,
            UploadGone,
            UploadBusy,
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
        raise _too_many(found.bytes)
    if found.state == "stored":
        require_offset(found.bytes, offset)
        if length is None:
            raise _too_many(found.bytes)
        return Response(status_code=204, headers={"Upload-Offset": str(found.bytes)})
    after = await _receive(request, parts, found, offset, checksum)
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


async def _receive(
    request: Request, parts: Parts, upload: Upload, offset: int, checksum: Checksum | None
) -> int:
    """Take the body in. The offset after it. Raises: what `Receipt` does, BodyTooLarge, TooSlow, Unavailable, ClientDisconnect."""
    receipt = await run_in_threadpool(Receipt, parts, upload, offset, checksum)
    try:
        async with parts.uploads:
            try:
                body = paced(request.stream(), parts)
                await pump(
                    body, receipt.absorb, _too_many(upload.bytes), receipt.left, salvage=checksum is None
                )
            except BodyTooLarge:
                await run_in_threadpool(receipt.take_back)
                raise
            except (ClientDisconnect, TooSlow, Unavailable):
                await run_in_threadpool(receipt.keep_what_came)
                raise
            after = await run_in_threadpool(receipt.end)
            metrics.UPLOADED.labels("tus").inc(after - receipt.start)
            await run_in_threadpool(receipt.settle)
            return after
    finally:
        await run_in_threadpool(receipt.close)


def _speaking_tus(upload: Upload) -> Upload:
    if upload.protocol != "tus":
        raise UploadConflict("The upload comes in parts, straight to the store.")
    return upload


def _too_many(whole: int) -> BodyTooLarge:
    return BodyTooLarge(f"The upload has {whole:,} bytes in all; this would be more.")
