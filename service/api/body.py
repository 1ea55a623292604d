"""JSON bodies: bounded in bytes and depth, every member given once, integers exact, unknown members refused."""

import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, Final, Generic, TypeVar

from fastapi import Depends
from pydantic import TypeAdapter, ValidationError
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request

from ninfer_core import strict_json
from ninfer_core.sources.json_text import json_path
from ninfer_core.strict_json import Huge, Json, Malformed, Members, Real
from service.api.pace import paced
from service.api.parameters import CallerParam, PartsParam
from service.api.problems import validation_faults
from service.api.upload import require_identity, require_length, too_large
from service.auth import Caller
from service.errors import (
    BodyTooLarge,
    Fault,
    InvalidRequest,
    JsonMalformed,
    JsonMemberDuplicate,
    JsonTooDeep,
    MediaTypeUnsupported,
    ServiceError,
    TooSlow,
)
from service.parts import Parts
from service.text import plural

BODY_ERRORS: Final[tuple[type[ServiceError], ...]] = (
    JsonMalformed,
    JsonTooDeep,
    JsonMemberDuplicate,
    BodyTooLarge,
    MediaTypeUnsupported,
    InvalidRequest,
    TooSlow,
)

Model = TypeVar("Model")

_MOST_VALUES: Final = (
    500_000  # a value takes a hundred times more memory than the two bytes that may spell it
)
_MOST_FAULTS: Final = 100
_SMALL_BYTES: Final = 256 << 10


@dataclass(frozen=True, slots=True)
class Body(Generic[Model]):
    """A body that fits its description, and what it was read from."""

    value: Model
    document: Json


@asynccontextmanager
async def place(request: Request, parts: Parts, caller: Caller) -> AsyncIterator[None]:
    """A place for a document that may be large; small ones, by what they say themselves, need none."""
    length = request.headers.get("content-length", "")
    if length.isascii() and length.isdigit() and int(length[:20]) <= _SMALL_BYTES:
        yield
        return
    async with parts.documents.of(caller.project_id):
        yield


async def text(request: Request, parts: Parts, most_bytes: int | None = None) -> bytes:
    """The bytes of a JSON body; of a small one where `most_bytes` says so. Raises: MediaTypeUnsupported, BodyTooLarge, TooSlow."""
    most = min(parts.settings.max_json_bytes, most_bytes or parts.settings.max_json_bytes)
    if not is_json(request):
        given = request.headers.get("content-type", "")
        fault = Fault("header", "Content-Type", f"{given!r} is not application/json")
        raise MediaTypeUnsupported("The body has to be JSON.", fault)
    require_identity(request)
    require_length(request, most)
    content = bytearray()
    async for chunk in paced(request.stream(), parts):
        content += chunk
        if len(content) > most:
            raise too_large(most)
    return bytes(content)


