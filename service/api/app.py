"""The application: routes, pages, problems, and the parts that all of them are given."""

from typing import Any

from fastapi import FastAPI
from starlette.responses import JSONResponse, Response

from service.api import openapi, problems
from service.api.edges import Edges
from service.api.parameters import CallerParam
from service.api.routes import (
    artifacts,
    blobs,
    checkpoints,
    comparisons,
    conversions,
    events,
    health,
    jobs,
    provenance,
    recipes,
    registry,
    runs,
    schemes,
    selfchecks,
    targets,
)
from service.blobs import BlobStore
from service.dashboard.failures import failure
from service.dashboard.routes import router as pages
from service.parts import Enqueues, Parts
from service.records.database import Database
from service.settings import Settings


def create_app(settings: Settings, database: Database, blob_store: BlobStore, queue: Enqueues) -> FastAPI:
    """The API and the pages over these powers; nothing is opened, started or read here."""
    app = _App(
        title="ninfer-gate",
        docs_url=None,  # FastAPI's pages load scripts from another host
        redoc_url=None,
        openapi_url=None,  # served below, to who has the token
        redirect_slashes=False,
    )
    app.state.parts = Parts(settings, database, blob_store, queue)
    for module in (
        blobs,
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
        registry,
        health,
    ):
        app.include_router(module.router)
    app.include_router(pages, include_in_schema=False)
    app.add_middleware(Edges)
    problems.install(app, failure)

    @app.get("/openapi.json", include_in_schema=False)
    def describe(_caller: CallerParam) -> Response:
        return JSONResponse(app.openapi())

    return app


class _App(FastAPI):
    """FastAPI with our OpenAPI document."""

    def openapi(self) -> dict[str, Any]:
        """The document, made once."""
        if self.openapi_schema is None:
            self.openapi_schema = openapi.document(self)
        return self.openapi_schema
