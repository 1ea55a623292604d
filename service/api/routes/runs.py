"""Runs: verdicts, what was found of each object, findings, reports."""

from typing import Annotated, Literal

from fastapi import APIRouter, Query, Request, Response
from pydantic import Field
from starlette.responses import StreamingResponse

from service import conditional, reports
from service.api.parameters import CallerParam, Paging, PartsParam, RunId
from service.api.problems import describe
from service.api.routes.artifacts import RunPaging
from service.api.schemas.base import PageOf
from service.api.schemas.runs import FindingRead, Outcome, ResultRead, RunRead, RunWhole
from service.errors import InvalidRequest, NoReport, NotFinal, RunNotFound

router = APIRouter(prefix="/v1/runs", tags=["runs"])


_WORD = r"^[a-z0-9_.]{1,100}$"


class ResultPaging(Paging):
    """Objects by outcome and by what they are, in the order of the directory or the noisiest first."""

    outcome: Outcome | None = None
    format: str | None = None
    kind: str | None = None
    name: str | None = None
    order: Literal["ordinal", "worst"] = "ordinal"


class FindingPaging(Paging):
    """Findings by what they say and of what."""

    severity: Literal["error", "advisory"] | None = None
    code: str | None = Field(None, pattern=_WORD)
    check: str | None = Field(None, pattern=_WORD)
    object: str | None = Field(None, description="The name of one.")


@router.get("", summary="Runs, newest first", responses=describe(InvalidRequest))
def page(parts: PartsParam, caller: CallerParam, query: Annotated[RunPaging, Query()]) -> PageOf[RunRead]:
    """Verifications of every artifact."""
    query.within(parts)
    found = reports.runs_page(
        parts, caller.project_id, limit=query.limit, cursor=query.cursor, verdict=query.verdict
    )
    return PageOf(items=[RunRead.of(view) for view in found.items], next=found.next)


@router.get("/{run}", summary="A run", responses=describe(RunNotFound, InvalidRequest))
def one(run: RunId, parts: PartsParam, caller: CallerParam) -> RunWhole:
    """With the heading of its report: checks and coverage."""
    return RunWhole.whole(reports.run(parts, caller.project_id, run))


@router.get("/{run}/objects", summary="Objects of a run", responses=describe(RunNotFound, InvalidRequest))
def objects(
    run: RunId, parts: PartsParam, caller: CallerParam, query: Annotated[ResultPaging, Query()]
) -> PageOf[ResultRead]:
    """What became of each object."""
    query.within(parts)
    filters = query.model_dump(include={"outcome", "format", "kind", "name"})
    found = reports.run_objects(
        parts,
        caller.project_id,
        run,
        limit=query.limit,
        cursor=query.cursor,
        order=query.order,
        **filters,
    )
    return PageOf(items=[ResultRead.model_validate(item) for item in found.items], next=found.next)


@router.get("/{run}/findings", summary="Findings of a run", responses=describe(RunNotFound, InvalidRequest))
def findings(
    run: RunId, parts: PartsParam, caller: CallerParam, query: Annotated[FindingPaging, Query()]
) -> PageOf[FindingRead]:
    """In the order of the report."""
    query.within(parts)
    filters = query.model_dump(include={"severity", "code", "check", "object"})
    found = reports.run_findings(
        parts, caller.project_id, run, limit=query.limit, cursor=query.cursor, **filters
    )
    return PageOf(items=[FindingRead.of(row) for row in found.items], next=found.next)


@router.get(
    "/{run}/report",
    summary="The report of a run",
    response_class=Response,
    responses={
        200: {
            "description": "The document `ninfer-gate/report/1`.",
            "content": {"application/json": {"schema": {"type": "object"}}},
        },
        **conditional.DESCRIBED,
        **describe(RunNotFound, NotFinal, NoReport, InvalidRequest),
    },
)
def report(request: Request, run: RunId, parts: PartsParam, caller: CallerParam) -> Response:
    """What `ninfer-gate verify --json` writes for the same file. It never changes."""
    pieces = reports.run_report(parts, caller.project_id, run)
    if same := conditional.unchanged(request, run):
        return same
    return StreamingResponse(pieces, headers=conditional.headers(run), media_type="application/json")
