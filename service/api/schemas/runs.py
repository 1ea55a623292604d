"""Runs, what they found of each object, findings, and conversions."""

from datetime import datetime
from typing import Any, Literal, Self

from pydantic import Field

from service.api.schemas.base import Answer, Digest, Id
from service.api.schemas.content import ObjectRead
from service.api.schemas.selfchecks import DeviceRead
from service.jobs import JobState
from service.records.models import ConversionFinding, Finding
from service.reports import ConversionView, RunView

Verdict = Literal[
    "passed", "failed", "incomplete"
]  # of a run that has an answer; its job's state says why one has none
Outcome = Literal["passed", "failed", "not_checked", "not_asked"]


class RunRead(Answer):
    """One verification of one artifact; `verdict` is null until it is final."""

    id: Id
    job: Id
    state: JobState = Field(description="Of its job.")
    verdict: Verdict | None
    artifact: Digest
    checks: list[str]
    recipe: Digest | None
    checkpoints: dict[str, Id]
    target: str | None = Field(description="As asked: `auto`, or a digest.")
    target_digest: Digest | None = Field(description="Of the target that it was held against.")
    canonical: bool
    sample: dict[str, Any] | None = Field(description="`fraction` and `seed`, when only a part was compared.")
    full: bool = Field(description="Whether nothing was to be taken over from earlier runs.")
    max_age_seconds: int | None
    errors: int | None = Field(description="Error findings, those beyond the listed ones counted.")
    advisories: int | None
    created_at: datetime
    finished_at: datetime | None
    links: dict[str, str]

    @classmethod
    def of(cls, view: RunView, **more: Any) -> Self:
        """A run."""
        row, own = view.run, f"/v1/runs/{view.run.id}"
        return cls.model_validate(
            {
                "id": row.id,
                "job": row.job_id,
                "state": view.state,
                "verdict": view.verdict,
                "artifact": view.artifact,
                "checks": row.checks,
                "recipe": row.recipe_digest,
                "checkpoints": row.checkpoints or {},
                "target": row.target,
                "target_digest": row.target_digest,
                "canonical": row.canonical,
                "sample": row.sample,
                "full": row.full,
                "max_age_seconds": row.max_age_seconds,
                "errors": row.errors,
                "advisories": row.advisories,
                "created_at": row.created_at,
                "finished_at": view.finished_at,
                "links": {
                    "self": own,
                    "objects": f"{own}/objects",
                    "findings": f"{own}/findings",
                    "report": f"{own}/report",
                    "job": f"/v1/jobs/{row.job_id}",
                    "artifact": f"/v1/artifacts/{view.artifact}",
                },
                **more,
            }
        )


class ProducedRead(Answer):
    """Kernels that made a result, and the device that they ran on."""

    device: DeviceRead
    kernels: dict[str, Digest] = Field(description="The key of its evidence, by the name of the kernel.")


class RunWhole(RunRead):
    """A run with the heading of its report, once it is final."""

    outcomes: dict[str, int] = Field(description="Objects by outcome.")
    report: dict[str, Any] | None = Field(description="The report without `objects` and `findings`.")
    produced: list[ProducedRead] | None = Field(description="Null in runs of versions that did not tell.")

    @classmethod
    def whole(cls, view: RunView) -> Self:
        """A run by itself."""
        return cls.of(view, outcomes=dict(view.counts), report=view.run.report, produced=view.run.produced)


class ResultRead(ObjectRead):
    """What became of one object: its entry in the report."""

    sha256: str | None
    identity: Digest | None
    outcome: Outcome
    coverage: Literal["full", "sampled", "reused", "none"] | None = Field(
        description="Null in runs of versions that did not tell."
    )
    reused_from: dict[str, str] | None = Field(description="The run that measured it, and its date.")
    evidence: str | None
    metrics: dict[str, Any]


class FindingRead(Answer):
    """An answer: what was found, where, and what it means."""

    code: str
    rule: str | None
    severity: Literal["error", "advisory"]
    check: str
    about: Literal["artifact", "recipe", "source"]
    object: str | None
    where: dict[str, Any]
    expected: str
    found: str
    count: int
    message: str

    @classmethod
    def of(cls, row: Finding | ConversionFinding) -> Self:
        """A row."""
        return cls.model_validate(row.document)


class ConversionRead(Answer):
    """One conversion; `verdict` is null until it is final."""

    id: Id
    job: Id
    state: JobState = Field(description="Of its job.")
    verdict: Literal["written", "refused"] | None
    artifact: Digest | None
    recipe: Digest
    target: Digest | None = Field(description="Of the target that the recipe fills, if there is one.")
    checkpoints: dict[str, Id]
    inputs: dict[str, Digest]
    output: dict[str, Any]
    command: str | None = Field(description="What would do the same on the command line.")
    environment: dict[str, str] | None = Field(description="Versions of what it ran on.")
    host: dict[str, Any] | None = Field(description="Class of the machine: processor and cores.")
    record: Digest | None = Field(description="Of its provenance record, which `links.provenance` gives.")
    produced: list[ProducedRead] | None = Field(
        description="Null in conversions of versions that did not tell."
    )
    created_at: datetime
    finished_at: datetime | None
    report: dict[str, Any] | None = Field(description="The report without `objects` and `findings`.")
    links: dict[str, str]

    @classmethod
    def of(cls, view: ConversionView) -> Self:
        """A conversion."""
        row, own = view.conversion, f"/v1/conversions/{view.conversion.id}"
        links = {
            "self": own,
            "objects": f"{own}/objects",
            "findings": f"{own}/findings",
            "report": f"{own}/report",
            "job": f"/v1/jobs/{row.job_id}",
        }
        if view.artifact is not None:
            links["artifact"] = f"/v1/artifacts/{view.artifact}"
        if row.record is not None:
            links["provenance"] = f"{own}/provenance"
        return cls.model_validate(
            {
                "id": row.id,
                "job": row.job_id,
                "state": view.state,
                "verdict": row.verdict,
                "artifact": view.artifact,
                "recipe": row.recipe_digest,
                "record": row.record,
                "produced": row.produced,
                "target": row.target_digest,
                "checkpoints": row.checkpoints,
                "inputs": row.inputs,
                "output": row.output,
                "command": row.command,
                "environment": row.environment,
                "host": row.host,
                "created_at": row.created_at,
                "finished_at": row.finished_at,
                "report": row.document,
                "links": links,
            }
        )
