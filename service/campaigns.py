"""Campaigns: artifacts that a query finds are verified again on the bulk lane, a few at a time, each exactly once.

A campaign is its row: what was asked, and the last artifact that had its turn. Here it is begun, looked at and cancelled;
workers move it on (`service.campaigning`).
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, Final, Literal

from service import contents, jobs, provenance
from service.errors import CampaignNotFound, CampaignRunning, Fault, ServiceError
from service.job_requests import Verify, settled
from service.job_targets import named_target, recipe_of, stored_recipe
from service.jobs import JobView
from service.parts import Parts
from service.records import audit, campaigns
from service.records import jobs as job_rows
from service.records.campaigns import Selection
from service.records.models import Campaign
from service.records.pages import Page
from service.records.provenance import Basis, Kind
from service.records.types import first_id, new_id, now

State = Literal["running", "done", "cancelled"]
_AT_ONCE: Final = 1_000
_CANCELLED_AT_ONCE: Final = 100


@dataclass(frozen=True, slots=True)
class Query:
    """Which artifacts: every condition given must hold. `conditions` are of where they come from."""

    conditions: Mapping[Kind, str] = field(default_factory=dict)
    basis: Basis | None = None
    kind: str | None = None
    origin: str | None = None
    older_than_days: int | None = None
    not_verified_for_days: int | None = None

    def selection(self, project_id: str, id_: str, moment: datetime) -> Selection:
        """For a campaign with this id, started at this moment: artifacts that come later are none of it."""
        bound, since = id_, None
        if self.older_than_days is not None:
            bound = min(bound, first_id(moment - timedelta(days=self.older_than_days)))
        if self.not_verified_for_days is not None:
            since = moment - timedelta(days=self.not_verified_for_days)
        return Selection(project_id, bound, self.conditions, self.basis, self.kind, self.origin, since)


@dataclass(frozen=True, slots=True)
class Start:
    """A campaign to be; `verify` says what is asked of each artifact, its own `artifact` means nothing."""

    name: str
    query: Query
    verify: Verify
    priority: int = 0

    def document(self) -> dict[str, Any]:
        """As the row keeps it."""
        verify = asdict(self.verify)
        del verify["artifact"]
        verify["checks"] = list(self.verify.checks)
        return {"query": asdict(self.query), "verify": verify, "priority": self.priority}


@dataclass(frozen=True, slots=True)
class CampaignView:
    """A campaign, and how many of its jobs are in which state."""

    campaign: Campaign
    counts: Mapping[str, int]


def preview(parts: Parts, project_id: str, start: Start) -> int:
    """How many artifacts a campaign would be about. Raises: as `begin`."""
    return _checked(parts, project_id, start, new_id(), now())


def begin(
    parts: Parts, project_id: str, start: Start, actor: str, request_id: str | None = None
) -> CampaignView:
    """A new campaign, or the one of this name that runs and asks for the same.

    Raises: CampaignRunning for one that asks for something else; InvalidRequest, CheckUnknown, ReferenceUnknown,
    BlobsMissing, RecipeMismatch for what no artifact could be asked.
    """
    id_, moment = new_id(), now()
    total = _checked(parts, project_id, start, id_, moment)
    row = Campaign(
        id=id_,
        project_id=project_id,
        name=start.name,
        request=start.document(),
        state="running",
        cursor=None,
        total=total,
        selected=0,
        refused=0,
        created_by=actor,
        created_at=moment,
    )
    with parts.database.write() as session:
        stored = campaigns.add(session, row)
        if stored.id == id_:
            audit.add(session, project_id, actor, "campaign.started", id_, stored.request, request_id)
    if stored.request != row.request:
        fault = Fault("body", "$.name", f"campaign {stored.id} runs under this name")
        raise CampaignRunning(f"{start.name!r} is running and asks for something else.", fault)
    return view(parts, project_id, stored.id)


def _checked(parts: Parts, project_id: str, start: Start, id_: str, moment: datetime) -> int:
    """How many artifacts there are, the first of which can be asked what it is to be asked."""
    try:
        with parts.database.read() as session:
            provenance.require_known(session, project_id, start.query.conditions)
    except ServiceError as error:
        raise _placed(error, "$.query.") from error
    selection = start.query.selection(project_id, id_, moment)
    count, after, first = 0, "", None
    while True:
        with parts.database.read() as session:
            some = campaigns.found(session, selection, after, _AT_ONCE)
        if first is None and some:
            first = some[0][1]
        count += len(some)
        if len(some) < _AT_ONCE:
            break
        after = some[-1][0]
    if first is not None:
        try:
            _require_askable(parts, project_id, replace(start.verify, artifact=first))
        except ServiceError as error:
            raise _placed(error, "$.verify.") from error
    return count


def _require_askable(parts: Parts, project_id: str, request: Verify) -> None:
    named = named_target(parts, project_id, request)
    given = recipe_of(parts, project_id, request)
    recipe = stored_recipe(parts, project_id, given, named.contract) if isinstance(given, str) else None
    lost = contents.lost(parts, project_id, request.inputs.values())
    with parts.database.write() as session:  # which writes nothing, and holds content for a moment
        settled(session, project_id, request, recipe, named.name, lost)


def _placed(error: ServiceError, within: str) -> ServiceError:
    """The same refusal, its places being those of a campaign's body."""
    faults = [Fault("body", within + fault.path.removeprefix("$."), fault.message) for fault in error.faults]
    return type(error)(error.detail, *faults, findings=error.findings, **error.facts)


