"""Pages that explain: findings by code, and the registry of formats, in the words of the command line."""

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from ninfer_core.encoders import PROFILES
from ninfer_core.findings import FINDINGS
from ninfer_core.format_facts import format_json, legal_shapes
from ninfer_core.formats import FORMATS
from ninfer_core.layouts import LAYOUTS
from ninfer_core.verify.checks import MEANINGS
from service.dashboard.access import Visiting
from service.dashboard.failures import PageRoute, Problem
from service.dashboard.format import clipped
from service.dashboard.render import page
from service.wording import COMMON_PLACES, facts, near_names

router = APIRouter(route_class=PageRoute)


@router.get("/findings")
def findings(_: Visiting, request: Request) -> Response:
    """Every code, by what it belongs to."""
    groups: dict[str, list[object]] = {}
    for definition in FINDINGS:
        groups.setdefault(definition.check, []).append(definition)
    return page(request, "findings.html", groups=groups, meanings=MEANINGS)


@router.get("/findings/{code}")
def finding(_: Visiting, request: Request, code: str) -> Response:
    """What a code means, what usually causes it, what to do."""
    if code not in FINDINGS:
        near = [entry for entry in near_names(code[:200]) if entry in FINDINGS]
        hint = f" Did you mean {' or '.join(near)}?" if near else ""
        raise Problem(404, f"There is no finding code {clipped(code, 80)}.{hint}")
    definition = FINDINGS[code]
    return page(request, "finding.html", definition=definition, facts=facts(definition), places=COMMON_PLACES)


@router.get("/formats")
def formats(_: Visiting, request: Request) -> Response:
    """The registry: formats, layouts, encoder profiles."""
    return page(
        request,
        "formats.html",
        formats=[format_json(fmt) for fmt in FORMATS],
        layouts=[
            (layout.name, legal_shapes(layout), [fmt.name for fmt in layout.formats]) for layout in LAYOUTS
        ],
        profiles=list(PROFILES),
    )
