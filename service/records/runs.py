"""Queries over runs: verifications, what they found of each object, and their findings."""

from collections.abc import Collection, Iterable
from datetime import datetime
from typing import Any, Literal

from sqlalchemy import ColumnElement, Select, func, literal, select
from sqlalchemy.orm import Session

from service.records import answers
from service.records import findings as noted
from service.records.models import Finding, Object, Result, Run
from service.records.objects import ordinals
from service.records.pages import Page, cut, decode, encode, fetched, identifier, metric, ordinal
from service.records.rows import batches

Order = Literal["ordinal", "worst"]
Pair = tuple[Object, Result]

_RUNS = "runs"
_RESULTS = "results"
_WORST = "results.worst"


def add(session: Session, run: Run) -> Run:
    """The stored run: `run`, or the one that its job has already."""
    return answers.add(session, run)


def run(session: Session, project_id: str, run_id: str) -> Run | None:
    """The run with an id."""
    return answers.of_project(session, Run, project_id, run_id)


def by_job(session: Session, job_id: str) -> Run | None:
    """The run of a job."""
    return answers.by_job(session, Run, job_id)


def runs(
    session: Session,
    project_id: str,
    *,
    artifact_id: str | None = None,
    verdict: str | None = None,
    limit: int,
    cursor: str | None = None,
) -> Page[Run]:
    """Runs, newest first. Raises: BadCursor."""
    query = select(Run).where(Run.project_id == project_id)
    if artifact_id is not None:
        query = query.where(Run.artifact_id == artifact_id)
    if verdict is not None:
        query = query.where(Run.verdict == verdict)
    after = decode(cursor, _RUNS, identifier)
    if after is not None:
        query = query.where(Run.id < after[0])
    rows = session.scalars(query.order_by(Run.id.desc()).limit(fetched(limit))).all()
    return cut(rows, limit, lambda row: encode(_RUNS, row.id))


def save(
    session: Session,
    run_id: str,
    *,
    verdict: str,
    report_head: dict[str, Any],
    errors: int,
    advisories: int,
    target_digest: str | None = None,
    source_key: str | None = None,
    produced: Any = None,
) -> None:
    """Set verdict and report, unless they are set; `source_key` stands for sources in which nothing was found.

    Raises: JobOver.
    """
    answer = {
        "verdict": verdict,
        "report": report_head,
        "errors": errors,
        "advisories": advisories,
        "target_digest": target_digest,
        "source_key": source_key,
        "produced": produced,
    }
    answers.save(session, Run, run_id, answer)


def ended(session: Session, run_ids: Collection[str]) -> dict[str, datetime]:
    """When these runs ended, by id."""
    if not run_ids:
        return {}
    query = select(Run.id, Run.finished_at).where(Run.id.in_(run_ids), Run.finished_at.is_not(None))
    return {id_: moment for id_, moment in session.execute(query) if moment is not None}


def save_results(session: Session, run_id: str, rows: Iterable[Result]) -> None:
    """Store what was found of objects; what is there stands. Raises: JobOver."""
    answers.save_parts(session, Run, run_id, Result, rows)


def save_findings(session: Session, run_id: str, rows: Iterable[Finding]) -> None:
    """Store findings; what is there by number stands. Raises: JobOver."""
    answers.save_parts(session, Run, run_id, Finding, rows)


def results(
    session: Session,
    run_id: str,
    *,
    limit: int,
    cursor: str | None = None,
    outcome: str | None = None,
    format: str | None = None,  # noqa: A002  as the column
    kind: str | None = None,
    name: str | None = None,
    order: Order = "ordinal",
) -> Page[Pair]:
    """Objects and what was found of them, in the order of the directory or the worst NMSE first; those without one last.

    Raises: BadCursor, also for a cursor of the other order.
    """
    artifact_id = session.scalar(select(Run.artifact_id).where(Run.id == run_id)) or ""
    conditions: list[ColumnElement[bool]] = [Result.run_id == run_id]
    if outcome is not None:
        conditions.append(Result.outcome == outcome)
        if outcome != "passed":
            # Says nothing new, but in the words of the index `ix_results_not_passed`, which SQLite wants to see.
            conditions.append(Result.outcome != literal("passed", literal_execute=True))
    if format is not None or kind is not None:
        # Asked of each result in turn: a page ends when it is full, and nobody collects what all objects are.
        its_object = select(Object.ordinal).where(
            Object.artifact_id == artifact_id, Object.ordinal == Result.ordinal
        )
        if format is not None:
            its_object = its_object.where(Object.format == format)
        if kind is not None:
            its_object = its_object.where(Object.kind == kind)
        conditions.append(its_object.exists())
    if name is not None:
        conditions.append(Result.ordinal.in_(ordinals(artifact_id, name)))
    query = select(Result).where(*conditions)
    paged = (
        _worst(session, query, limit, cursor)
        if order == "worst"
        else _in_order(session, query, limit, cursor)
    )
    return Page(_with_objects(session, artifact_id, paged.items), paged.next)


