"""Refusals as problem documents (RFC 9457), and as what the OpenAPI document says of them."""

import json
from collections.abc import Callable, Sequence
from typing import Any, Final

import structlog
from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from sqlalchemy import exc
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from ninfer_core.errors import CannotWrite
from ninfer_core.sources.json_text import json_path
from service import logs, metrics
from service.blobs import StoreAway
from service.errors import (
    Fault,
    Internal,
    InvalidRequest,
    MethodNotAllowed,
    RouteNotFound,
    ServiceError,
    StorageFailed,
    Unavailable,
)
from service.records.errors import BadCursor, DatabaseUnreachable
from service.text import plural

MEDIA_TYPE: Final = "application/problem+json"
_TYPE: Final = "urn:ninfer-gate:problem:"
_PAGE_TEXTS: Final = {404: "There is no page at this address.", 405: "This page takes no such request."}

Document = dict[str, Any]
log = structlog.get_logger()


def document(error: ServiceError) -> Document:
    """The members of a problem, those without content left out."""
    whole: Document = {
        "type": _TYPE + error.code,
        "title": error.title,
        "status": error.status,
        "code": error.code,
        "detail": error.detail,
    }
    if error.faults:
        whole["where"] = error.faults[0].where
    whole["help"] = error.help
    if error.faults:
        whole["faults"] = [{**fault.where, "message": fault.message} for fault in error.faults]
    if error.findings:
        whole["findings"] = list(error.findings)
    known = logs.request_id()
    return {**whole, **error.facts, **({"request_id": known} if known is not None else {})}


def response(error: ServiceError) -> Response:
    """The problem as an answer; ASCII escapes keep whatever a client sent harmless."""
    metrics.ERRORS.labels(error.code).inc()
    text = json.dumps(document(error), allow_nan=False)
    headers = {"Cache-Control": "no-store", **error.headers}
    return Response(text, error.status, headers, media_type=MEDIA_TYPE)


def describe(*errors: type[ServiceError]) -> dict[int | str, Document]:
    """The `responses` of a route that answers with these errors, besides those that every route may answer with."""
    by_status: dict[int, list[type[ServiceError]]] = {}
    for error in errors:
        by_status.setdefault(error.status, []).append(error)
    return {status: _described(group) for status, group in sorted(by_status.items())}


def _described(errors: Sequence[type[ServiceError]]) -> Document:
    examples = {}
    for error in errors:
        members = {
            "type": _TYPE + error.code,
            "title": error.title,
            "status": error.status,
            "code": error.code,
        }
        value = {**members, "detail": f"{error.title}.", "help": error.help}
        examples[error.code] = {"summary": error.title, "value": value}
    return {
        "description": "; ".join(f"`{error.code}`: {error.title}" for error in errors),
        "content": {
            MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}, "examples": examples},
        },
    }


def validation_faults(errors: Sequence[Any], place: str | None = None) -> list[Fault]:
    """Faults out of pydantic's errors; with `place` all of them are there, else their first step names it."""
    faults = []
    for error in errors:
        steps = tuple(error["loc"])
        where = place
        if where is None:
            where, steps = str(steps[0]) if steps else "query", steps[1:]
        path = json_path(steps) if where == "body" else ".".join(map(str, steps))
        faults.append(Fault(where, path, str(error["msg"])))
    return faults


def translated(error: Exception) -> ServiceError:
    """What a client is told of an exception that no use case raised."""
    match error:
        case ServiceError():
            return error
        case BadCursor():
            return InvalidRequest(str(error), Fault("query", "cursor", str(error)))
        case RequestValidationError():
            faults = validation_faults(error.errors())
            return InvalidRequest(
                f"{plural(len(faults), 'parameter')} {'does' if len(faults) == 1 else 'do'} not fit.", *faults
            )
        case StoreAway():
            return Unavailable("The content store did not answer.", headers={"Retry-After": "5"})
        case CannotWrite():
            return StorageFailed("The content store did not take the content.")
        case exc.OperationalError() | exc.InterfaceError() | exc.TimeoutError() | DatabaseUnreachable():
            return Unavailable("The database did not answer.", headers={"Retry-After": "2"})
    # The server ends the connection after a fault of ours; a client that is told so does not use it again.
    return Internal("Something unforeseen happened.", headers={"Connection": "close"})


def is_page(request: Request) -> bool:
    """Whether a person's browser asks, outside the API."""
    wants = request.headers.get("accept", "")
    return "text/html" in wants and not request.url.path.startswith(("/v1", "/openapi.json"))


Page = Callable[[Request, int, str], Response]  # status and text, as a person's browser shows them


def install(app: FastAPI, failure: Page) -> None:
    """Every exception becomes a problem, or a page for a person; those that are our fault are logged."""

    async def handle(request: Request, error: Exception) -> Response:
        known = translated(error)
        if known.status >= 500 and known is not error:
            trace = error if isinstance(known, Internal) else None
            # Not the address as it came: the line that every request gets has its route.
            log.error("request.failed", code=known.code, error=str(error), exc_info=trace)
        if not is_page(request):
            return response(known)
        metrics.ERRORS.labels(known.code).inc()
        return failure(request, known.status, known.detail)

    async def handle_http(request: Request, error: Exception) -> Response:
        status = error.status_code if isinstance(error, HTTPException) else 500
        headers = dict(error.headers or {}) if isinstance(error, HTTPException) else {}
        if is_page(request):
            return failure(request, status, _PAGE_TEXTS.get(status, "The request cannot be answered."))
        if status == MethodNotAllowed.status:
            return response(MethodNotAllowed(f"{request.method} is not for this address.", headers=headers))
        if status == RouteNotFound.status:
            return response(RouteNotFound("There is nothing at this address."))
        return response(
            InvalidRequest("The request cannot be read.") if status < 500 else Internal("It failed.")
        )

    async def handle_disconnect(_request: Request, _error: Exception) -> Response:
        return Response(status_code=400)  # nobody is there to read it, and it is no fault of ours

    app.add_exception_handler(HTTPException, handle_http)
    app.add_exception_handler(ClientDisconnect, handle_disconnect)
    for kind in (
        ServiceError,
        BadCursor,
        RequestValidationError,
        CannotWrite,
        StoreAway,
        exc.OperationalError,
        exc.InterfaceError,
        exc.TimeoutError,
        DatabaseUnreachable,
        Exception,
    ):
        app.add_exception_handler(kind, handle)