def view(parts: Parts, project_id: str, campaign_id: str) -> CampaignView:
    """Raises: CampaignNotFound."""
    with parts.database.read() as session:
        found = campaigns.campaign(session, project_id, campaign_id)
        if found is None:
            raise _not_found(campaign_id)
        return CampaignView(found, campaigns.counts(session, [found.id])[found.id])


def page(
    parts: Parts, project_id: str, *, limit: int, cursor: str | None, state: State | None = None
) -> Page[CampaignView]:
    """Newest first. Raises: BadCursor."""
    with parts.database.read() as session:
        found = campaigns.campaigns(session, project_id, limit=limit, cursor=cursor, state=state)
        told = campaigns.counts(session, [item.id for item in found.items])
    return Page([CampaignView(item, told[item.id]) for item in found.items], found.next)


def jobs_of(
    parts: Parts,
    project_id: str,
    campaign_id: str,
    *,
    limit: int,
    cursor: str | None,
    state: str | None = None,
) -> Page[JobView]:
    """Its jobs, newest first. Raises: CampaignNotFound, BadCursor."""
    with parts.database.read() as session:
        if campaigns.campaign(session, project_id, campaign_id) is None:
            raise _not_found(campaign_id)
        found = campaigns.jobs(session, campaign_id, limit=limit, cursor=cursor, state=state)
        return Page(jobs.viewed(parts, session, project_id, found.items), found.next)


def cancel(
    parts: Parts, project_id: str, campaign_id: str, actor: str, request_id: str | None = None
) -> CampaignView:
    """Make no further job, and cancel those that are open; one that is over stays as it is. Raises: CampaignNotFound."""
    with parts.database.write() as session:
        found = campaigns.campaign(session, project_id, campaign_id, lock=True)
        if found is None:
            raise _not_found(campaign_id)
        over = found.state == "done"
        if campaigns.end(session, campaign_id, "cancelled"):
            audit.add(session, project_id, actor, "campaign.cancelled", campaign_id, None, request_id)
    while not over and _cancel_some(parts, campaign_id):
        pass
    return view(parts, project_id, campaign_id)


def _cancel_some(parts: Parts, campaign_id: str) -> bool:
    with parts.database.write() as session:
        some = campaigns.open_jobs(session, campaign_id, _CANCELLED_AT_ONCE)
        for job in some:
            job_rows.request_cancel(session, job.project_id, job.id)
    return bool(some)


def _not_found(campaign_id: str) -> CampaignNotFound:
    return CampaignNotFound(f"This project never started a campaign {campaign_id}.")
