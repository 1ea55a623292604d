"""How campaigns get on: workers move them, all of them, as often as they look, each artifact getting one job.

A job has an idempotency key of campaign and artifact, so whoever dies between the job and the row makes no second one.
"""

import json
from collections.abc import Mapping
from typing import Any, Final

import structlog

from service import jobs
from service.campaigns import Query
from service.errors import ServiceError
from service.job_requests import Sample, Terms, Verify
from service.jobs import Sent
from service.lanes import BULK
from service.parts import Parts
from service.records import campaigns
from service.records import jobs as job_rows
from service.records.models import Campaign

log = structlog.get_logger()

_AT_ONCE: Final = 100  # campaigns, and jobs, that are looked up at a time


def advance(parts: Parts) -> None:
    """Move every campaign on: what any worker does, as often as it likes, at the same time as others."""
    with parts.database.read() as session:
        left = campaigns.left_open(session, _AT_ONCE)
    for job in left:
        with parts.database.write() as session:
            job_rows.request_cancel(session, job.project_id, job.id)
    after: str | None = ""
    while after is not None:  # all of them: many of one project hold up none of another's
        with parts.database.read() as session:
            running = campaigns.running(session, _AT_ONCE, after)
        for campaign in running:
            _advance(parts, campaign)
        after = running[-1].id if len(running) == _AT_ONCE else None


def _advance(parts: Parts, campaign: Campaign) -> None:
    with parts.database.read() as session:
        open_ = campaigns.count_open(session, campaign.id)
    room = parts.settings.campaign_window - open_
    if campaign.cursor is not None and campaign.cursor >= campaign.id:
        if open_ == 0:
            with parts.database.write() as session:
                campaigns.end(session, campaign.id, "done")
        return
    if room <= 0:
        return
    selection = _query(campaign.request["query"]).selection(
        campaign.project_id, campaign.id, campaign.created_at
    )
    with parts.database.read() as session:
        found = campaigns.found(session, selection, campaign.cursor or "", room)
    cursor = campaign.cursor
    for artifact_id, digest in found:
        refusal = _ask(parts, campaign, artifact_id, digest)
        with parts.database.write() as session:
            made = 1 if refusal is None else 0
            if not campaigns.move(session, campaign, cursor, artifact_id, refusal, made):
                return  # another worker was quicker, or it is cancelled
        cursor = artifact_id
    if len(found) < room:
        with parts.database.write() as session:
            # Beyond every artifact of it: nobody looks for more.
            campaigns.move(session, campaign, cursor, campaign.id)


def _ask(parts: Parts, campaign: Campaign, artifact_id: str, digest: str) -> dict[str, str] | None:
    """Start the artifact's job, once; why there cannot be one. Raises: ServiceError for what is our own fault."""
    asked = campaign.request["verify"]
    # With a space in it: no client can send this key.
    sent = Sent.of(json.dumps(asked), f"campaign {campaign.id} {artifact_id}")
    try:
        jobs.create(
            parts,
            campaign.project_id,
            _verify(asked, digest),
            sent,
            terms=Terms(BULK, campaign.request["priority"]),
            created_by=campaign.created_by,
            campaign_id=campaign.id,
        )
    except ServiceError as error:
        if error.status >= 500:
            raise
        log.warning("campaign.refused", campaign=campaign.id, artifact=digest, code=error.code)
        return {"artifact": digest, "code": error.code, "detail": error.detail}
    return None


def _query(stored: Mapping[str, Any]) -> Query:
    return Query(**stored)


def _verify(stored: Mapping[str, Any], digest: str) -> Verify:
    known = {**stored, "checks": tuple(stored["checks"])}
    if stored["sample"] is not None:
        known["sample"] = Sample(**stored["sample"])
    return Verify(artifact=digest, **known)
