"""Comparisons of two artifacts: asked for, looked at, and their document put together again out of its rows."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from itertools import chain
from typing import Any, ClassVar, Final, Literal

from sqlalchemy.orm import Session

from ninfer_core.compare import NOT_COMPARED
from ninfer_core.compare.comparison import Status, json_pieces, ranks
from service.errors import ComparisonNotFound, Fault, InvalidRequest
from service.job_requests import unknown
from service.parts import Parts
from service.records import comparisons, content, jobs, views
from service.records.comparisons import Order
from service.records.models import Artifact, Comparison, ComparisonFinding, ComparisonObject
from service.records.pages import Page
from service.reports import document_batches, require_final

_BATCH: Final = 1_000  # rows of one short transaction
ANSWERED: Final = ("passed", "failed", "incomplete")  # states of a job whose comparison could be made


@dataclass(frozen=True, slots=True)
class Compare:
    """Compare two artifacts, by their digests."""

    type: ClassVar[Literal["compare"]] = "compare"
    a: str
    b: str


@dataclass(frozen=True, slots=True)
class ComparisonView:
    """A comparison, the digests of both artifacts, and the state of its job."""

    comparison: Comparison
    a: str
    b: str
    state: str
    finished_at: datetime | None

    @property
    def answered(self) -> bool:
        """Whether there is a document: an answer counts only as that of its job."""
        return self.comparison.verdict is not None and self.state in ANSWERED


def settled(session: Session, project_id: str, request: Compare) -> tuple[dict[str, Any], tuple[str, str]]:
    """The request as workflows read it, and the ids of both artifacts. Raises: ReferenceUnknown, InvalidRequest."""
    a, b = (_artifact(session, project_id, name, getattr(request, name)) for name in ("a", "b"))
    return {"type": request.type, "a": a.digest, "b": b.digest}, (a.id, b.id)


def _artifact(session: Session, project_id: str, member: str, digest: str) -> Artifact:
    artifact = content.find_artifact(session, project_id, digest)
    if artifact is None:
        raise unknown("artifact", digest, f"$.{member}")
    if artifact.kind != "ninfer":
        fault = Fault("body", f"$.{member}", f"the artifact is of kind {artifact.kind}; {NOT_COMPARED}")
        raise InvalidRequest(f"{NOT_COMPARED[0].upper()}{NOT_COMPARED[1:]}.", fault)
    return artifact


def comparison(parts: Parts, project_id: str, comparison_id: str) -> ComparisonView:
    """Raises: ComparisonNotFound."""
    with parts.database.read() as session:
        return find(session, project_id, comparison_id)


def find(session: Session, project_id: str, comparison_id: str) -> ComparisonView:
    """`comparison`, within a transaction. Raises: ComparisonNotFound."""
    row = comparisons.comparison(session, project_id, comparison_id)
    if row is None:
        raise ComparisonNotFound(f"This project never had a comparison {comparison_id}.")
    held = views.artifacts(session, project_id, {row.a_artifact_id, row.b_artifact_id})
    job = jobs.get(session, row.job_id)
    state, finished_at = ("error", None) if job is None else (job.state, job.finished_at)
    return ComparisonView(
        row, held[row.a_artifact_id].digest, held[row.b_artifact_id].digest, state, finished_at
    )


def objects(
    parts: Parts,
    project_id: str,
    comparison_id: str,
    *,
    limit: int,
    cursor: str | None,
    status: Status | None,
    order: Order,
) -> Page[ComparisonObject]:
    """Pairs of objects. Raises: ComparisonNotFound, BadCursor."""
    with parts.database.read() as session:
        find(session, project_id, comparison_id)
        return listed(session, comparison_id, limit=limit, cursor=cursor, status=status, order=order)


def listed(
    session: Session,
    comparison_id: str,
    *,
    limit: int,
    cursor: str | None,
    status: Status | None,
    order: Order,
) -> Page[ComparisonObject]:
    """`objects`, within a transaction. Raises: BadCursor."""
    ranked = () if status is None else ranks(status)
    return comparisons.objects(
        session, comparison_id, limit=limit, cursor=cursor, status=status, ranks=ranked, order=order
    )


def findings(
    parts: Parts,
    project_id: str,
    comparison_id: str,
    *,
    limit: int,
    cursor: str | None,
    **filters: str | None,
) -> Page[ComparisonFinding]:
    """In the order of the document. Raises: ComparisonNotFound, BadCursor."""
    with parts.database.read() as session:
        find(session, project_id, comparison_id)
        return comparisons.findings(session, comparison_id, limit=limit, cursor=cursor, **filters)


def report(parts: Parts, project_id: str, comparison_id: str) -> Iterator[str]:
    """The text of `ninfer-gate/comparison/1`. Raises, before the first piece: ComparisonNotFound, NotFinal, NoReport."""
    view = comparison(parts, project_id, comparison_id)
    head = require_final(view.comparison.document, view.state, ANSWERED, "comparison")

    def pairs(cursor: str | None) -> Page[ComparisonObject]:
        with parts.database.read() as session:
            return comparisons.objects(session, comparison_id, limit=_BATCH, cursor=cursor)

    def notes(cursor: str | None) -> Page[ComparisonFinding]:
        with parts.database.read() as session:
            return comparisons.findings(session, comparison_id, limit=_BATCH, cursor=cursor)

    entries = document_batches(pairs, lambda row: row.document)
    noted = document_batches(notes, lambda row: row.document)
    return json_pieces(head, chain.from_iterable(entries), chain.from_iterable(noted))
