"""The OpenAPI document: what FastAPI reads off the routes, with bodies, problems and the errors that all routes share."""

from collections.abc import Iterator
from typing import Any, Final

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from ninfer_core import __version__
from service.api.problems import describe
from service.api.schemas.base import Problem
from service.errors import Internal, Unauthorized, Unavailable

DESCRIPTION: Final = """\
Says of a file of quantized model weights whether it is right, proves it value by value, and remembers how it was made.

Push content (`/v1/blobs`), name it as an artifact or a checkpoint, and start a job. Every request under `/v1` needs
`Authorization: Bearer TOKEN`. Lists come in pages: give `next` as `cursor`. Every refusal is a problem document with a
stable `code`. Members may be added to answers; members that a request may not have are refused.
"""
_UNSAID: Final = "Successful Response"
_METHODS: Final = ("get", "put", "post", "delete", "patch", "head", "options")

Document = dict[str, Any]


def document(app: FastAPI) -> Document:
    """The whole document."""
    whole = get_openapi(title="ninfer-gate", version=__version__, description=DESCRIPTION, routes=app.routes)
    schemas = whole.setdefault("components", {}).setdefault("schemas", {})
    problem = Problem.model_json_schema(ref_template="#/components/schemas/{model}")
    schemas.update(problem.pop("$defs", {}))
    schemas["Problem"] = problem
    for path, _, operation in operations(whole):
        for content in operation.get("requestBody", {}).get("content", {}).values():
            schemas.update(content["schema"].pop("$defs", {}))
        for answer in operation["responses"].values():
            if answer["description"] == _UNSAID:
                answer["description"] = f"{operation['summary']}."
        if path.startswith("/v1"):
            shared = (Unauthorized, Internal, Unavailable)
            responses = operation["responses"]
            responses.update({str(status): what for status, what in describe(*shared).items()})
            operation["responses"] = dict(sorted(responses.items()))
    return whole


def operations(whole: Document) -> Iterator[tuple[str, str, Document]]:
    """Path, method and operation of every route."""
    for path, methods in whole["paths"].items():
        for method in _METHODS:
            if method in methods:
                yield path, method, methods[method]
