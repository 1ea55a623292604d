"""Conversions: how an artifact was made."""

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response
from starlette.responses import StreamingResponse

from service import conditional, conversion_records, reports
from service.api.parameters import CallerParam, ConversionId, Paging, PartsParam
from service.api.problems import describe
from service.api.routes.runs import FindingPaging
from service.api.schemas.base import PageOf
from service.api.schemas.runs import ConversionRead, FindingRead
from service.errors import ConversionNotFound, InvalidRequest, NoReport, NotFinal

router = APIRouter(prefix="/v1/conversions", tags=["conversions"])


@router.get("/{conversion}", summary="A conversion", responses=describe(ConversionNotFound, InvalidRequest))
def one(conversion: ConversionId, parts: PartsParam, caller: CallerParam) -> ConversionRead:
    """With the heading of its report."""
    return ConversionRead.of(reports.conversion(parts, caller.project_id, conversion))


@router.get(
    "/{conversion}/objects",
    summary="Objects of a conversion",
    responses=describe(ConversionNotFound, InvalidRequest),
)
def objects(
    conversion: ConversionId, parts: PartsParam, caller: CallerParam, query: Annotated[Paging, Query()]
) -> PageOf[dict[str, Any]]:
    """How each object was made: its sources, its encoder, and what that had to bend."""
    query.within(parts)
    found = reports.conversion_objects(
        parts, caller.project_id, conversion, limit=query.limit, cursor=query.cursor
    )
    return PageOf(items=[row.document for row in found.items], next=found.next)


@router.get(
    "/{conversion}/findings",
    summary="Findings of a conversion",
    responses=describe(ConversionNotFound, InvalidRequest),
)
def findings(
    conversion: ConversionId, parts: PartsParam, caller: CallerParam, query: Annotated[FindingPaging, Query()]
) -> PageOf[FindingRead]:
    """Why it was refused, and what else was noticed."""
    query.within(parts)
    filters = query.model_dump(include={"severity", "code", "check", "object"})
    found = reports.conversion_findings(
        parts, caller.project_id, conversion, limit=query.limit, cursor=query.cursor, **filters
    )
    return PageOf(items=[FindingRead.of(row) for row in found.items], next=found.next)


@router.get(
    "/{conversion}/report",
    summary="The report of a conversion",
    response_class=Response,
    responses={
        200: {
            "description": "The document `ninfer-gate/conversion/1`.",
            "content": {"application/json": {"schema": {"type": "object"}}},
        },
        **conditional.DESCRIBED,
        **describe(ConversionNotFound, NotFinal, NoReport, InvalidRequest),
    },
)
def report(request: Request, conversion: ConversionId, parts: PartsParam, caller: CallerParam) -> Response:
    """What `ninfer-gate convert --json` writes. It never changes."""
    pieces = reports.conversion_report(parts, caller.project_id, conversion)
    if same := conditional.unchanged(request, conversion):
        return same
    return StreamingResponse(pieces, headers=conditional.headers(conversion), media_type="application/json")


@router.get(
    "/{conversion}/provenance",
    summary="The provenance record of a conversion",
    response_class=Response,
    responses={
        200: {
            "description": "The document `ninfer-gate/provenance-record/1` in its RFC 8785 form.",
            "content": {"application/json": {"schema": {"type": "object"}}},
        },
        **conditional.DESCRIBED,
        **describe(ConversionNotFound, NotFinal, NoReport, InvalidRequest),
    },
)
def record(request: Request, conversion: ConversionId, parts: PartsParam, caller: CallerParam) -> Response:
    """What `ninfer-gate convert` writes beside its output; its entity tag is its digest. It never changes.

    What was measured and what somebody claims of a source stand apart: `measured`, `claimed`.
    """
    digest, pieces = conversion_records.record(parts, caller.project_id, conversion)
    if same := conditional.unchanged(request, digest):
        return same
    return StreamingResponse(pieces, headers=conditional.headers(digest), media_type="application/json")


@router.head(
    "/{conversion}/provenance",
    summary="Whether a conversion has a provenance record",
    response_class=Response,
    responses={
        200: {"description": "It has one.", "content": {}},
        **describe(ConversionNotFound, NotFinal, NoReport, InvalidRequest),
    },
)
def look(conversion: ConversionId, parts: PartsParam, caller: CallerParam) -> Response:
    """The headers of the record: its entity tag, which is its digest, and `Content-Length`."""
    digest, size = conversion_records.described(parts, caller.project_id, conversion)
    headers = conditional.headers(digest) | {"Content-Length": str(size)}
    return Response(headers=headers, media_type="application/json")
