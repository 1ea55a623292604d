"""Pages of targets: the list, and one with its closed list of objects, its views and what is complete for it."""

from typing import Annotated, Final

from fastapi import APIRouter, Query
from starlette.requests import Request
from starlette.responses import Response

from ninfer_core.targets import View
from service import targets
from service.dashboard.access import Visiting
from service.dashboard.artifacts import Digest, Text
from service.dashboard.failures import PageRoute, missing
from service.dashboard.render import page
from service.records import provenance

router = APIRouter(route_class=PageRoute)
TARGETS: Final = 50
OBJECTS: Final = 100
COMPLETE: Final = 10
VIEWS: Final = 20  # of one object


@router.get("/targets")
def listing(visiting: Visiting, request: Request, cursor: Text = None) -> Response:
    """The registered ones, then those that were stored."""
    listed = targets.page(visiting.parts, visiting.project_id, limit=TARGETS, cursor=cursor)
    return page(request, "targets.html", listed=listed)


@router.get("/targets/{digest}")
def target(
    visiting: Visiting,
    request: Request,
    digest: Digest,
    name: Text = None,
    begin: Annotated[int, Query(ge=0, le=10_000_000)] = 0,
) -> Response:
    """One target; `name` finds the objects whose names begin with it, `begin` is where in the list to go on."""
    with visiting.parts.database.read() as session:
        listed = targets.listed(session, visiting.project_id, digest)
        contract = targets.contract(session, visiting.project_id, digest)
        if listed is None or contract is None:
            raise missing("target")
        complete = provenance.derived(
            session, visiting.project_id, {"target": digest}, basis="verified", limit=COMPLETE
        )
    matching = [item for item in contract.objects if item.name.startswith(name or "")]
    shown = matching[begin : begin + OBJECTS]
    views: dict[str, list[View]] = {item.name: [] for item in shown}
    for view in contract.views:
        if view.parent in views:
            views[view.parent].append(view)
    return page(
        request,
        "target.html",
        listed=listed,
        contract=contract,
        complete=complete,
        objects=shown,
        matching=len(matching),
        views=views,
        most_views=VIEWS,
        name=name,
        older=begin + OBJECTS if begin + OBJECTS < len(matching) else None,
    )
