"""Runs and conversions, and their reports as the command line writes them, put together again out of their rows."""

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, TypeVar

from sqlalchemy.orm import Session

from service.errors import ConversionNotFound, NoReport, NotFinal, RunNotFound
from service.parts import Parts
from service.records import artifacts, conversions, jobs, runs, views
from service.records.models import (
    Artifact,
    Conversion,
    ConversionFinding,
    ConversionObject,
    Finding,
    Job,
    Object,
    Result,
    Run,
)
from service.records.pages import Page
from service.records.runs import Order

_BATCH: Final = 1_000  # rows of one short transaction
_RETRY_SECONDS: Final = 2

Document = dict[str, Any]
Row = TypeVar("Row")


@dataclass(frozen=True, slots=True)
class RunView:
    """A run, the digest of its artifact, the state and end of its job, and how many objects had which outcome."""

    run: Run
    artifact: str
    state: str
    finished_at: datetime | None
    counts: Mapping[str, int]

    @property
    def verdict(self) -> str | None:
        """Only that of its job counts."""
        return self.run.verdict if self.run.verdict == self.state else None


@dataclass(frozen=True, slots=True)
class ConversionView:
    """A conversion, the digest of what it made, and the state of its job."""

    conversion: Conversion
    artifact: str | None
    state: str


def run(parts: Parts, project_id: str, run_id: str, *, counted: bool = True) -> RunView:
    """The run, with its counts unless nobody asks for them. Raises: RunNotFound."""
    with parts.database.read() as session:
        row = _require_run(session, project_id, run_id)
        counts = runs.counts(session, run_id) if counted and row.verdict is not None else {}
        verified = views.artifacts(session, project_id, [row.artifact_id])
        asked = views.jobs(session, project_id, [row.job_id])
        return _view(row, verified, asked, counts)


def _view(
    row: Run, verified: Mapping[str, Artifact], asked: Mapping[str, Job], counts: Mapping[str, int]
) -> RunView:
    job = asked[row.job_id]
    return RunView(row, verified[row.artifact_id].digest, job.state, job.finished_at, counts)


def _require_run(session: Session, project_id: str, run_id: str) -> Run:
    row = runs.run(session, project_id, run_id)
    if row is None:
        raise RunNotFound(f"This project never had a run {run_id}.")
    return row


def runs_page(
    parts: Parts,
    project_id: str,
    *,
    limit: int,
    cursor: str | None,
    artifact_id: str | None = None,
    verdict: str | None = None,
) -> Page[RunView]:
    """Newest first, without counts. Raises: BadCursor."""
    with parts.database.read() as session:
        page = runs.runs(
            session, project_id, limit=limit, cursor=cursor, artifact_id=artifact_id, verdict=verdict
        )
        verified = views.artifacts(session, project_id, {row.artifact_id for row in page.items})
        asked = views.jobs(session, project_id, {row.job_id for row in page.items})
        return Page([_view(row, verified, asked, {}) for row in page.items], page.next)


def run_objects(
    parts: Parts,
    project_id: str,
    run_id: str,
    *,
    limit: int,
    cursor: str | None,
    order: Order,
    **filters: str | None,
) -> Page[Document]:
    """Entries of the report; `filters` are outcome, format, kind, name. Raises: RunNotFound, BadCursor."""
    with parts.database.read() as session:
        _require_run(session, project_id, run_id)
        page = runs.results(session, run_id, limit=limit, cursor=cursor, order=order, **filters)
        return Page(entries(session, page.items), page.next)


def run_findings(
    parts: Parts, project_id: str, run_id: str, *, limit: int, cursor: str | None, **filters: str | None
) -> Page[Finding]:
    """In the order of the report; `filters` are severity, code, check, object. Raises: RunNotFound, BadCursor."""
    with parts.database.read() as session:
        _require_run(session, project_id, run_id)
        return runs.findings(session, run_id, limit=limit, cursor=cursor, **filters)


def conversion(parts: Parts, project_id: str, conversion_id: str) -> ConversionView:
    """Raises: ConversionNotFound."""
    with parts.database.read() as session:
        row = conversions.conversion(session, project_id, conversion_id)
        if row is None:
            raise ConversionNotFound(f"This project never had a conversion {conversion_id}.")
        made = artifacts.artifact(session, row.artifact_id) if row.artifact_id is not None else None
        job = jobs.get(session, row.job_id)
        return ConversionView(row, made.digest if made else None, job.state if job else "error")


def conversion_objects(
    parts: Parts, project_id: str, conversion_id: str, *, limit: int, cursor: str | None
) -> Page[ConversionObject]:
    """In the order of the recipe. Raises: ConversionNotFound, BadCursor."""
    conversion(parts, project_id, conversion_id)
    with parts.database.read() as session:
        return conversions.objects(session, conversion_id, limit=limit, cursor=cursor)


