"""The page of a comparison: whether it matters, objects by what became of them, and the worst first."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Final

from fastapi import APIRouter, Path
from sqlalchemy.orm import Session
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response, StreamingResponse

from ninfer_core.compare.comparison import STATUSES, Status
from ninfer_core.compare.facts import MOST
from service import comparisons as cases
from service import jobs as job_cases
from service.dashboard.access import Form, SameOrigin, Submitting, Visiting, Visitor
from service.dashboard.artifacts import Digest, Text
from service.dashboard.compared import Compared, with_artifacts
from service.dashboard.failures import PageRoute, Problem, missing
from service.dashboard.format import clipped, duration, share
from service.dashboard.progress import progress_line
from service.dashboard.render import HEADERS, page
from service.dashboard.states import STATES
from service.errors import InvalidRequest, ReferenceUnknown
from service.jobs import Sent
from service.records import comparisons, content, jobs
from service.records.comparisons import Order
from service.records.types import new_id
from service.text import UNKNOWN
from service.workforce import SOMEBODY, Workforce, workforce

router = APIRouter(route_class=PageRoute)
OBJECTS, FINDINGS, FACTS = 100, 50, 50
ComparisonId = Annotated[str, Path(pattern="^[0-9a-f]{32}$")]
_LEAST: Final = -12  # the power of ten at which a bar of the error is empty; it is full at one
_NARROWEST: Final = 0.8  # per cent of the bar: a part that exists can be seen


@dataclass(frozen=True, slots=True)
class Part:
    """Objects of one status: `x` and `width` are per cent of the bar, by bytes of B, of A where B has none."""

    status: str
    meaning: str
    objects: int
    a_bytes: int
    b_bytes: int
    share: str
    x: float
    width: float


@router.get("/comparisons/{comparison_id}")
def one(
    visiting: Visiting,
    request: Request,
    comparison_id: ComparisonId,
    status: Status | None = None,
    order: Order = "worst",
    objects: Text = None,
    findings: Text = None,
) -> Response:
    """One comparison; `objects` and `findings` say where in their lists to go on."""
    with visiting.parts.database.read() as session:
        seen = find(session, visiting, comparison_id)
        progress = jobs.progress(session, seen.job.id)
        alive = workforce(session, visiting.parts) if seen.job.state == "queued" else SOMEBODY
        listed = noted = None
        if seen.document is not None:
            listed = cases.listed(
                session, comparison_id, limit=OBJECTS, cursor=objects, status=status, order=order
            )
            noted = comparisons.findings(session, comparison_id, limit=FINDINGS, cursor=findings)
    is_open = seen.job.state not in jobs.FINAL
    facts, more = _facts(seen.document)
    return page(
        request,
        "comparison.html",
        seen=seen,
        state=STATES[seen.state],
        why=_why(seen, alive),
        took=duration(seen.job.started_at, seen.job.finished_at),
        progress=progress_line(seen.job, progress),
        is_open=is_open,
        parts=_parts(seen.document),
        facts=facts,
        more_facts=more,
        most_facts=MOST,
        chosen=status,
        order=order,
        objects=listed,
        findings=noted,
        length=_length,
        changed=_changed,
        live=f"/jobs/events?job={seen.job.id}" if is_open else None,
    )


@router.get("/comparisons/{comparison_id}/report.json")
def report(visiting: Visiting, comparison_id: ComparisonId) -> Response:
    """The document, as the command line writes it."""
    pieces = cases.report(visiting.parts, visiting.project_id, comparison_id)
    disposition = f'attachment; filename="comparison-{comparison_id}.json"'
    headers = dict(HEADERS) | {"Content-Disposition": disposition}
    return StreamingResponse(pieces, headers=headers, media_type="application/json")


@router.post("/artifacts/{digest}/compare", dependencies=[SameOrigin])
def start(visiting: Submitting, digest: Digest, sent: Form) -> Response:
    """Compare an artifact with the one that the form names by its digest, or by what its name or digest holds."""
    other = _named(visiting, sent.get("with", "").strip())
    request = cases.Compare(digest, other)
    try:
        job = job_cases.create(visiting.parts, visiting.project_id, request, Sent.of(new_id(), None))
    except ReferenceUnknown:
        raise missing("artifact") from None
    except InvalidRequest as error:
        raise Problem(422, error.detail) from None
    return RedirectResponse(f"/comparisons/{job.id}", 303, HEADERS)


def _named(visiting: Visitor, text: str) -> str:
    if not text:
        raise Problem(422, "Say with which artifact: its digest, or a part of its name that no other has.")
    with visiting.parts.database.read() as session:
        if (found := content.find_artifact(session, visiting.project_id, text)) is not None:
            return found.digest
        matching = content.artifacts(session, visiting.project_id, limit=2, q=text, kind="ninfer").items
    if len(matching) == 1:
        return matching[0].digest
    how = "More than one artifact matches" if matching else "No .ninfer artifact matches"
    raise Problem(422, f"{how} {clipped(text, 120)}. Name it by its digest.")


def find(session: Session, visiting: Visitor, comparison_id: str) -> Compared:
    """A comparison of the visitor's project. Raises: Problem."""
    row = comparisons.comparison(session, visiting.project_id, comparison_id)
    if row is None:
        raise missing("comparison")
    found = with_artifacts(session, visiting.project_id, [row])
    if not found:
        raise missing("comparison")
    return found[0]


