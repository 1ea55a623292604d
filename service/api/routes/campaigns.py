"""Campaigns: artifacts that a query finds, verified again on the bulk lane."""

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Response
from pydantic import TypeAdapter
from starlette.responses import JSONResponse

from service import campaigns, logs
from service.api import body, examples
from service.api.parameters import CallerParam, CampaignId, Paging, PartsParam, SubmitCaller
from service.api.problems import describe
from service.api.schemas.base import PageOf
from service.api.schemas.campaigns import CampaignPreview, CampaignRead, CampaignSent
from service.api.schemas.jobs import JobRead
from service.errors import (
    BlobsMissing,
    CampaignNotFound,
    CampaignRunning,
    CheckUnknown,
    InvalidRequest,
    RecipeMismatch,
    ReferenceUnknown,
)
from service.jobs import JobState

router = APIRouter(prefix="/v1/campaigns", tags=["campaigns"])
CAMPAIGN: TypeAdapter[CampaignSent] = TypeAdapter(CampaignSent)


class CampaignPaging(Paging):
    """Campaigns by state."""

    state: campaigns.State | None = None


class CampaignJobPaging(Paging):
    """Jobs of a campaign by state."""

    state: JobState | None = None


@router.post(
    "",
    status_code=202,
    summary="Start a campaign",
    response_model=CampaignRead,
    openapi_extra=body.request_body(CAMPAIGN, start=examples.CAMPAIGN, dry_run=examples.CAMPAIGN_DRY_RUN),
    responses={
        200: {"description": "Of a dry run: how many artifacts there are.", "model": CampaignPreview},
        **describe(
            *body.BODY_ERRORS,
            CheckUnknown,
            ReferenceUnknown,
            BlobsMissing,
            RecipeMismatch,
            CampaignRunning,
        ),
    },
)
def start(
    response: Response,
    parts: PartsParam,
    caller: SubmitCaller,
    sent: Annotated[body.Body[CampaignSent], Depends(body.strict(CAMPAIGN))],
) -> Any:
    """Every artifact that the query finds now is verified once, on the bulk lane, a few at a time.

    What no artifact could be asked is refused at once; an artifact that cannot be asked is counted and passed over. The same
    name and body again, while it runs, is the same campaign.
    """
    asked = sent.value.start()
    if sent.value.dry_run:
        found = campaigns.preview(parts, caller.project_id, asked)
        return JSONResponse(CampaignPreview(artifacts=found).model_dump())
    made = campaigns.begin(parts, caller.project_id, asked, caller.actor, logs.request_id())
    response.headers["Location"] = f"/v1/campaigns/{made.campaign.id}"
    return CampaignRead.of(made)


@router.get("", summary="Campaigns, newest first", responses=describe(InvalidRequest))
def page(
    parts: PartsParam, caller: CallerParam, query: Annotated[CampaignPaging, Query()]
) -> PageOf[CampaignRead]:
    """With how far each of them is."""
    query.within(parts)
    found = campaigns.page(
        parts, caller.project_id, limit=query.limit, cursor=query.cursor, state=query.state
    )
    return PageOf(items=[CampaignRead.of(view) for view in found.items], next=found.next)


@router.get("/{campaign}", summary="A campaign", responses=describe(CampaignNotFound, InvalidRequest))
def one(campaign: CampaignId, parts: PartsParam, caller: CallerParam) -> CampaignRead:
    """What it asks, and how many of its jobs are in which state."""
    return CampaignRead.of(campaigns.view(parts, caller.project_id, campaign))


@router.get(
    "/{campaign}/jobs",
    summary="Jobs of a campaign, newest first",
    responses=describe(CampaignNotFound, InvalidRequest),
)
def jobs_of(
    campaign: CampaignId,
    parts: PartsParam,
    caller: CallerParam,
    query: Annotated[CampaignJobPaging, Query()],
) -> PageOf[JobRead]:
    """One for each artifact that had its turn; `state=failed` gives those that did not pass."""
    query.within(parts)
    found = campaigns.jobs_of(
        parts,
        caller.project_id,
        campaign,
        limit=query.limit,
        cursor=query.cursor,
        state=query.state,
    )
    return PageOf(items=[JobRead.of(view) for view in found.items], next=found.next)


@router.post(
    "/{campaign}/cancel",
    status_code=202,
    summary="Cancel a campaign",
    responses=describe(CampaignNotFound, InvalidRequest),
)
def cancel(campaign: CampaignId, parts: PartsParam, caller: SubmitCaller) -> CampaignRead:
    """No further job is made, and those that are open are cancelled; one that is over stays as it is."""
    return CampaignRead.of(
        campaigns.cancel(parts, caller.project_id, campaign, caller.actor, logs.request_id())
    )
