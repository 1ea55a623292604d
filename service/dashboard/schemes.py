"""Pages of the catalogue: every scheme, one with drawn layouts, and checks of what is stored by them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import APIRouter, Path
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from service import scheme_checks as cases
from service.dashboard.access import Visiting
from service.dashboard.artifacts import Text
from service.dashboard.failures import PageRoute, Problem
from service.dashboard.format import UNKNOWN, clipped, duration, figure, number, plural
from service.dashboard.layouts import Drawn, drawn
from service.dashboard.progress import progress_line
from service.dashboard.render import HEADERS, page
from service.dashboard.states import STATES
from service.errors import InvalidRequest, SchemeCheckNotFound, SchemeNotFound
from service.records import jobs, scheme_checks
from service.scheme_checks import SchemeCheckView
from service.workforce import SOMEBODY, Workforce, workforce

router = APIRouter(route_class=PageRoute)
CHECKS, RECENT, FINDINGS = 50, 5, 200
_OF_VALUES = ("scheme.value_differs", "scheme.reference_mismatch")
CheckId = Annotated[str, Path(pattern="^[0-9a-f]{32}$")]


@dataclass(frozen=True, slots=True)
class ShownForm:
    """A form as its document says it, with its drawings."""

    facts: Mapping[str, Any]
    drawn: Drawn
    refused: str | None  # why it is shown for its example, where another shape was asked for

    @property
    def bytes(self) -> int:
        """Of a value of the shape that sizes are shown for."""
        bits: int = sum(self.facts["sizes"]["bits"].values())
        return -(-bits // 8)


@router.get("/schemes")
def listing(_: Visiting, request: Request, profile: Text = None, match: Text = None) -> Response:
    """The catalogue."""
    from ninfer_core.schemes.catalogue.facts import encodes, scheme_json, span
    from ninfer_core.schemes.catalogue.shown import matching, profiles

    found = matching(profile if profile in profiles() else None, match)
    rows = [
        {
            **scheme_json(scheme),
            "declared": span(scheme, "literal") or UNKNOWN,
            "in_files": span(scheme, "file") or UNKNOWN,
            "encoding": encodes(scheme),
        }
        for scheme in found
    ]
    return page(
        request, "schemes.html", rows=rows, profiles=profiles(), profile=profile or "", match=match or ""
    )


@router.get("/schemes/{name}")
def one(visiting: Visiting, request: Request, name: str, shape: Text = None) -> Response:
    """A scheme with its forms, or one form of that name, for the shape of an example or for `shape`."""
    from service import schemes

    try:
        whole = schemes.document(name, shape or None)
    except SchemeNotFound as error:
        raise Problem(404, error.detail) from None
    except InvalidRequest as error:
        said = error.faults[0].message if error.faults else ""
        raise Problem(422, f"{clipped(error.detail, 200)} {clipped(said, 300)}") from None
    forms = [
        ShownForm(form, drawn(form["layout"], form["word"]), whole["refused"].get(form["name"]))
        for form in whole["forms"]
    ]
    with visiting.parts.database.read() as session:
        recent = [
            view
            for form in forms
            for view in cases.viewed(
                session,
                scheme_checks.page(session, visiting.project_id, limit=RECENT, form=form.facts["name"]).items,
            )
        ]
    return page(
        request,
        "scheme.html",
        scheme=whole["scheme"],
        forms=forms,
        name=name,
        asked=shape or "",
        checks=recent,
        state_of=_state_of,
    )


@router.get("/scheme-checks")
def checks(visiting: Visiting, request: Request, form: Text = None, cursor: Text = None) -> Response:
    """The checks, newest first."""
    with visiting.parts.database.read() as session:
        listed = scheme_checks.page(
            session, visiting.project_id, limit=CHECKS, cursor=cursor, form=form or None
        )
        views = cases.viewed(session, listed.items)
    return page(
        request,
        "scheme_checks.html",
        views=views,
        listed=listed,
        form=form or "",
        state_of=_state_of,
        origin=str(request.base_url).rstrip("/"),
    )


@router.get("/scheme-checks/{check_id}")
def check(visiting: Visiting, request: Request, check_id: CheckId) -> Response:
    """One check, or the job that is to make it."""
    view = _view(visiting, check_id)
    job = view.job
    is_open = job.state not in jobs.FINAL
    with visiting.parts.database.read() as session:
        progress = jobs.progress(session, job.id)
        alive = workforce(session, visiting.parts) if job.state == "queued" else SOMEBODY
    document = view.check.document if view.answered else None
    found = (document or {}).get("findings", [])
    return page(
        request,
        "scheme_check.html",
        check=view.check,
        job=job,
        document=document,
        state=STATES[_state_of(view)],
        why=_why(view, alive),
        took=duration(job.started_at, job.finished_at),
        is_open=is_open,
        progress=progress_line(job, progress) if is_open else None,
        findings=[_noted(finding) for finding in found[:FINDINGS]],
        unlisted=len(found[FINDINGS:]),
        measures=[
            (title, _measures(document[member]))
            for title, member in (("Against the reference", "reference"), ("Against the source", "source"))
            if document is not None and document.get(member)
        ],
        live=f"/jobs/events?job={job.id}" if is_open else None,
    )


@router.get("/scheme-checks/{check_id}/document.json")
def document(visiting: Visiting, check_id: CheckId) -> Response:
    """The document, as the command line writes it."""
    view = _view(visiting, check_id)
    if not view.answered:
        raise Problem(409, "There is no document: the job has no answer.")
    disposition = f'attachment; filename="scheme-check-{check_id}.json"'
    headers = dict(HEADERS) | {"Content-Disposition": disposition}
    return JSONResponse(view.check.document, headers=headers)


def _view(visiting: Visiting, check_id: str) -> SchemeCheckView:
    try:
        return cases.one(visiting.parts, visiting.project_id, check_id)
    except SchemeCheckNotFound:
        raise Problem(404, "There is no such check of a scheme.") from None


def _state_of(view: SchemeCheckView) -> str:
    return str(view.check.verdict) if view.answered else view.job.state


def _noted(finding: Mapping[str, Any]) -> dict[str, Any]:
    """A finding as the lists show it; what it is about is the part."""
    where = {key: value for key, value in finding["where"].items() if key not in ("part", "file")}
    about = finding["where"].get("part") or finding["where"].get("file") or finding["object"]
    if about is None and finding["code"] in _OF_VALUES:
        about = "the decoded values"
    return {
        "document": {**finding, "where": where},
        "severity": finding["severity"],
        "code": finding["code"],
        "object": about,
    }


def _measures(measures: Mapping[str, Any]) -> list[tuple[str, str]]:
    """What a comparison of values gave, as labels and figures."""
    lines = [
        ("Values", number(measures["values"])),
        ("Differing words", f"{number(measures['differing'])} in {measures['dtype']}"),
    ]
    if measures["within"]:
        lines.append((f"Further apart than {figure(measures['within'], '.3g')}", number(measures["beyond"])))
    if measures["not_finite"]:
        lines.append(("Pairs with NaN or infinity", number(measures["not_finite"])))
    lines += [
        ("Largest error", figure(measures["max_abs_error"], ".6g")),
        ("RMSE", figure(measures["rmse"], ".6g")),
    ]
    if measures["sqnr_db"] is not None:
        lines.append(("SQNR", f"{figure(measures['sqnr_db'], '.2f')} dB"))
    if measures["ratio"] is not None:
        lines.append(("Ratio of all", figure(measures["ratio"], ".7g")))
    if measures["reordered"]:
        lines.append(("Order", "the same values, in another order"))
    return lines


def _why(view: SchemeCheckView, alive: Workforce) -> str:
    check, job = view.check, view.job
    if view.answered:
        if check.verdict == "failed":
            return f"{plural(check.errors or 0, 'kind')} of error in what was given."
        if check.verdict == "incomplete":
            return "Nothing wrong was found, but something that was asked for could not be looked at."
        if check.subject == "struct":
            if check.document["payload_bytes"] is None:
                return "The type is sound. No payload was given."
            return "The type is sound, and its payload has exactly the bytes that it takes."
        reference = check.document["reference"]
        if reference is not None and reference["within"]:
            within = figure(reference["within"], ".3g")
            return (
                f"Every stored word is legal, and every value lies within {within} of that of the reference."
            )
        if reference is not None:
            return "Every stored word is legal, and every value is the one of the reference."
        return "Every stored word is legal. Whether it is the right one only a reference tells."
    match job.state:
        case "queued":
            return alive.waits
        case "cancelled":
            return "It was stopped before it was done."
        case "error":
            detail = clipped((job.error or {}).get("detail") or "no reason was recorded")
            return f"It could not be done: {detail}" + ("" if detail.endswith(".") else ".")
    return "A worker looks at it now. This page follows along."
