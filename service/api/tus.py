"""The words of tus 1.0.0: what its headers say, what is told of this server, and requests whose method is in a header."""

import base64
import binascii
import hashlib
import re
from email.utils import format_datetime
from typing import Final

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ninfer_core.identity import DIGEST_PREFIX
from service.errors import (
    Fault,
    MediaTypeUnsupported,
    TusVersionUnsupported,
    UploadHeaderMalformed,
)
from service.parts import Parts
from service.records.models import Upload
from service.uploads.ledger import Announced
from service.uploads.part_store import store_of
from service.uploads.receiving import CHECKSUMS, Checksum

VERSION: Final = "1.0.0"
EXTENSIONS: Final = "creation,creation-with-upload,checksum,termination,expiration"
MEDIA_TYPE: Final = "application/offset+octet-stream"
PATH: Final = "/v1/uploads"

_OVERRIDE: Final = "x-http-method-override"
_OVERRIDING: Final = ("PATCH", "DELETE", "HEAD")
_NUMBER: Final = re.compile(r"[0-9]{1,18}", re.ASCII)
_KEY: Final = re.compile(r"[!-+\--~]{1,200}", re.ASCII)  # printable, no space and no comma
_SHA256: Final = re.compile(r"(?:sha256:)?([0-9a-f]{64})", re.ASCII)
_MOST_METADATA: Final = 4_096
_MOST_NAME: Final = 1_000
_NAMES: Final = ("filename", "name")  # stock clients call it so or so


class Tus:
    """ASGI middleware: every answer below `PATH` says its version, and a method in a header is the method."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See the ASGI specification."""
        path = scope.get("path", "")
        if scope["type"] != "http" or not (path == PATH or path.startswith(f"{PATH}/")):
            await self._app(scope, receive, send)
            return
        method = Headers(scope=scope).get(_OVERRIDE, "").upper()
        if scope["method"] == "POST" and method in _OVERRIDING:
            scope = {**scope, "method": method}

        async def tell(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message)["Tus-Resumable"] = VERSION
            await send(message)

        await self._app(scope, receive, tell)


def abilities(parts: Parts) -> dict[str, str]:
    """What OPTIONS tells; `Upload-Part-Bytes` is a word of ours, there where the store takes parts."""
    settings = parts.settings
    in_parts = store_of(parts.blobs) is not None
    return {
        "Tus-Version": VERSION,
        "Tus-Extension": EXTENSIONS,
        "Tus-Max-Size": str(settings.max_blob_bytes),
        "Tus-Checksum-Algorithm": ",".join(CHECKSUMS),
        **({"Upload-Part-Bytes": str(settings.upload_part_bytes)} if in_parts else {}),
    }


def require_version(request: Request) -> None:
    """Raises: TusVersionUnsupported, also where none is said."""
    said = request.headers.get("tus-resumable")
    if said != VERSION:
        fault = Fault("header", "Tus-Resumable", f"{VERSION} is spoken here")
        raise TusVersionUnsupported(
            "Another version of tus was asked for, or none.", fault, headers={"Tus-Version": VERSION}
        )


def is_tus(request: Request) -> bool:
    """Whether a request speaks tus at all."""
    return "tus-resumable" in request.headers


def carries_bytes(request: Request) -> bool:
    """Whether the body is some of the upload."""
    return request.headers.get("content-type", "").strip().lower() == MEDIA_TYPE


def require_bytes(request: Request) -> None:
    """Raises: MediaTypeUnsupported."""
    if not carries_bytes(request):
        fault = Fault("header", "Content-Type", f"is not {MEDIA_TYPE}")
        raise MediaTypeUnsupported(f"Bytes of an upload come as {MEDIA_TYPE}.", fault)


def announced(request: Request) -> Announced:
    """What is about to be sent. Raises: UploadHeaderMalformed."""
    if "upload-defer-length" in request.headers:
        raise _malformed("Upload-Defer-Length", "a length that is told later is not taken")
    size = _number(request, "Upload-Length")
    said = request.headers.get("upload-metadata")
    if not said:
        return Announced(size)
    known = _metadata(said)
    return Announced(size, _name(known), _sha256(known), said)


def offset(request: Request) -> int:
    """Where the bytes of this request go. Raises: UploadHeaderMalformed."""
    return _number(request, "Upload-Offset")


def checksum(request: Request) -> Checksum | None:
    """What the bytes of this request have to be. Raises: UploadHeaderMalformed."""
    said = request.headers.get("upload-checksum")
    if said is None:
        return None
    algorithm, _, encoded = said.strip().partition(" ")
    if algorithm not in CHECKSUMS:
        raise _malformed("Upload-Checksum", f"checked are {', '.join(CHECKSUMS)}")
    value = _decoded("Upload-Checksum", encoded.strip())
    size = hashlib.new(algorithm, usedforsecurity=False).digest_size
    if len(value) != size:
        raise _malformed("Upload-Checksum", f"a {algorithm} has {size} bytes, not {len(value)}")
    return Checksum(algorithm, value)


def expires(upload: Upload) -> dict[str, str]:
    """When an upload that is open is given up."""
    if upload.state != "receiving":
        return {}
    return {"Upload-Expires": format_datetime(upload.expires_at, usegmt=True)}


def _number(request: Request, header: str) -> int:
    said = request.headers.get(header)
    if said is None:
        raise _malformed(header, "is missing")
    if not _NUMBER.fullmatch(said):
        raise _malformed(header, "is no count of bytes")
    return int(said)


def _metadata(said: str) -> dict[str, bytes]:
    """Keys with their values. Raises: UploadHeaderMalformed."""
    if len(said) > _MOST_METADATA:
        raise _malformed("Upload-Metadata", f"has more than {_MOST_METADATA:,} characters")
    found: dict[str, bytes] = {}
    for pair in said.split(","):
        key, _, encoded = pair.strip(" ").partition(" ")
        if not _KEY.fullmatch(key):
            raise _malformed("Upload-Metadata", "a key is empty, too long, or not printable ASCII")
        if key in found:
            raise _malformed("Upload-Metadata", "a key is given twice")
        found[key] = _decoded("Upload-Metadata", encoded.strip(" "))
    return found


def _name(known: dict[str, bytes]) -> str | None:
    value = next((known[key] for key in _NAMES if known.get(key)), None)
    if value is None:
        return None
    try:
        name = value.decode()
    except UnicodeDecodeError:
        raise _malformed("Upload-Metadata", "the name is no UTF-8") from None
    if len(name) > _MOST_NAME:
        raise _malformed("Upload-Metadata", f"the name has more than {_MOST_NAME:,} characters")
    return name


def _sha256(known: dict[str, bytes]) -> str | None:
    if "sha256" not in known:
        return None
    found = _SHA256.fullmatch(known["sha256"].decode("ascii", "replace"))
    if found is None:
        raise _malformed(
            "Upload-Metadata", f"sha256 is 64 hex digits, with {DIGEST_PREFIX} before them or without"
        )
    return found[1]


def _decoded(header: str, encoded: str) -> bytes:
    try:
        return base64.b64decode(encoded, validate=True)
    except (binascii.Error, ValueError):
        raise _malformed(header, "a value is no base64") from None


def _malformed(header: str, why: str) -> UploadHeaderMalformed:
    return UploadHeaderMalformed(f"{header} cannot be read: {why}.", Fault("header", header, why))
