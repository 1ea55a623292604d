"""The application: routes, pages, problems, and the parts that all of them are given."""

from typing import Any

from fastapi import FastAPI
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp

from service.api import openapi, problems
from service.api.edges import Edges
from service.api.parameters import CallerParam
from service.api.routes import (
    artifacts,
    audit,
    blobs,
    campaigns,
    checkpoints,
    comparisons,
    conversions,
    events,
    health,
    imports,
    jobs,
    metrics,
    oidc,
    project,
    provenance,
    recipes,
    registry,
    runs,
    schemes,
    selfchecks,
    targets,
    tokens,
    trusts,
    upload_parts,
    uploads,
)
from service.api.seen import Seen
from service.api.tus import Tus
from service.blobs import Blobs
from service.dashboard.failures import failure
from service.dashboard.routes import router as pages
from service.parts import Enqueues, Parts
from service.records.database import Database
from service.settings import Settings


def create_app(settings: Settings, database: Database, store: Blobs, queue: Enqueues) -> FastAPI:
    """The API and the pages over these powers; nothing is opened, started or read here."""
    app = _App(
        title="ninfer-gate",
        docs_url=None,  # FastAPI's pages load scripts from another host
        redoc_url=None,
        openapi_url=None,  # served below, to who has the token
        redirect_slashes=False,
    )
    app.state.parts = Parts(settings, database, store, queue)
    for module in (
        blobs,
        uploads,
        upload_parts,
        imports,
        artifacts,
        checkpoints,
        recipes,
        targets,
        jobs,
        events,
        runs,
        conversions,
        comparisons,
        selfchecks,
        schemes,
        provenance,
        campaigns,
        registry,
        project,
        tokens,
        trusts,
        oidc,
        audit,
        health,
        metrics,
    ):
        app.include_router(module.router)
    app.include_router(pages, include_in_schema=False)
    app.add_middleware(Tus)
    app.add_middleware(Edges)
    problems.install(app, failure)

    @app.get("/openapi.json", include_in_schema=False)
    def describe(_caller: CallerParam) -> Response:
        return JSONResponse(app.openapi())

    return app


class _App(FastAPI):
    """FastAPI with our OpenAPI document, and a note of every request."""

    def build_middleware_stack(self) -> ASGIApp:
        """As FastAPI's, inside `Seen`: middleware that is added sees no answer to a fault of ours."""
        return Seen(super().build_middleware_stack())

    def openapi(self) -> dict[str, Any]:
        """The document, made once."""
        if self.openapi_schema is None:
            self.openapi_schema = openapi.document(self)
        return self.openapi_schema
