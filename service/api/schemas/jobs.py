"""Jobs, as they are asked for and as they are told."""

from datetime import datetime
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, TypeAdapter, WithJsonSchema

from ninfer_core.strict_json import Json, Real
from service.api.body import spelled
from service.api.schemas.base import Answer, Digest, Id, Sent
from service.api.schemas.comparisons import CompareSent
from service.api.schemas.imports import ImportSent
from service.api.schemas.scheme_checks import SchemeSent
from service.api.schemas.selfchecks import SelfCheckSent
from service.api.schemas.terms import JobSent
from service.job_requests import Convert, Output, Sample, Verify
from service.jobs import JobState, JobView, answered_selfcheck, links
from service.lanes import Lane

_MOST_ROLES = 64
_MOST_INPUTS = 1_000
_LONGEST_NAME = 1_000


def _document_or_name(value: Any) -> Any:
    if isinstance(value, dict) or (isinstance(value, str) and 0 < len(value) <= _LONGEST_NAME):
        return value
    raise ValueError("Input should be a recipe document, or the digest or id of one")


RecipeSent = Annotated[
    Any,
    AfterValidator(_document_or_name),
    WithJsonSchema(
        {
            "anyOf": [{"type": "string", "minLength": 1, "maxLength": _LONGEST_NAME}, {"type": "object"}],
            "description": "A stored recipe by its digest, or by an id that only one has, a registered one by its id, or the "
            "document itself; the latter two are then stored. A verification may say `auto` for the registered one of its "
            "target.",
        }
    ),
]
TargetSent = Annotated[
    str,
    Field(
        min_length=1,
        max_length=_LONGEST_NAME,
        description="A target by its digest or as `model/weights`; a verification may say `auto` for the one of the "
        "artifact's identity, registered or stored.",
    ),
]
Checkpoints = Annotated[
    dict[str, Id], Field(max_length=_MOST_ROLES, description="Ids of checkpoints, by the recipe's roles.")
]
Inputs = Annotated[
    dict[str, Digest],
    Field(max_length=_MOST_INPUTS, description="Digests of content, by the recipe's input names."),
]


def recipe_of(value: Any) -> str | bytes:
    """A digest or an id, or the text of a document as exact as it was sent."""
    return value if isinstance(value, str) else spelled(value).encode()


Fraction = Annotated[float, BeforeValidator(lambda value: value.value if isinstance(value, Real) else value)]


class SampleSent(Sent):
    """Compare a stated part of every large object; the report says what that can find."""

    fraction: Fraction = Field(gt=0, le=1, description="About what share of the rows.")
    seed: int = Field(0, ge=0, le=2**63 - 1)


class VerifySent(JobSent):
    """Verify an artifact."""

    type: Literal["verify"]
    artifact: Digest
    checks: list[str] = Field([], max_length=32, description="Empty for the usual ones of its kind.")
    checkpoints: Checkpoints = Field(default_factory=dict)
    inputs: Inputs = Field(default_factory=dict)
    recipe: RecipeSent | None = None
    target: TargetSent | None = None
    canonical: bool = Field(
        False, description="Other order than the canonical writer's, and slack, are errors."
    )
    sample: SampleSent | None = None
    full: bool = Field(False, description="Take nothing over from earlier runs.")
    max_age_seconds: int | None = Field(
        None, ge=0, le=2**53, description="Take nothing over from runs that ended longer ago."
    )

    def request(self) -> Verify:
        """As the use case takes it."""
        sample = self.sample
        return Verify(
            self.artifact,
            tuple(self.checks),
            self.checkpoints,
            self.inputs,
            None if self.recipe is None else recipe_of(self.recipe),
            self.target,
            self.canonical,
            None if sample is None else Sample(sample.fraction, sample.seed),
            self.full,
            self.max_age_seconds,
        )


class OutputSent(Sent):
    """What a conversion writes."""

    revision: Literal[2, 3] = 2
    max_file_bytes: int | None = Field(
        default=None,
        ge=1,
        le=2**63 - 1,
        description="Revision 3 is split into files of at most this size; revision 2 is one file.",
    )
    name: str | None = Field(
        default=None, description="Name of the file; made of the recipe's identity by default."
    )


