"""Queries over comparisons: what was asked, what became of each pair of objects, and findings."""

from collections.abc import Iterable, Sequence
from typing import Any, Literal

from sqlalchemy import ColumnElement, select
from sqlalchemy.orm import Session

from service.records import answers
from service.records import findings as noted
from service.records.models import Comparison, ComparisonFinding, ComparisonObject
from service.records.pages import Page, cut, decode, encode, fetched, metric, ordinal

Order = Literal["ordinal", "worst"]

_OBJECTS = "comparison.objects"
_WORST = "comparison.worst"


def add(session: Session, comparison: Comparison) -> Comparison:
    """The stored comparison: `comparison`, or the one that its job has already."""
    return answers.add(session, comparison)


def comparison(session: Session, project_id: str, comparison_id: str) -> Comparison | None:
    """The comparison with an id."""
    return answers.of_project(session, Comparison, project_id, comparison_id)


def by_job(session: Session, job_id: str) -> Comparison | None:
    """The comparison of a job."""
    return answers.by_job(session, Comparison, job_id)


def of_artifact(session: Session, artifact_id: str, limit: int) -> Sequence[Comparison]:
    """The latest comparisons of an artifact with any other, newest first."""
    found: dict[str, Comparison] = {}
    for side in (Comparison.a_artifact_id, Comparison.b_artifact_id):  # one by one, each along its index
        query = select(Comparison).where(side == artifact_id).order_by(Comparison.id.desc()).limit(limit)
        found |= {row.id: row for row in session.scalars(query)}
    return sorted(found.values(), key=lambda row: row.id, reverse=True)[:limit]


def save(
    session: Session, comparison_id: str, *, verdict: str, document: dict[str, Any], summary: str
) -> None:
    """Set verdict and document, unless they are set. Raises: JobOver."""
    answer = {"verdict": verdict, "document": document, "summary": summary}
    answers.save(session, Comparison, comparison_id, answer)


def save_objects(session: Session, comparison_id: str, rows: Iterable[ComparisonObject]) -> None:
    """Store what became of pairs; what is there stands. Raises: JobOver."""
    answers.save_parts(session, Comparison, comparison_id, ComparisonObject, rows)


def save_findings(session: Session, comparison_id: str, rows: Iterable[ComparisonFinding]) -> None:
    """Store findings; what is there by number stands. Raises: JobOver."""
    answers.save_parts(session, Comparison, comparison_id, ComparisonFinding, rows)


def objects(
    session: Session,
    comparison_id: str,
    *,
    limit: int,
    cursor: str | None = None,
    status: str | None = None,
    ranks: Sequence[int] = (),
    order: Order = "ordinal",
) -> Page[ComparisonObject]:
    """Pairs of objects in their order or the worst first. Raises: BadCursor, also for a cursor of the other order.

    `ranks` are those that objects of this status may have: so the worst of them are found without those before.
    """
    conditions: list[ColumnElement[bool]] = [ComparisonObject.comparison_id == comparison_id]
    if status is not None:
        conditions.append(ComparisonObject.status == status)
    if order == "worst":
        return _worst(session, conditions, limit, cursor, ranks)
    after = decode(cursor, _OBJECTS, ordinal)
    if after is not None:
        conditions.append(ComparisonObject.ordinal > after[0])
    query = select(ComparisonObject).where(*conditions).order_by(ComparisonObject.ordinal)
    rows = session.scalars(query.limit(fetched(limit))).all()
    return cut(rows, limit, lambda row: encode(_OBJECTS, row.ordinal))


def _worst(
    session: Session,
    conditions: Sequence[ColumnElement[bool]],
    limit: int,
    cursor: str | None,
    ranks: Sequence[int],
) -> Page[ComparisonObject]:
    row = ComparisonObject
    wanted = [*conditions]
    if ranks:
        # Between the ends, not one by one: so the index is walked once, and in order.
        wanted.append(row.rank.between(min(ranks), max(ranks)))
    after = decode(cursor, _WORST, ordinal, _weight, ordinal)
    if after is not None:
        rank, weight, place = after
        below = (row.weight < weight) | ((row.weight == weight) & (row.ordinal > place))
        # The first condition says nothing new, but an index can begin there.
        wanted += [row.rank >= rank, (row.rank > rank) | below]
    query = select(row).where(*wanted).order_by(row.rank, row.weight.desc(), row.ordinal)
    rows = session.scalars(query.limit(fetched(limit))).all()
    return cut(rows, limit, lambda found: encode(_WORST, found.rank, found.weight, found.ordinal))


def _weight(value: Any) -> float:
    found = metric(value)
    if found is None:
        raise ValueError(value)
    return found


def findings(
    session: Session,
    comparison_id: str,
    *,
    limit: int,
    cursor: str | None = None,
    severity: str | None = None,
    code: str | None = None,
    check: str | None = None,
    object: str | None = None,  # noqa: A002  as the column
) -> Page[ComparisonFinding]:
    """Findings in the order of the document. Raises: BadCursor."""
    wanted = {"severity": severity, "code": code, "check": check, "object": object}
    whose = ComparisonFinding.comparison_id
    return noted.page(session, ComparisonFinding, whose, comparison_id, limit=limit, cursor=cursor, **wanted)
