"""Uploads in parts, straight into the S3 store."""

from typing import Annotated

from fastapi import APIRouter, Depends, Query, Response
from pydantic import TypeAdapter

from service import jobs
from service.api import body, examples
from service.api.parameters import Paging, PartsParam, SubmitCaller, UploadId
from service.api.problems import describe
from service.api.schemas.base import PageOf
from service.api.schemas.uploads import PartRead, PartsSent, UploadRead
from service.errors import (
    BodyTooLarge,
    InvalidRequest,
    PartsUnavailable,
    QuotaExceeded,
    TooManyUploads,
    UploadConflict,
    UploadGone,
    UploadNotFound,
)
from service.uploads import ledger
from service.uploads import parts as in_parts

router = APIRouter(prefix="/v1/uploads", tags=["uploads"])


PARTS: TypeAdapter[PartsSent] = TypeAdapter(PartsSent)
_IN_S3 = {"x-requires-store": "s3"}  # where content lies on a disk, these answer `parts_unavailable`


@router.post(
    "/parts",
    status_code=201,
    summary="Begin an upload in parts",
    openapi_extra=body.request_body(PARTS, a_file=examples.PARTS) | _IN_S3,
    responses=describe(*body.BODY_ERRORS, QuotaExceeded, TooManyUploads, PartsUnavailable),
)
def begin(
    response: Response,
    parts: PartsParam,
    caller: SubmitCaller,
    sent: Annotated[body.Body[PartsSent], Depends(body.strict(PARTS))],
) -> UploadRead:
    """Room for all its bytes is taken now. `links.parts` has addresses of the store, to which its parts are PUT."""
    announced = sent.value.announced()
    if announced.bytes > parts.settings.max_blob_bytes:
        raise BodyTooLarge(f"An upload has at most {parts.settings.max_blob_bytes:,} bytes.")
    upload = in_parts.begin(parts, caller.project_id, caller.actor, announced)
    response.headers["Location"] = f"/v1/uploads/{upload.id}"
    return UploadRead.of(ledger.seen(parts, upload))


@router.get(
    "/{upload}/parts",
    openapi_extra=_IN_S3,
    summary="Where the parts of an upload go",
    responses=describe(UploadNotFound, UploadGone, UploadConflict, PartsUnavailable, InvalidRequest),
)
def page(
    upload: UploadId, parts: PartsParam, caller: SubmitCaller, query: Annotated[Paging, Query()]
) -> PageOf[PartRead]:
    """An address for each part that is not there; a plain PUT of its bytes, without the token, is what it takes.

    An address is good for an hour: ask again for those of parts that are left then.
    """
    query.within(parts)
    found = in_parts.page(parts, caller.project_id, upload, limit=query.limit, cursor=query.cursor)
    return PageOf(items=[PartRead.of(part) for part in found.items], next=found.next)


@router.post(
    "/{upload}/complete",
    status_code=202,
    openapi_extra=_IN_S3,
    summary="Say that all parts are there",
    responses=describe(UploadNotFound, UploadGone, UploadConflict, PartsUnavailable, InvalidRequest),
)
def complete(upload: UploadId, parts: PartsParam, caller: SubmitCaller) -> UploadRead:
    """A job of type `import` then makes content of them, if they have the declared digest. Twice is harmless."""
    found = in_parts.complete(parts, caller.project_id, upload)
    if found.state == "storing":
        jobs.store_upload(parts, caller.project_id, found, caller.actor)
    return UploadRead.of(ledger.seen(parts, found))
