"""Stored content on its way out, whole or one range of it, streamed from the disk."""

import re
from collections.abc import Mapping
from pathlib import Path

from starlette.requests import Request
from starlette.responses import FileResponse

from service.errors import Fault, RangeNotSatisfiable

MEDIA_TYPE = "application/octet-stream"
_ONE_RANGE = re.compile(r"bytes=(?:(\d{1,19})-(\d{0,19})|-(\d{1,19}))\Z")


def content_file(
    request: Request, path: Path, size: int, headers: Mapping[str, str], name: str | None = None
) -> FileResponse:
    """The file's bytes; `name` is what a browser saves it as.

    A `Range` that is not one range of bytes is left alone, as RFC 9110 allows. Raises: RangeNotSatisfiable.
    """
    given = request.headers.get("range")
    found = _ONE_RANGE.match(given) if given is not None else None
    if found is not None and found[2] and int(found[2]) < int(found[1]):
        found = None  # the grammar allows it, and it means nothing
    if given is not None and found is None:
        request.scope["headers"] = [item for item in request.scope["headers"] if item[0] != b"range"]
    if found is not None and (int(found[3]) == 0 or size == 0 if found[1] is None else int(found[1]) >= size):
        fault = Fault("header", "Range", f"there are {size:,} bytes")
        raise RangeNotSatisfiable(
            f"There are {size:,} bytes.", fault, headers={"Content-Range": f"bytes */{size}"}
        )
    return FileResponse(path, headers=dict(headers), media_type=MEDIA_TYPE, filename=name)
