"""Targets by their digest."""

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from service import conditional, targets
from service.api import examples
from service.api.body import TextBody, document_body
from service.api.parameters import CallerParam, Paging, PartsParam, SubmitCaller, TargetDigest
from service.api.problems import describe
from service.api.schemas.base import PageOf
from service.api.schemas.targets import TargetRead
from service.errors import (
    BodyTooLarge,
    InvalidRequest,
    MediaTypeUnsupported,
    TargetFaulty,
    TargetNotFound,
    TooSlow,
)

router = APIRouter(prefix="/v1/targets", tags=["sources"])


@router.post(
    "",
    status_code=201,
    summary="Store a target",
    openapi_extra=document_body("A target, schema `ninfer-target/1`.", examples.TARGET),
    responses={
        200: {"model": TargetRead, "description": "It is registered, or the project holds it already."},
        **describe(TooSlow, BodyTooLarge, MediaTypeUnsupported, TargetFaulty),
    },
)
def push(response: Response, parts: PartsParam, caller: SubmitCaller, text: TextBody) -> TargetRead:
    """The body is the document. It is read whole: every fault comes back as a finding, and nothing is stored then."""
    target, new = targets.push(parts, caller.project_id, text)
    response.headers["Location"] = f"/v1/targets/{target.digest}"
    response.status_code = 201 if new else 200
    return TargetRead.of(target)


@router.get("", summary="Targets", responses=describe(InvalidRequest))
def page(parts: PartsParam, caller: CallerParam, query: Annotated[Paging, Query()]) -> PageOf[TargetRead]:
    """The registered ones first, then those that the project stored, newest first."""
    query.within(parts)
    found = targets.page(parts, caller.project_id, limit=query.limit, cursor=query.cursor)
    return PageOf(items=[TargetRead.of(target) for target in found.items], next=found.next)


@router.get(
    "/{digest}",
    summary="A target's document",
    response_class=Response,
    responses={
        200: {
            "description": "The document in its RFC 8785 form.",
            "content": {"application/json": {"schema": {"type": "object"}}},
        },
        **conditional.DESCRIBED,
        **describe(TargetNotFound, InvalidRequest),
    },
)
def document(request: Request, digest: TargetDigest, parts: PartsParam, caller: CallerParam) -> Response:
    """The bytes of this answer are what the digest is of."""
    text = targets.document(parts, caller.project_id, digest)
    if same := conditional.unchanged(request, digest):
        return same
    return Response(text, headers=conditional.headers(digest), media_type="application/json")
