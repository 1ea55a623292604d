"""The OpenAPI document: what FastAPI reads off the routes, with bodies, problems and the errors that all routes share."""

from collections.abc import Callable, Iterator
from typing import Any, Final

from fastapi import FastAPI
from fastapi.dependencies.models import Dependant
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute, iter_route_contexts

from ninfer_core import __version__
from service.api.parameters import NEEDS, caller_of
from service.api.problems import describe
from service.api.schemas.base import Problem
from service.errors import Internal, RateLimited, ScopeMissing, Unauthorized, Unavailable
from service.scopes import ADMIN, READ, Scope

DESCRIPTION: Final = """\
Says of a file of quantized model weights whether it is right, proves it value by value, and remembers how it was made.

Push content (`/v1/blobs`), name it as an artifact or a checkpoint, and start a job. Requests under `/v1` need
`Authorization: Bearer TOKEN`, but for `POST /v1/oidc/token`, and for reading where the settings name a project for it.
Lists come in pages: give `next` as `cursor`. Every refusal is a problem document with a stable `code`. Members may be
added to answers; members that a request may not have are refused.
"""
_UNSAID: Final = "Successful Response"
_METHODS: Final = ("get", "put", "post", "delete", "patch", "head", "options")

Document = dict[str, Any]


def document(app: FastAPI) -> Document:
    """The whole document."""
    whole = get_openapi(title="ninfer-gate", version=__version__, description=DESCRIPTION, routes=app.routes)
    needs = scopes_needed(app)
    schemas = whole.setdefault("components", {}).setdefault("schemas", {})
    problem = Problem.model_json_schema(ref_template="#/components/schemas/{model}")
    schemas.update(problem.pop("$defs", {}))
    schemas["Problem"] = problem
    for path, method, operation in operations(whole):
        for content in operation.get("requestBody", {}).get("content", {}).values():
            schemas.update(content["schema"].pop("$defs", {}))
        for answer in operation["responses"].values():
            if answer["description"] == _UNSAID:
                answer["description"] = f"{operation['summary']}."
        if operation.get("security"):
            shared = (Unauthorized, RateLimited, Internal, Unavailable)
            needed = needs.get((method.upper(), path))
            # To who may only read, what administrators do is not there.
            also = (ScopeMissing,) if needed not in (None, READ, ADMIN) else ()
            responses = operation["responses"]
            for status, what in describe(*shared, *also).items():
                _add_answer(responses, str(status), what)
            operation["responses"] = dict(sorted(responses.items()))
    return whole


def _add_answer(responses: Document, status: str, what: Document) -> None:
    """Beside what a route says of this status itself."""
    own = responses.get(status)
    if own is None:
        responses[status] = what
        return
    own["description"] += f"; {what['description']}"
    for media_type, content in what["content"].items():
        own["content"][media_type]["examples"].update(content["examples"])


def scopes_needed(app: FastAPI) -> dict[tuple[str, str], Scope]:
    """By method and path: the scope that a caller needs, for every route that wants to know who calls."""
    found: dict[tuple[str, str], Scope] = {}
    for context in iter_route_contexts(app.routes):
        route, path = context.original_route, context.path
        if isinstance(route, APIRoute) and path is not None and _asks(route.dependant, caller_of):
            needed: list[Scope] = [scope for call, scope in NEEDS.items() if _asks(route.dependant, call)]
            found |= {(method, path): needed[0] if needed else READ for method in route.methods or ()}
    return found


def _asks(dependant: Dependant, call: Callable[..., Any]) -> bool:
    return dependant.call is call or any(_asks(inner, call) for inner in dependant.dependencies)


def operations(whole: Document) -> Iterator[tuple[str, str, Document]]:
    """Path, method and operation of every route."""
    for path, methods in whole["paths"].items():
        for method in _METHODS:
            if method in methods:
                yield path, method, methods[method]
