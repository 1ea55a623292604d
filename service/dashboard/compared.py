"""Comparisons as pages list them: with their jobs and both artifacts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy.orm import Session

from service.comparisons import ANSWERED
from service.records import comparisons, views
from service.records.models import Artifact, Comparison, Job


@dataclass(frozen=True, slots=True)
class Compared:
    """A comparison with its job and both artifacts."""

    comparison: Comparison
    job: Job
    a: Artifact
    b: Artifact

    @property
    def address(self) -> str:
        """Where its page is."""
        return f"/comparisons/{self.comparison.id}"

    @property
    def document(self) -> Mapping[str, Any] | None:
        """The document but its lists; None unless the job ended with an answer."""
        found: Mapping[str, Any] | None = self.comparison.document
        return found if self.job.state in ANSWERED else None

    @property
    def state(self) -> str:
        """What came of it; where the job is, before there is an answer."""
        return str(self.comparison.verdict) if self.document is not None else self.job.state


def of_artifact(session: Session, artifact: Artifact, limit: int) -> list[Compared]:
    """The latest comparisons of an artifact, newest first."""
    return with_artifacts(session, artifact.project_id, comparisons.of_artifact(session, artifact.id, limit))


def with_artifacts(session: Session, project_id: str, rows: Sequence[Comparison]) -> list[Compared]:
    """Comparisons with what they are about."""
    ids = {id_ for row in rows for id_ in (row.a_artifact_id, row.b_artifact_id)}
    held = views.artifacts(session, project_id, ids)
    asked = views.jobs(session, project_id, [row.job_id for row in rows])
    return [
        Compared(row, asked[row.job_id], held[row.a_artifact_id], held[row.b_artifact_id])
        for row in rows
        if row.job_id in asked
    ]