class ConvertSent(JobSent):
    """Make an artifact out of checkpoints by a recipe."""

    type: Literal["convert"]
    checkpoints: Checkpoints
    recipe: RecipeSent
    output: OutputSent = Field(default_factory=lambda: OutputSent(revision=2))
    inputs: Inputs = Field(default_factory=dict)
    target: TargetSent | None = None

    def request(self) -> Convert:
        """As the use case takes it."""
        output = Output(self.output.revision, self.output.max_file_bytes, self.output.name)
        return Convert(recipe_of(self.recipe), self.checkpoints, output, self.inputs, self.target)


AnyJobSent = VerifySent | ConvertSent | CompareSent | SelfCheckSent | SchemeSent | ImportSent
JOB: TypeAdapter[AnyJobSent] = TypeAdapter(Annotated[AnyJobSent, Field(discriminator="type")])


class ProgressRead(Answer):
    """How far a job is; the totals are null until it is planned."""

    objects: int | None
    objects_done: int
    bytes: int | None
    bytes_done: int


class JobError(Answer):
    """Why a job gave no answer."""

    code: str
    detail: str


class LastError(Answer):
    """Why the last of a job's attempts came to nothing; it is tried again."""

    code: str
    detail: str
    at: str | None = None


class JobRead(Answer):
    """A job."""

    id: Id
    type: Literal["verify", "convert", "compare", "selfcheck", "scheme", "import"]
    state: JobState
    cancel_requested: bool
    lane: Lane
    priority: int
    deadline_at: datetime | None = Field(
        description="When it ends as `deadline_exceeded`, unless it is over."
    )
    attempts: int = Field(description="Attempts that failed in a way that may pass; it goes on after them.")
    last_error: LastError | None = Field(description="Of the last of these attempts.")
    created_by: str | None = Field(description="Whose token or identity started it.")
    campaign: Id | None = Field(description="The campaign that it belongs to.")
    waits_for: str | None = Field(description="What it waits for, in words, while it is queued.")
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    request: dict[str, Json] = Field(description="What was asked for: digests and ids in place of documents.")
    progress: ProgressRead
    artifact: Digest | None = Field(description="The artifact that is verified, or that was made.")
    run: Id | None = Field(description="The run of a verification.")
    conversion: Id | None
    comparison: Id | None
    selfcheck: Id | None = Field(description="The self-check, once there is one.")
    scheme_check: Id | None
    import_: Id | None = Field(alias="import")
    error: JobError | None = Field(description="Why there is no answer, when the state is `error`.")
    links: dict[str, str]

    @classmethod
    def of(cls, view: JobView) -> Self:
        """A job with its progress."""
        job, progress = view.job, view.progress
        return cls.model_validate(
            {
                "id": job.id,
                "type": job.type,
                "state": job.state,
                "cancel_requested": job.cancel_requested,
                "lane": job.lane,
                "priority": job.priority,
                "deadline_at": job.deadline_at,
                "attempts": job.attempts,
                "last_error": job.last_error,
                "created_by": job.created_by,
                "campaign": job.campaign_id,
                "waits_for": view.waits_for,
                "created_at": job.created_at,
                "started_at": job.started_at,
                "finished_at": job.finished_at,
                "request": job.request,
                "progress": {
                    "objects": progress.objects,
                    "objects_done": progress.objects_done,
                    "bytes": progress.bytes,
                    "bytes_done": progress.bytes_done,
                },
                "artifact": view.artifact,
                "run": job.id if job.type == "verify" else None,
                "conversion": job.id if job.type == "convert" else None,
                "comparison": job.id if job.type == "compare" else None,
                "selfcheck": answered_selfcheck(job),
                "scheme_check": job.id if job.type == "scheme" else None,
                "import": job.id if job.type == "import" else None,
                "error": job.error,
                "links": links(job),
            }
        )