def conversion_findings(
    parts: Parts,
    project_id: str,
    conversion_id: str,
    *,
    limit: int,
    cursor: str | None,
    **filters: str | None,
) -> Page[ConversionFinding]:
    """In the order of the report. Raises: ConversionNotFound, BadCursor."""
    conversion(parts, project_id, conversion_id)
    with parts.database.read() as session:
        return conversions.findings(session, conversion_id, limit=limit, cursor=cursor, **filters)


def run_report(parts: Parts, project_id: str, run_id: str) -> Iterator[str]:
    """The text of `ninfer-gate/report/1`, piece by piece. Raises, before the first piece: RunNotFound, NotFinal, NoReport."""
    found = run(parts, project_id, run_id, counted=False)
    head = require_final(found.run.report, found.state, {found.run.verdict}, "run")

    def objects(cursor: str | None) -> Page[Document]:
        with parts.database.read() as session:
            page = runs.results(session, run_id, limit=_BATCH, cursor=cursor)
            return Page(entries(session, page.items), page.next)

    def findings(cursor: str | None) -> Page[Finding]:
        with parts.database.read() as session:
            return runs.findings(session, run_id, limit=_BATCH, cursor=cursor)

    lists = (
        ("objects", "coverage", document_batches(objects, lambda document: document)),
        ("findings", "coverage", document_batches(findings, lambda row: row.document)),
    )
    return pieces(head, lists)


def conversion_report(parts: Parts, project_id: str, conversion_id: str) -> Iterator[str]:
    """The text of `ninfer-gate/conversion/1`. Raises, before the first piece: ConversionNotFound, NotFinal, NoReport."""
    found = conversion(parts, project_id, conversion_id)
    head = require_final(found.conversion.document, found.state, {"passed", "failed"}, "conversion")

    def objects(cursor: str | None) -> Page[ConversionObject]:
        with parts.database.read() as session:
            return conversions.objects(session, conversion_id, limit=_BATCH, cursor=cursor)

    def findings(cursor: str | None) -> Page[ConversionFinding]:
        with parts.database.read() as session:
            return conversions.findings(session, conversion_id, limit=_BATCH, cursor=cursor)

    lists = (
        ("objects", "recipe", document_batches(objects, lambda row: row.document)),
        ("findings", "accounting", document_batches(findings, lambda row: row.document)),
    )
    return pieces(head, lists)


def entries(session: Session, pairs: Iterable[tuple[Object, Result]]) -> list[Document]:
    """Objects as the report lists them."""
    listed = list(pairs)
    ended = runs.ended(session, {result.reused_run_id for _, result in listed if result.reused_run_id})
    return [_entry(item, result, ended) for item, result in listed]


def _entry(listed: Object, result: Result, ended: Mapping[str, datetime]) -> Document:
    earlier = result.reused_run_id
    reused = None if earlier is None else {"run": earlier, "date": ended[earlier].isoformat()}
    return {
        **object_json(listed),
        "sha256": result.sha256,
        "identity": result.identity,
        "outcome": result.outcome,
        "coverage": result.coverage,
        "reused_from": reused,
        "evidence": result.evidence,
        "metrics": result.metrics,
    }


def object_json(row: Object) -> Document:
    """One object as its artifact lists it."""
    whole = row.entry
    return {
        "ordinal": row.ordinal,
        "name": row.name,
        "kind": row.kind,
        "format": row.format,
        "layout": row.layout,
        "encoding": whole["encoding"],
        "shape": whole["shape"],
        "offset": whole["offset"],
        "bytes": whole["bytes"],
    }


def pieces(head: Document, lists: Sequence[tuple[str, str, Iterable[Sequence[Document]]]]) -> Iterator[str]:
    """A document's text with long lists put in; each is (member, the member it comes after, its items in batches)."""
    separator = "{"
    for member, value in head.items():
        yield f"{separator}{json.dumps(member)}: {json.dumps(value, allow_nan=False)}"
        separator = ", "
        for name, after, batches in lists:
            if after != member:
                continue
            yield f", {json.dumps(name)}: ["
            between = ""
            for batch in batches:
                if batch:
                    yield between + ", ".join(json.dumps(item, allow_nan=False) for item in batch)
                    between = ", "
            yield "]"
    yield "}"


def require_final(
    found: Row | None, state: str, answers: Collection[str | None], what: str, missing: str = "an answer"
) -> Row:
    """`found`, where the job ended in one of the states that go with it. Raises: NotFinal, NoReport."""
    # A verdict counts only as that of its job: one that was cancelled has none, whatever a late worker wrote.
    if found is not None and state in answers:
        return found
    if state in jobs.FINAL:
        raise NoReport(f"The job of this {what} ended as `{state}`, without {missing}.", state=state)
    headers = {"Retry-After": str(_RETRY_SECONDS)}
    raise NotFinal(f"The job of this {what} is {state}.", headers=headers, state=state)


def document_batches(
    page: Callable[[str | None], Page[Row]], document: Callable[[Row], Document]
) -> Iterator[list[Document]]:
    """The documents of every page, page by page."""
    cursor: str | None = None
    while True:
        found = page(cursor)
        yield [document(row) for row in found.items]
        cursor = found.next
        if cursor is None:
            return
