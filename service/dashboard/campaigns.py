"""Campaigns: what runs, one of them with its jobs, and the form that starts one or says how many artifacts it would be about."""

import json
from collections.abc import Mapping
from typing import Annotated, Any, Final, TypeVar, get_args

from fastapi import APIRouter, Path
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from ninfer_core.encoders import PROFILES
from ninfer_core.formats import FORMATS
from service import campaigns, logs, provenance
from service.campaigns import CampaignView, Query, Start, State
from service.dashboard.access import Form, SameOrigin, Submitting, Visiting, Visitor
from service.dashboard.artifacts import Text, options
from service.dashboard.failures import PageRoute, missing
from service.dashboard.format import clipped, number, plural
from service.dashboard.progress import Line
from service.dashboard.render import HEADERS, page
from service.dashboard.states import STATES
from service.errors import CampaignNotFound, InvalidRequest, ServiceError
from service.job_requests import Verify
from service.jobs import JobState
from service.records import views
from service.records.provenance import BASES, KINDS

router = APIRouter(route_class=PageRoute)
CAMPAIGNS, JOBS = 50, 50
_LONGEST_NAME, _LONGEST_VALUE, _MOST_DAYS = 100, 1_000, 36_500
_FINAL: Final = ("passed", "failed", "incomplete", "error", "cancelled")
Word = TypeVar("Word", bound=str)
CampaignId = Annotated[str, Path(pattern="^[0-9a-f]{32}$")]


@router.get("/campaigns")
def listing(
    visiting: Visiting, request: Request, state: State | None = None, cursor: Text = None
) -> Response:
    """Newest first, with the form."""
    return _listed(visiting, request, state=state, cursor=cursor)


@router.post("/campaigns", dependencies=[SameOrigin])
def start(visiting: Submitting, request: Request, sent: Form) -> Response:
    """Start one, or only count what it would be about."""
    parts, project_id = visiting.parts, visiting.project_id
    try:
        asked = _asked(sent)
        if "count" in sent:
            found = campaigns.preview(parts, project_id, asked)
            return _listed(visiting, request, filled=sent, found=found)
        made = campaigns.begin(parts, project_id, asked, visiting.caller.actor, logs.request_id())
    except ServiceError as error:
        return _listed(visiting, request, error.status, filled=sent, wrong=_wrong(error))
    return RedirectResponse(f"/campaigns/{made.campaign.id}", 303, HEADERS)


@router.get("/campaigns/{campaign_id}")
def one(
    visiting: Visiting,
    request: Request,
    campaign_id: CampaignId,
    state: JobState | None = None,
    cursor: Text = None,
) -> Response:
    """What it asks, how far it is, and its jobs."""
    parts, project_id = visiting.parts, visiting.project_id
    try:
        view = campaigns.view(parts, project_id, campaign_id)
        listed = campaigns.jobs_of(parts, project_id, campaign_id, limit=JOBS, cursor=cursor, state=state)
    except CampaignNotFound:
        raise missing("campaign") from None
    with parts.database.read() as session:
        ids = {item.job.artifact_id for item in listed.items if item.job.artifact_id}
        held = views.artifacts(session, project_id, ids)
    return page(
        request,
        "campaign.html",
        view=view,
        line=_line(view),
        mark=STATES[view.campaign.state],
        query=_told(view.campaign.request["query"]),
        verify=_told(view.campaign.request["verify"]),
        listed=listed,
        held=held,
        state=state,
        choices=get_args(JobState),
    )


@router.post("/campaigns/{campaign_id}/cancel", dependencies=[SameOrigin])
def cancel(visiting: Submitting, campaign_id: CampaignId) -> Response:
    """Make no further job, and stop those that are open."""
    try:
        campaigns.cancel(
            visiting.parts, visiting.project_id, campaign_id, visiting.caller.actor, logs.request_id()
        )
    except CampaignNotFound:
        raise missing("campaign") from None
    return RedirectResponse(f"/campaigns/{campaign_id}", 303, HEADERS)