def is_json(request: Request) -> bool:
    """Whether the header says that the body is JSON."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    return kind == "application/json" or (kind.startswith("application/") and kind.endswith("+json"))


def parsed(content: bytes, max_depth: int) -> Json:
    """The document. Raises: BodyTooLarge, JsonMalformed, JsonTooDeep, JsonMemberDuplicate."""
    require_few_values(content)
    try:
        value, problems = strict_json.parse(content, max_depth)
    except Malformed as malformed:
        problem = malformed.problem
        kind = JsonTooDeep if problem.kind == "json_depth" else JsonMalformed
        raise kind(f"The body cannot be read: {problem.found}.", Fault("body", "$", problem.found)) from None
    if not problems:
        return value
    repeated = problems[0].kind == "json_member_duplicate"
    chosen = [problem for problem in problems if (problem.kind == "json_member_duplicate") == repeated]
    chosen = chosen[:_MOST_FAULTS]
    faults = [Fault("body", json_path(problem.path), problem.found) for problem in chosen]
    if repeated:
        raise JsonMemberDuplicate("Members are given twice.", *faults)
    raise JsonMalformed("The body holds text or numbers that JSON has no place for.", *faults)


def require_few_values(content: bytes) -> None:
    """Raises: BodyTooLarge for more values than anything here can mean; counted without building them."""
    if sum(content.count(mark) for mark in (b",", b"[", b"{")) > _MOST_VALUES:
        raise BodyTooLarge(f"The body holds more than {_MOST_VALUES:,} values.")


def fitting(adapter: TypeAdapter[Model], document: Json) -> Body[Model]:
    """Raises: InvalidRequest with every fault."""
    try:
        return Body(adapter.validate_python(document), document)
    except ValidationError as error:
        if error.error_count() > _MOST_FAULTS:
            fault = Fault("body", "$", f"{error.error_count():,} places do not fit")
            raise InvalidRequest("The body does not fit in more places than can be listed.", fault) from None
        tag = document.get("type") if isinstance(document, dict) else None
        listed = [
            # The first step inside a union is the tag that chose the member, which is no place in the body.
            {
                "loc": fault["loc"][1:] if fault["loc"][:1] == (tag,) else fault["loc"],
                "msg": _message(adapter, fault),
            }
            for fault in error.errors(include_url=False, include_input=False, include_context=False)
        ]
        faults = validation_faults(listed, "body")
        raise InvalidRequest(f"The body does not fit in {plural(len(faults), 'place')}.", *faults) from None


def _message(adapter: TypeAdapter[Any], fault: Mapping[str, Any]) -> str:
    """What pydantic says; of a member that is unknown, those that are known in its place."""
    allowed = _members(adapter, fault["loc"][:-1]) if fault["type"] == "extra_forbidden" else []
    return f"no such member; allowed are {', '.join(allowed)}" if allowed else str(fault["msg"])


def _members(adapter: TypeAdapter[Any], steps: Sequence[int | str]) -> list[str]:
    """The members of the object at a place, tags of unions included as steps; empty where no description leads there."""
    whole = _schema(adapter)
    found = _resolved(whole, whole)
    for step in steps:
        tagged = found.get("discriminator", {}).get("mapping", {}).get(step)
        inner = {"$ref": tagged} if tagged else found.get("properties", {}).get(step, found.get("items", {}))
        found = _resolved(whole, inner)
    return list(found.get("properties", ()))


@cache  # one for each route that takes a body
def _schema(adapter: TypeAdapter[Any]) -> dict[str, Any]:
    return adapter.json_schema()


def _resolved(whole: dict[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
    """What a schema means: references followed, `null` as the other choice left out."""
    choices = [one for one in schema.get("anyOf", ()) if one.get("type") != "null"]
    if len(choices) == 1:
        schema = choices[0]
    name = schema.get("$ref", "").removeprefix("#/$defs/")
    return whole["$defs"][name] if name else schema


async def read(
    request: Request, parts: Parts, adapter: TypeAdapter[Model], most_bytes: int | None = None
) -> Body[Model]:
    """The body of a request. Raises: what `text`, `parsed` and `fitting` raise."""
    content = await text(request, parts, most_bytes)
    depth = parts.settings.max_json_depth
    return await run_in_threadpool(lambda: fitting(adapter, parsed(content, depth)))


def strict(adapter: TypeAdapter[Model]) -> Callable[..., AsyncIterator[Body[Model]]]:
    """A dependency that reads the body, after the caller is known; a large one keeps its place until the answer."""

    async def dependency(
        request: Request, parts: PartsParam, caller: CallerParam
    ) -> AsyncIterator[Body[Model]]:
        async with place(request, parts, caller):
            yield await read(request, parts, adapter)

    return dependency


async def _text(request: Request, parts: PartsParam, caller: CallerParam) -> AsyncIterator[bytes]:
    async with place(request, parts, caller):
        content = await text(request, parts)
        require_few_values(content)
        yield content


TextBody = Annotated[bytes, Depends(_text)]


def spelled(value: Json) -> str:
    """A document as JSON again: numbers as they were written, members in the order of their names."""
    if isinstance(value, Members):
        pairs = (f"{json.dumps(name)}:{spelled(value[name])}" for name in sorted(value))
        return "{" + ",".join(pairs) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(spelled, value)) + "]"
    return value.text if isinstance(value, Real | Huge) else json.dumps(value)


def request_body(adapter: TypeAdapter[Any], **examples: Any) -> dict[str, Any]:
    """`openapi_extra` of a route with a JSON body; its definitions are moved to the components later."""
    schema = adapter.json_schema(ref_template="#/components/schemas/{model}")
    return {"requestBody": {"required": True, "content": {"application/json": _content(schema, examples)}}}


def document_body(what: str, example: Any) -> dict[str, Any]:
    """`openapi_extra` of a route whose body is a document that is kept as it is; `what` names it and its schema."""
    content = _content({"type": "object", "description": what}, {"document": example})
    return {"requestBody": {"required": True, "content": {"application/json": content}}}


def _content(schema: dict[str, Any], examples: dict[str, Any]) -> dict[str, Any]:
    named = {name: {"summary": name.replace("_", " "), "value": value} for name, value in examples.items()}
    return {"schema": schema, "examples": named}
