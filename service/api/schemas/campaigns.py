"""Campaigns, as they are asked for and as they are told."""

from datetime import datetime
from typing import Annotated, Any, Literal, Self

from pydantic import Field

from ninfer_core.strict_json import Json
from service.api.schemas.base import Answer, Digest, Id, Sent
from service.api.schemas.jobs import Checkpoints, Inputs, SampleSent, TargetSent
from service.campaigns import CampaignView, Query, Start, State
from service.job_requests import Sample, Verify
from service.lanes import HIGHEST_PRIORITY, LOWEST_PRIORITY
from service.provenance import conditions
from service.records.provenance import KINDS, Basis

_LONGEST = 1_000
_MOST_DAYS = 36_500

Value = Annotated[str, Field(min_length=1, max_length=_LONGEST)]
Days = Annotated[int, Field(ge=0, le=_MOST_DAYS)]


class QuerySent(Sent):
    """Which artifacts: every member given must hold; without one, all that the project holds when the campaign starts."""

    encoder_profile: Value | None = Field(
        default=None, description="Name of a profile that an object was made by."
    )
    recipe: Value | None = Field(default=None, description="Digest of a recipe.")
    target: Value | None = Field(default=None, description="Digest of a target, or `model/weights`.")
    checkpoint: Value | None = Field(default=None, description="Digest of a checkpoint.")
    format: Value | None = Field(default=None, description="Name of a format that an object has.")
    tool_version: Value | None = Field(default=None, description="Version that made it, or checked it.")
    basis: Basis | None = Field(
        default=None,
        description="How the members above must be known; claims of the artifact count as well without it.",
    )
    kind: Literal["ninfer", "safetensors"] | None = None
    origin: Literal["pushed", "converted"] | None = None
    older_than_days: Days | None = Field(default=None, description="Held for so many days.")
    not_verified_for_days: Days | None = Field(
        default=None, description="No run of it that came to a verdict ended in so many days."
    )

    def query(self) -> Query:
        """As the use case takes it."""
        return Query(
            conditions({kind: getattr(self, kind) for kind in KINDS}),
            self.basis,
            self.kind,
            self.origin,
            self.older_than_days,
            self.not_verified_for_days,
        )


class CampaignVerifySent(Sent):
    """What is asked of each artifact, as in POST /v1/jobs; nothing is taken over from earlier runs unless it says so."""

    checks: list[str] = Field(default=[], max_length=32, description="Empty for the usual ones of its kind.")
    checkpoints: Checkpoints = Field(default_factory=dict)
    inputs: Inputs = Field(default_factory=dict)
    recipe: Value | None = Field(
        default=None, description="A recipe by its digest or id, or `auto`; no document."
    )
    target: TargetSent | None = None
    canonical: bool = False
    sample: SampleSent | None = None
    full: bool = True
    max_age_seconds: int | None = Field(default=None, ge=0, le=2**53)

    def request(self) -> Verify:
        """As the use case takes it, but for the artifact."""
        sample = None if self.sample is None else Sample(self.sample.fraction, self.sample.seed)
        return Verify(
            "",
            tuple(self.checks),
            self.checkpoints,
            self.inputs,
            self.recipe,
            self.target,
            self.canonical,
            sample,
            self.full,
            self.max_age_seconds,
        )


class CampaignSent(Sent):
    """Verify again what a query finds."""

    name: str = Field(
        min_length=1,
        max_length=100,
        pattern=r"^[^\x00-\x1f\x7f]+$",
        description="What people call it; of one name only one runs at a time.",
    )
    query: QuerySent = Field(default_factory=lambda: QuerySent(kind=None))
    verify: CampaignVerifySent = Field(default_factory=lambda: CampaignVerifySent(full=True))
    priority: int = Field(
        0, ge=LOWEST_PRIORITY, le=HIGHEST_PRIORITY, description="Among bulk work; a higher one goes first."
    )
    dry_run: bool = Field(False, description="Only say how many artifacts there are; nothing is started.")

    def start(self) -> Start:
        """As the use case takes it."""
        return Start(self.name, self.query.query(), self.verify.request(), self.priority)


class CampaignPreview(Answer):
    """What a campaign would be about."""

    artifacts: int = Field(description="How many artifacts the query finds now.")


class CampaignJobs(Answer):
    """How many jobs of a campaign are in which state."""

    queued: int = 0
    running: int = 0
    passed: int = 0
    failed: int = 0
    incomplete: int = 0
    error: int = 0
    cancelled: int = 0


class RefusalRead(Answer):
    """Why an artifact got no job."""

    artifact: Digest
    code: str
    detail: str


class CampaignRead(Answer):
    """A campaign and how far it is."""

    id: Id
    name: str
    state: State
    query: dict[str, Json]
    verify: dict[str, Json]
    priority: int
    total: int = Field(description="Artifacts that the query found as it was started.")
    selected: int = Field(description="Artifacts that got a job so far.")
    refused: int = Field(description="Artifacts that could not get one.")
    last_refusal: RefusalRead | None = Field(description="Why not, of the last of these.")
    jobs: CampaignJobs
    created_by: str
    created_at: datetime
    finished_at: datetime | None
    links: dict[str, str]

    @classmethod
    def of(cls, view: CampaignView) -> Self:
        """A campaign with its counts."""
        row = view.campaign
        asked: dict[str, Any] = row.request
        own = f"/v1/campaigns/{row.id}"
        return cls.model_validate(
            {
                "id": row.id,
                "name": row.name,
                "state": row.state,
                "query": _given(asked["query"]),
                "verify": _given(asked["verify"]),
                "priority": asked["priority"],
                "total": row.total,
                "selected": row.selected,
                "refused": row.refused,
                "last_refusal": row.last_refusal,
                "jobs": view.counts,
                "created_by": row.created_by,
                "created_at": row.created_at,
                "finished_at": row.finished_at,
                "links": {"self": own, "jobs": f"{own}/jobs", "cancel": f"{own}/cancel"},
            }
        )


def _given(document: dict[str, Any]) -> dict[str, Any]:
    """The members that say something; conditions stand beside the others, as they were sent."""
    flat = {**document.get("conditions", {}), **{k: v for k, v in document.items() if k != "conditions"}}
    return {name: value for name, value in flat.items() if value not in (None, [], {})}