def _parts(document: Mapping[str, Any] | None) -> list[Part]:
    """The segments of the bar, the worst first; those without objects are left out."""
    if document is None:
        return []
    totals = document["totals"]
    sizes = {
        status: totals["b_bytes"][status] or totals["a_bytes"][status]
        for status in STATUSES
        if totals["objects"][status]
    }
    whole = sum(sizes.values())
    widths = {status: max(_NARROWEST, 100 * size / (whole or 1)) for status, size in sizes.items()}
    stretch = 100 / (sum(widths.values()) or 100)
    parts, x = [], 0.0
    for status, width in widths.items():
        count, a, b = (totals[name][status] for name in ("objects", "a_bytes", "b_bytes"))
        drawn = width * stretch
        part = share(sizes[status], whole)
        parts.append(Part(status, STATUSES[status], count, a, b, part, round(x, 3), round(drawn, 3)))
        x += drawn
    return parts


def _facts(document: Mapping[str, Any] | None) -> tuple[list[Mapping[str, Any]], int]:
    """The first facts of the directories that differ, and how many more there are.

    A document of an earlier release has none.
    """
    if document is None:
        return [], 0
    listed: list[Mapping[str, Any]] = document.get("facts", [])
    return listed[:FACTS], max(0, len(listed) - FACTS) + document.get("unlisted_facts", 0)


def _length(nmse: float | None) -> float | None:
    """How long the bar of an error is, per cent: the power of ten counts, for errors span many."""
    if nmse is None or nmse <= 0:
        return None
    return round(100 * min(1.0, max(0.02, 1 - math.log10(nmse) / _LEAST)), 1)


def _changed(metrics: Mapping[str, Any]) -> str:
    """The share of changed words, where there is one."""
    words = metrics.get("words")
    return UNKNOWN if words is None else share(metrics["changed_words"], words)


def _why(seen: Compared, alive: Workforce) -> str:
    match seen.job.state:
        case "passed" | "failed" | "incomplete":
            said = seen.comparison.summary or ""
            return f"{said[:1].upper()}{said[1:]}."
        case "error":
            detail = clipped((seen.job.error or {}).get("detail") or "no reason was recorded")
            return f"It could not be done: {detail}" + ("" if detail.endswith(".") else ".")
        case "cancelled":
            return "It was stopped before it was done; a part of it is no answer."
        case "queued":
            return alive.waits
    return "A worker compares them now. This page follows along."
