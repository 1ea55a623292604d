"""Queries over campaigns, and over the artifacts that they are about."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, cast

from sqlalchemy import ColumnElement, CursorResult, exists, func, select, text, update
from sqlalchemy.orm import Session, aliased

from service.records.events import IS_OPEN, OPEN
from service.records.models import Artifact, Campaign, Edge, Job, Project, Run
from service.records.pages import Page, cut, decode, encode, fetched, identifier
from service.records.provenance import KINDS, Basis, Kind
from service.records.rows import insert_new, values
from service.records.types import name_key, now

_LISTING: Final = "campaigns"
_JOBS: Final = "campaigns.jobs"
# Spelled as in the indexes `ix_campaigns_open` and `uq_campaigns_running`, or SQLite does not use them.
RUNS: Final = text("campaigns.state = 'running'")


@dataclass(frozen=True, slots=True)
class Selection:
    """Which artifacts: all with an id below `bound` for which everything that is given holds."""

    project_id: str
    bound: str
    conditions: Mapping[Kind, str] = field(default_factory=dict)
    basis: Basis | None = None
    kind: str | None = None
    origin: str | None = None
    not_verified_since: datetime | None = None  # no run of it that has a verdict ended after


def found(session: Session, selection: Selection, after: str, limit: int) -> list[tuple[str, str]]:
    """(id, digest) of the next artifacts after an id, the oldest first."""
    asked = [(kind, selection.conditions[kind]) for kind in KINDS if kind in selection.conditions]
    driving = aliased(Edge)
    # The first condition drives the query, since few artifacts are of one recipe, and is walked in the index's order.
    id_ = driving.artifact_id if asked else Artifact.id
    query = select(id_, Artifact.digest).where(Artifact.project_id == selection.project_id)
    if asked:
        query = query.join(driving, driving.artifact_id == Artifact.id).distinct()
        query = query.where(*_holds(driving, selection, *asked[0]))
    for condition in asked[1:]:
        edge = aliased(Edge)
        query = query.where(
            exists().where(edge.artifact_id == Artifact.id, *_holds(edge, selection, *condition))
        )
    query = query.where(*_is(selection), id_ > after, id_ < selection.bound)
    return [(found, digest) for found, digest in session.execute(query.order_by(id_).limit(limit))]


def _holds(edge: type[Edge], selection: Selection, kind: Kind, value: str) -> list[ColumnElement[bool]]:
    # The key is what indexes know; the value is compared too, since two may have one key.
    known = [edge.project_id == selection.project_id, edge.kind == kind]
    known += [edge.value_key == name_key(value), edge.value == value]
    return known if selection.basis is None else [*known, edge.basis == selection.basis]


def _is(selection: Selection) -> Iterator[ColumnElement[bool]]:
    if selection.kind is not None:
        yield Artifact.kind == selection.kind
    if selection.origin is not None:
        yield Artifact.origin == selection.origin
    if selection.not_verified_since is not None:
        yield ~exists().where(
            Run.artifact_id == Artifact.id,
            Run.verdict.is_not(None),
            Run.finished_at >= selection.not_verified_since,
        )


def add(session: Session, campaign: Campaign) -> Campaign:
    """The stored campaign: `campaign`, or the one of this name that runs already; compare their ids to tell."""
    if insert_new(session, Campaign, [values(campaign)]) == 1:
        return session.get_one(Campaign, campaign.id)
    query = select(Campaign).where(
        Campaign.project_id == campaign.project_id,
        Campaign.name == campaign.name,
        RUNS,
    )
    running = session.scalars(query).one_or_none()
    return add(session, campaign) if running is None else running  # it has just ended


def campaign(session: Session, project_id: str, campaign_id: str, *, lock: bool = False) -> Campaign | None:
    """The campaign with an id."""
    query = select(Campaign).where(Campaign.project_id == project_id, Campaign.id == campaign_id)
    if lock:
        query = query.with_for_update()
    return session.scalars(query).one_or_none()


def campaigns(
    session: Session, project_id: str, *, limit: int, cursor: str | None = None, state: str | None = None
) -> Page[Campaign]:
    """Campaigns, newest first. Raises: BadCursor."""
    query = select(Campaign).where(Campaign.project_id == project_id)
    if state is not None:
        query = query.where(Campaign.state == state)
    after = decode(cursor, _LISTING, identifier)
    if after is not None:
        query = query.where(Campaign.id < after[0])
    rows = session.scalars(query.order_by(Campaign.id.desc()).limit(fetched(limit))).all()
    return cut(rows, limit, lambda row: encode(_LISTING, row.id))


def running(session: Session, limit: int, after: str = "") -> list[Campaign]:
    """Campaigns of every project that is not deleted, the oldest first; those with an id above `after`."""
    query = select(Campaign).join(Project, Project.id == Campaign.project_id)
    query = query.where(RUNS, Campaign.id > after, Project.deleted_at.is_(None))
    return list(session.scalars(query.order_by(Campaign.id).limit(limit)))


def counts(session: Session, ids: Iterable[str]) -> dict[str, dict[str, int]]:
    """How many jobs of each campaign are in which state."""
    told: dict[str, dict[str, int]] = {id_: {} for id_ in ids}
    query = select(Job.campaign_id, Job.state, func.count()).where(Job.campaign_id.in_(told))
    for id_, state, count in session.execute(query.group_by(Job.campaign_id, Job.state)):
        told[str(id_)][state] = count
    return told


def jobs(
    session: Session, campaign_id: str, *, limit: int, cursor: str | None = None, state: str | None = None
) -> Page[Job]:
    """The jobs of a campaign, newest first. Raises: BadCursor."""
    query = select(Job).where(Job.campaign_id == campaign_id)
    if state is not None:
        query = query.where(Job.state == state)
    after = decode(cursor, _JOBS, identifier)
    if after is not None:
        query = query.where(Job.id < after[0])
    rows = session.scalars(query.order_by(Job.id.desc()).limit(fetched(limit))).all()
    return cut(rows, limit, lambda row: encode(_JOBS, row.id))


def count_open(session: Session, campaign_id: str) -> int:
    """How many of its jobs are queued or running."""
    query = select(func.count()).where(Job.campaign_id == campaign_id, Job.state.in_(OPEN))
    return session.scalar(query) or 0


def move(
    session: Session, campaign: Campaign, cursor: str | None, to: str, refusal: Any = None, jobs: int = 0
) -> bool:
    """Note that the artifacts up to an id had their turn; False when somebody else did, or the campaign runs no more."""
    known: dict[str, Any] = {} if refusal is None else {"last_refusal": refusal}
    statement = (
        update(Campaign)
        .where(
            Campaign.id == campaign.id,
            Campaign.state == "running",
            Campaign.cursor.is_not_distinct_from(cursor),
        )
        .values(
            cursor=to,
            selected=Campaign.selected + jobs,
            refused=Campaign.refused + (0 if refusal is None else 1),
            **known,
        )
        .execution_options(synchronize_session=False)
    )
    return cast("CursorResult[None]", session.execute(statement)).rowcount == 1


def end(session: Session, campaign_id: str, state: str) -> bool:
    """End a campaign that runs; whether this call did."""
    statement = update(Campaign).where(Campaign.id == campaign_id, Campaign.state == "running")
    done = session.execute(statement.values(state=state, finished_at=now()))
    return cast("CursorResult[None]", done).rowcount == 1


def left_open(session: Session, limit: int) -> list[Job]:
    """Open jobs of campaigns that are cancelled, which were made while that was said."""
    query = select(Job).join(Campaign, Campaign.id == Job.campaign_id)
    query = query.where(IS_OPEN, Job.cancel_requested.is_(False))
    return list(session.scalars(query.where(Campaign.state == "cancelled").order_by(Job.id).limit(limit)))


def open_jobs(session: Session, campaign_id: str, limit: int) -> list[Job]:
    """Jobs of a campaign that are open and were not told to stop, the newest first."""
    query = select(Job).where(
        Job.campaign_id == campaign_id, Job.state.in_(OPEN), Job.cancel_requested.is_(False)
    )
    return list(session.scalars(query.order_by(Job.id.desc()).limit(limit)))