def _in_order(session: Session, query: Select[Result], limit: int, cursor: str | None) -> Page[Result]:
    after = decode(cursor, _RESULTS, ordinal)
    if after is not None:
        query = query.where(Result.ordinal > after[0])
    rows = session.scalars(query.order_by(Result.ordinal).limit(fetched(limit))).all()
    return cut(rows, limit, lambda row: encode(_RESULTS, row.ordinal))


def _worst(session: Session, query: Select[Result], limit: int, cursor: str | None) -> Page[Result]:
    # Two queries, each along the index `ix_results_worst`: the databases do not agree on where a null belongs.
    after = decode(cursor, _WORST, metric, ordinal)
    wanted = fetched(limit)
    rows: list[Result] = []
    if after is None or after[0] is not None:
        known = query.where(Result.nmse.is_not(None))
        if after is not None:
            nmse, place = after
            known = known.where(Result.nmse <= nmse, (Result.nmse < nmse) | (Result.ordinal > place))
        rows += session.scalars(known.order_by(Result.nmse.desc(), Result.ordinal).limit(wanted))
        after = None
    if len(rows) < wanted:
        unknown = query.where(Result.nmse.is_(None))
        if after is not None:
            unknown = unknown.where(Result.ordinal > after[1])
        rows += session.scalars(unknown.order_by(Result.ordinal).limit(wanted - len(rows)))
    return cut(rows, limit, lambda row: encode(_WORST, row.nmse, row.ordinal))


def _with_objects(session: Session, artifact_id: str, rows: list[Result]) -> list[Pair]:
    pairs: list[Pair] = []
    for batch in batches(rows):
        places = [row.ordinal for row in batch]
        query = select(Object).where(Object.artifact_id == artifact_id, Object.ordinal.in_(places))
        found = {one.ordinal: one for one in session.scalars(query)}
        pairs += [(found[row.ordinal], row) for row in batch]
    return pairs


def findings(
    session: Session,
    run_id: str,
    *,
    limit: int,
    cursor: str | None = None,
    severity: str | None = None,
    code: str | None = None,
    check: str | None = None,
    object: str | None = None,  # noqa: A002  as the column
) -> Page[Finding]:
    """Findings in the order of the report. Raises: BadCursor."""
    wanted = {"severity": severity, "code": code, "check": check, "object": object}
    return noted.page(session, Finding, Finding.run_id, run_id, limit=limit, cursor=cursor, **wanted)


def counts(session: Session, run_id: str) -> dict[str, int]:
    """How many objects had which outcome; empty for a run without results.

    Grouping them all would read every result, metrics included. How many there are the report has counted, else an
    index does; those that did not pass are found by `ix_results_not_passed`, if the condition is spelled as in the index.
    """
    of_run = Result.run_id == run_id
    report = session.scalar(select(Run.report).where(Run.id == run_id)) or {}
    total = report.get("coverage", {}).get("objects", {}).get("total")
    if total is None:
        total = session.scalar(select(func.count()).select_from(Result).where(of_run)) or 0
    condition = Result.outcome != literal("passed", literal_execute=True)
    query = select(Result.outcome, func.count()).where(of_run, condition).group_by(Result.outcome)
    others: dict[str, int] = dict(session.execute(query).all())
    passed = total - sum(others.values())
    return others | ({"passed": passed} if passed else {})
