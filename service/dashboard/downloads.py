"""What a run found, to take elsewhere: its report as JSON, objects and findings as CSV, streamed page by page.

Each page of rows is its own short transaction: a slow client must not hold up the workers' writes.
"""

import csv
import io
import json
from collections.abc import Callable, Iterable, Iterator
from typing import Annotated, Any, Final, TypeVar

from fastapi import APIRouter, Depends
from sqlalchemy.orm import Session
from starlette.responses import Response, StreamingResponse

from service import conversion_records, reports
from service.dashboard.access import Visiting
from service.dashboard.failures import PageRoute, missing
from service.dashboard.render import HEADERS
from service.dashboard.runs import Filters, RunId, find
from service.parts import Parts
from service.records import conversions, runs
from service.records.models import Finding, Object, Result
from service.records.pages import Page

router = APIRouter(route_class=PageRoute)
_ROWS: Final = 500
_ENTRY: Final = ("shape", "offset", "bytes")
_ERROR: Final = ("sqnr_db", "max_abs_error", "rmse", "cosine")
_METRICS: Final = (
    *("groups", "zero_groups", "zero_scales", "scale_smallest", "scale_largest"),
    *("elements", "zeros", "nan", "infinite", "smallest", "largest"),
)
_FINDING: Final = ("code", "rule", "severity", "check", "about", "object", "where", "expected", "found", "count", "message")  # fmt: skip
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")
T = TypeVar("T")


@router.get("/runs/{run_id}/report.json")
def report(visiting: Visiting, run_id: RunId) -> Response:
    """The report, as the command line writes it."""
    pieces = reports.run_report(visiting.parts, visiting.project_id, run_id)
    return _attachment(f"report-{run_id}.json", "application/json", pieces)


@router.get("/jobs/{job_id}/report.json")
def conversion_report(visiting: Visiting, job_id: RunId) -> Response:
    """The report of a conversion, as the command line writes it."""
    conversion_id = _conversion(visiting, job_id)
    pieces = reports.conversion_report(visiting.parts, visiting.project_id, conversion_id)
    return _attachment(f"conversion-{job_id}.json", "application/json", pieces)


@router.get("/jobs/{job_id}/record.json")
def conversion_record(visiting: Visiting, job_id: RunId) -> Response:
    """The provenance record of a conversion, byte for byte as its digest is of it."""
    conversion_id = _conversion(visiting, job_id)
    _, pieces = conversion_records.record(visiting.parts, visiting.project_id, conversion_id)
    return _attachment(f"provenance-{job_id}.json", "application/json", pieces)


def _conversion(visiting: Visiting, job_id: str) -> str:
    with visiting.parts.database.read() as session:
        conversion = conversions.by_job(session, job_id)
    if conversion is None:
        raise missing("conversion")
    return conversion.id


@router.get("/runs/{run_id}/objects.csv")
def objects(visiting: Visiting, run_id: RunId, asked: Annotated[Filters, Depends()]) -> Response:
    """The objects that the address asks for, with their metrics."""
    with visiting.parts.database.read() as session:
        find(session, visiting, run_id)

    def rows(session: Session, cursor: str | None) -> Page[tuple[Object, Result]]:
        return runs.results(
            session,
            run_id,
            limit=_ROWS,
            cursor=cursor,
            outcome=asked.shown({}),
            format=asked.format,
            kind=asked.kind,
            name=asked.name,
            order=asked.order or "ordinal",
        )

    heads = (
        "ordinal",
        "name",
        "kind",
        "format",
        "layout",
        *_ENTRY,
        "outcome",
        "evidence",
        "sha256",
        "identity",
        "nmse",
    )
    lines = (_object_line(item, result) for item, result in _all(visiting.parts, rows))
    return _csv(f"objects-{run_id}.csv", (*heads, *_ERROR, *_METRICS), lines)


@router.get("/runs/{run_id}/findings.csv")
def findings(visiting: Visiting, run_id: RunId, asked: Annotated[Filters, Depends()]) -> Response:
    """The findings that the address asks for."""
    with visiting.parts.database.read() as session:
        find(session, visiting, run_id)

    def rows(session: Session, cursor: str | None) -> Page[Finding]:
        return runs.findings(
            session,
            run_id,
            limit=_ROWS,
            cursor=cursor,
            severity=asked.severity,
            code=asked.code,
            check=asked.check,
            object=asked.object,
        )

    lines = ([row.document.get(key) for key in _FINDING] for row in _all(visiting.parts, rows))
    return _csv(f"findings-{run_id}.csv", _FINDING, lines)


def _all(parts: Parts, rows: Callable[[Session, str | None], Page[T]]) -> Iterator[T]:
    cursor: str | None = None
    while True:
        with parts.database.read() as session:
            listed = rows(session, cursor)
        yield from listed.items
        cursor = listed.next
        if cursor is None:
            return


def _object_line(item: Object, result: Result) -> list[Any]:
    metrics = result.metrics or {}
    error = metrics.get("error") or {}
    return [
        *(item.ordinal, item.name, item.kind, item.format, item.layout),
        *(item.entry.get(key) for key in _ENTRY),
        *(result.outcome, result.evidence, result.sha256, result.identity, result.nmse),
        *(error.get(key) for key in _ERROR),
        *(metrics.get(key) for key in _METRICS),
    ]


def _csv(file: str, head: Iterable[str], lines: Iterable[Iterable[Any]]) -> Response:
    return _attachment(file, "text/csv", _written(head, lines))


def _written(head: Iterable[str], lines: Iterable[Iterable[Any]]) -> Iterator[bytes]:
    """RFC 4180, in pieces of many lines."""
    buffer = io.StringIO(newline="")
    writer = csv.writer(buffer)
    writer.writerow(head)
    for line in lines:
        writer.writerow([_cell(value) for value in line])
        if buffer.tell() > 1 << 16:
            yield _taken(buffer)
    yield _taken(buffer)


def _taken(buffer: io.StringIO) -> bytes:
    text = buffer.getvalue()
    buffer.seek(0)
    buffer.truncate()
    return text.encode("utf-8", "backslashreplace")


def _cell(value: Any) -> Any:
    # A text that a spreadsheet would run as a formula is marked as text; the report in JSON has it untouched.
    if isinstance(value, str):
        return f"'{value}" if value.startswith(_FORMULA) else value
    return json.dumps(value) if isinstance(value, list | dict) else value


def _attachment(file: str, media_type: str, content: Iterator[bytes] | Iterator[str]) -> Response:
    headers = dict(HEADERS) | {"Content-Disposition": f'attachment; filename="{file}"'}
    return StreamingResponse(content, media_type=media_type, headers=headers)
