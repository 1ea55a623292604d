"""Comparisons: what is the same in two artifacts, what changed, and by how much."""

from typing import Annotated, Literal

from fastapi import APIRouter, Query, Request, Response
from starlette.responses import StreamingResponse

from ninfer_core.compare.comparison import Status
from service import comparisons, conditional
from service.api.parameters import CallerParam, ComparisonId, Paging, PartsParam
from service.api.problems import describe
from service.api.routes.runs import FindingPaging
from service.api.schemas.base import PageOf
from service.api.schemas.comparisons import ComparedObject, ComparisonRead, SidedFinding
from service.errors import ComparisonNotFound, InvalidRequest, NoReport, NotFinal

router = APIRouter(prefix="/v1/comparisons", tags=["comparisons"])


class ComparedPaging(Paging):
    """Pairs of objects by what became of them, in the order of the directories or the worst first."""

    status: Status | None = None
    order: Literal["ordinal", "worst"] = "ordinal"


@router.get("/{comparison}", summary="A comparison", responses=describe(ComparisonNotFound, InvalidRequest))
def one(comparison: ComparisonId, parts: PartsParam, caller: CallerParam) -> ComparisonRead:
    """With the heading of its document: both artifacts, and objects and bytes by status."""
    return ComparisonRead.of(comparisons.comparison(parts, caller.project_id, comparison))


@router.get(
    "/{comparison}/objects",
    summary="Objects of a comparison",
    responses=describe(ComparisonNotFound, InvalidRequest),
)
def objects(
    comparison: ComparisonId,
    parts: PartsParam,
    caller: CallerParam,
    query: Annotated[ComparedPaging, Query()],
) -> PageOf[ComparedObject]:
    """What became of each pair: A's objects first, then those that only B has. With `order=worst` the worst first."""
    query.within(parts)
    found = comparisons.objects(
        parts,
        caller.project_id,
        comparison,
        limit=query.limit,
        cursor=query.cursor,
        status=query.status,
        order=query.order,
    )
    return PageOf(items=[ComparedObject.of(row) for row in found.items], next=found.next)


@router.get(
    "/{comparison}/findings",
    summary="Findings of a comparison",
    responses=describe(ComparisonNotFound, InvalidRequest),
)
def findings(
    comparison: ComparisonId, parts: PartsParam, caller: CallerParam, query: Annotated[FindingPaging, Query()]
) -> PageOf[SidedFinding]:
    """What is wrong with the structure of either artifact."""
    query.within(parts)
    filters = query.model_dump(include={"severity", "code", "check", "object"})
    found = comparisons.findings(
        parts, caller.project_id, comparison, limit=query.limit, cursor=query.cursor, **filters
    )
    return PageOf(items=[SidedFinding.sided(row) for row in found.items], next=found.next)


@router.get(
    "/{comparison}/report",
    summary="The document of a comparison",
    response_class=Response,
    responses={
        200: {
            "description": "The document `ninfer-gate/comparison/1`.",
            "content": {"application/json": {"schema": {"type": "object"}}},
        },
        **conditional.DESCRIBED,
        **describe(ComparisonNotFound, NotFinal, NoReport, InvalidRequest),
    },
)
def report(request: Request, comparison: ComparisonId, parts: PartsParam, caller: CallerParam) -> Response:
    """What `ninfer-gate diff --json` writes for the same two artifacts. It never changes."""
    pieces = comparisons.report(parts, caller.project_id, comparison)
    if same := conditional.unchanged(request, comparison):
        return same
    return StreamingResponse(pieces, headers=conditional.headers(comparison), media_type="application/json")