def _listed(
    visiting: Visitor,
    request: Request,
    status: int = 200,
    *,
    state: State | None = None,
    cursor: str | None = None,
    filled: Mapping[str, str] | None = None,
    found: int | None = None,
    wrong: str | None = None,
) -> Response:
    listed = campaigns.page(visiting.parts, visiting.project_id, limit=CAMPAIGNS, cursor=cursor, state=state)
    given = dict(filled or {"full": "on"})
    return page(
        request,
        "campaigns.html",
        status,
        listed=listed,
        rows=[(view, _line(view)) for view in listed.items],
        state=state,
        choices=get_args(State),
        filled=given,
        found=found,
        wrong=wrong,
        profiles=options(PROFILES.names, given.get("encoder_profile")),
        formats=options(FORMATS.names, given.get("format")),
        bases=BASES,
    )


def _asked(sent: Mapping[str, str]) -> Start:
    """What the form says. Raises: InvalidRequest."""
    name = sent.get("name", "").strip()
    if not 1 <= len(name) <= _LONGEST_NAME or not name.isprintable():
        raise InvalidRequest(f"Give the campaign a name of at most {_LONGEST_NAME} characters.")
    given = {kind: sent.get(kind, "").strip() for kind in KINDS}
    too_long = [kind for kind, value in given.items() if len(value) > _LONGEST_VALUE]
    if too_long:
        raise InvalidRequest(f"What it says of {', '.join(too_long)} is too long.")
    query = Query(
        provenance.conditions({kind: value for kind, value in given.items() if value}),
        _one_of(sent, "basis", BASES),
        _one_of(sent, "kind", ("ninfer", "safetensors")),
        _one_of(sent, "origin", ("pushed", "converted")),
        _days(sent, "older_than_days"),
        _days(sent, "not_verified_for_days"),
    )
    verify = Verify(
        "",
        recipe=sent.get("by_recipe", "").strip()[:_LONGEST_VALUE] or None,
        target=sent.get("for_target", "").strip()[:_LONGEST_VALUE] or None,
        full="full" in sent,
    )
    return Start(name, query, verify)


def _one_of(sent: Mapping[str, str], member: str, words: tuple[Word, ...]) -> Word | None:
    text = sent.get(member, "")
    found = next((word for word in words if word == text), None)
    if text and found is None:
        raise InvalidRequest(f"What it says of {member} is none of {', '.join(words)}.")
    return found


def _days(sent: Mapping[str, str], member: str) -> int | None:
    text = sent.get(member, "").strip()
    if not text:
        return None
    if not text.isdecimal() or len(text) > 6 or int(text) > _MOST_DAYS:
        raise InvalidRequest(f"Days are a whole number up to {_MOST_DAYS:,}.")
    return int(text)


def _wrong(error: ServiceError) -> str:
    return clipped(
        " ".join(
            [error.detail, *(f"{fault.path.removeprefix('$.')}: {fault.message}." for fault in error.faults)]
        )
    )


def _line(view: CampaignView) -> Line:
    """How many of the artifacts have an answer."""
    counts, total = view.counts, view.campaign.total
    over = sum(counts.get(state, 0) for state in _FINAL) + view.campaign.refused
    parts = [f"{number(over)} of {plural(total, 'artifact')}"]
    parts += [
        f"{number(counts[state])} {STATES[state].word}" for state in (*_FINAL, "running") if counts.get(state)
    ]
    if view.campaign.refused:
        parts.append(f"{number(view.campaign.refused)} could not be asked")
    return Line(min(over, total), total or None, " · ".join(parts))


def _told(document: Mapping[str, Any]) -> dict[str, str]:
    """The members that say something, conditions beside the others."""
    flat = {**document.get("conditions", {}), **{k: v for k, v in document.items() if k != "conditions"}}
    return {
        name.replace("_", " "): value
        if isinstance(value, str)
        else "yes"
        if value is True
        else json.dumps(value)
        for name, value in flat.items()
        if value not in (None, [], {}, False)
    }
