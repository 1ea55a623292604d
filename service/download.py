"""Stored content on its way out, whole or one range of it, streamed out of wherever it lies."""

import re
from collections.abc import Mapping
from itertools import chain
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import StreamingResponse

from ninfer_core.errors import CannotRead
from service.blobs import Blobs
from service.errors import ContentLost, Fault, RangeNotSatisfiable

MEDIA_TYPE = "application/octet-stream"
_ONE_RANGE = re.compile(r"bytes=(?:(\d{1,19})-(\d{0,19})|-(\d{1,19}))\Z")


def stored_content(
    request: Request,
    blobs: Blobs,
    sha256: str,
    size: int,
    headers: Mapping[str, str],
    name: str | None = None,
) -> StreamingResponse:
    """The bytes; `name` is what a browser saves them as.

    A `Range` that is not one range of bytes is left alone, as RFC 9110 allows. The first piece is read at once: what
    cannot be read is told with a status, and not by an answer that breaks off. Raises: RangeNotSatisfiable, ContentLost,
    StoreAway.
    """
    asked = _asked(request.headers.get("range"), size)
    start, stop = asked or (0, size)
    sent = {"Accept-Ranges": "bytes", **headers, "Content-Length": str(stop - start)}
    if asked is not None:
        sent["Content-Range"] = f"bytes {start}-{stop - 1}/{size}"
    if name is not None:
        sent["Content-Disposition"] = f"attachment; filename*=utf-8''{quote(name, safe='')}"
    pieces = blobs.pieces(sha256, start, stop)
    try:
        first = next(pieces, b"")
    except CannotRead as error:
        raise ContentLost(
            f"The store does not hold the {size:,} bytes of sha256:{sha256} any more."
        ) from error
    return StreamingResponse(chain((first,), pieces), 200 if asked is None else 206, sent, MEDIA_TYPE)


def _asked(given: str | None, size: int) -> tuple[int, int] | None:
    """Start and stop; None for all of it. Raises: RangeNotSatisfiable."""
    found = _ONE_RANGE.match(given) if given is not None else None
    if found is None or (found[2] and int(found[2]) < int(found[1])):
        return None  # the grammar allows the second, and it means nothing
    if int(found[3]) == 0 or size == 0 if found[1] is None else int(found[1]) >= size:
        fault = Fault("header", "Range", f"there are {size:,} bytes")
        raise RangeNotSatisfiable(
            f"There are {size:,} bytes.", fault, headers={"Content-Range": f"bytes */{size}"}
        )
    if found[1] is None:
        return max(0, size - int(found[3])), size
    return int(found[1]), min(size, int(found[2]) + 1 if found[2] else size)
