"""Comparisons of two artifacts."""

from datetime import datetime
from typing import Any, Literal, Self

from pydantic import Field

from ninfer_core.compare.comparison import Status
from service.api.schemas.base import Answer, Digest, Id
from service.api.schemas.runs import FindingRead
from service.api.schemas.terms import JobSent
from service.comparisons import Compare, ComparisonView
from service.jobs import JobState
from service.records.models import ComparisonFinding, ComparisonObject


class CompareSent(JobSent):
    """Compare two `.ninfer` artifacts, object by object."""

    type: Literal["compare"]
    a: Digest
    b: Digest = Field(description="The artifact that is held against `a`.")

    def request(self) -> Compare:
        """As the use case takes it."""
        return Compare(self.a, self.b)


class ComparisonRead(Answer):
    """One comparison; `verdict` is null until it is final."""

    id: Id
    job: Id
    state: JobState = Field(description="Of its job.")
    verdict: Literal["identical", "different", "incomplete"] | None
    summary: str | None = Field(description="Whether it matters, in one sentence.")
    a: Digest
    b: Digest
    created_at: datetime
    finished_at: datetime | None
    report: dict[str, Any] | None = Field(description="The document without `objects` and `findings`.")
    links: dict[str, str]

    @classmethod
    def of(cls, view: ComparisonView) -> Self:
        """A comparison."""
        row, own = view.comparison, f"/v1/comparisons/{view.comparison.id}"
        return cls.model_validate(
            {
                "id": row.id,
                "job": row.job_id,
                "state": view.state,
                "verdict": row.verdict if view.answered else None,
                "summary": row.summary if view.answered else None,
                "a": view.a,
                "b": view.b,
                "created_at": row.created_at,
                "finished_at": view.finished_at,
                "report": row.document if view.answered else None,
                "links": {
                    "self": own,
                    "objects": f"{own}/objects",
                    "findings": f"{own}/findings",
                    "report": f"{own}/report",
                    "job": f"/v1/jobs/{row.job_id}",
                    "a": f"/v1/artifacts/{view.a}",
                    "b": f"/v1/artifacts/{view.b}",
                },
            }
        )


class ComparedSide(Answer):
    """An object as one of the two artifacts has it."""

    ordinal: int
    kind: str | None
    format: str | None
    layout: str | None
    encoding: str | None
    shape: list[int] | None
    offset: int | None
    bytes: int | None
    sha256: str | None
    identity: Digest | None


class ComparedObject(Answer):
    """What became of one pair of objects: its entry in the document."""

    ordinal: int
    name: str
    status: Status
    a: ComparedSide | None
    b: ComparedSide | None
    same_content_as: str | None = Field(
        description="Its name in the other artifact, which has it as another."
    )
    metrics: dict[str, Any] = Field(description="Empty for identical objects; what is undefined is null.")
    reason: str | None

    @classmethod
    def of(cls, row: ComparisonObject) -> Self:
        """A row."""
        return cls.model_validate(row.document)


class SidedFinding(FindingRead):
    """A finding about the structure of one of the two artifacts."""

    side: Literal["a", "b"]

    @classmethod
    def sided(cls, row: ComparisonFinding) -> Self:
        """A row."""
        return cls.model_validate(row.document)
