"""Everything a browser may ask for, as one router; it needs `app.state.parts` and nothing else of the application."""

from fastapi import APIRouter
from starlette.responses import Response

from service.dashboard import (
    access,
    artifacts,
    campaigns,
    comparisons,
    downloads,
    jobs,
    live,
    project,
    provenance,
    queue,
    reference,
    runs,
    schemes,
    selfchecks,
    targets,
    uploads,
)
from service.dashboard.failures import PageRoute, missing
from service.dashboard.render import asset

router = APIRouter(include_in_schema=False, route_class=PageRoute)


@router.get("/static/{name}")
def static(name: str) -> Response:
    """Style, script and icon: open to everyone, since the login looks like the rest."""
    found = asset(name)
    if found is None:
        raise missing("file")
    return found


# `/jobs/events` stands before `/jobs/{id}`, so `live` comes first.
for part in (
    access,
    live,
    downloads,
    artifacts,
    runs,
    comparisons,
    jobs,
    selfchecks,
    schemes,
    targets,
    provenance,
    reference,
    queue,
    uploads,
    campaigns,
    project,
):
    router.include_router(part.router)
