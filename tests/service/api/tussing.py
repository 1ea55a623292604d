"""tus as a client spells it, by hand: what the tests of uploads share."""

import base64
import hashlib
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx

from tests.service.api.world import World

VERSION = {"Tus-Resumable": "1.0.0"}
BYTES = {**VERSION, "Content-Type": "application/offset+octet-stream"}


def metadata(**values: str) -> dict[str, str]:
    """The header that says these."""
    pairs = (f"{key} {base64.b64encode(value.encode()).decode()}" for key, value in values.items())
    return {"Upload-Metadata": ",".join(pairs)} if values else {}


def create(api: World, size: int, **said: str) -> str:
    """The address of a new upload."""
    answer = api.call(
        "POST", "/v1/uploads", headers={**VERSION, "Upload-Length": str(size), **metadata(**said)}
    )
    assert answer.status_code == 201, answer.text
    return answer.headers["location"]


def patch(api: World, place: str, offset: int, body: Any, **headers: str) -> httpx.Response:
    """Some bytes for an upload."""
    return api.call("PATCH", place, content=body, headers={**BYTES, "Upload-Offset": str(offset), **headers})


def offset(api: World, place: str) -> int:
    """Where an upload goes on."""
    answer = api.call("HEAD", place, headers=VERSION)
    assert answer.status_code == 200, answer
    return int(answer.headers["upload-offset"])


def checksum(algorithm: str, content: bytes) -> dict[str, str]:
    """The header that says what these bytes are."""
    digest = hashlib.new(algorithm, content).digest()
    return {"Upload-Checksum": f"{algorithm} {base64.b64encode(digest).decode()}"}


def ended(api: World, place: str, seconds: float = 10.0) -> dict[str, Any]:
    """An upload once it is stored or failed."""
    return until(
        lambda: api.call("GET", place).json(), lambda seen: seen["state"] in ("stored", "failed"), seconds
    )


def until(ask: Callable[[], Any], right: Callable[[Any], bool], seconds: float = 10.0) -> Any:
    """The first answer that is right."""
    end = time.monotonic() + seconds
    while not right(found := ask()):
        assert time.monotonic() < end, found
        time.sleep(0.01)
    return found


def incoming(api: World) -> list[Path]:
    """What lies where content comes in."""
    return sorted((api.parts.blobs.scratch / "incoming").iterdir())


def begun(
    api: World, place: str, at: int, length: int, sent: bytes, method: str = "PATCH", **headers: str
) -> socket.socket:
    """A connection in the middle of a PATCH: so many bytes are announced, and only these sent."""
    where = urlsplit(api.address)
    sender = socket.create_connection((where.hostname, where.port), timeout=10)
    head = [f"{method} {place} HTTP/1.1", "Host: here", f"Authorization: Bearer {api.token}"]
    head += [f"{name}: {value}" for name, value in (BYTES | headers).items()]
    head += [f"Upload-Offset: {at}", f"Content-Length: {length}", "", ""]
    sender.sendall("\r\n".join(head).encode() + sent)
    return sender
