"""Things that never change are kept by clients: entity tags, and answers that only say that nothing changed."""

from typing import Any

from starlette.requests import Request
from starlette.responses import Response

DESCRIBED: dict[int | str, dict[str, Any]] = {
    304: {"description": "What `If-None-Match` names is still the same."}
}
_FOREVER = "private, max-age=31536000, immutable"


def headers(tag: str, *, forever: bool = True) -> dict[str, str]:
    """The headers of an answer with this tag; `forever` only where no other version will make it anew."""
    return {"ETag": f'"{tag}"', "Cache-Control": _FOREVER if forever else "private, no-cache"}


def unchanged(request: Request, tag: str, *, forever: bool = True) -> Response | None:
    """304 when the client holds this tag already (`If-None-Match`, weak comparison)."""
    given = request.headers.get("if-none-match")
    if given is None:
        return None
    tags = [part.strip().removeprefix("W/") for part in given.split(",")]
    if given.strip() == "*" or f'"{tag}"' in tags:
        return Response(status_code=304, headers=headers(tag, forever=forever))
    return None
