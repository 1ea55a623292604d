"""What comes before anybody is known: heads that are too large or never end, too many connections; memory stays bounded."""

import asyncio
import contextlib
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
import uvicorn

from service import protocol
from tests.service.serving import Service, serving


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A service that takes few connections."""
    few = {"NINFER_GATE_MAX_CONNECTIONS": "20"}
    with serving(tmp_path_factory.mktemp("protocol") / "data", "--no-worker", environment=few) as running:
        yield running


def connected(service: Service) -> socket.socket:
    """A connection of its own."""
    at = urlsplit(service.address)
    return socket.create_connection((at.hostname or "", at.port or 0), timeout=20)


def memory(service: Service) -> int:
    """Resident bytes of the API."""
    pages = Path(f"/proc/{service.process.pid}/statm").read_text().split()[1]
    return int(pages) * 4096


def flood(connection: socket.socket, piece: bytes, times: int) -> bytes:
    """Send until all is sent or the other side has had enough; what it said."""
    with contextlib.suppress(ConnectionError):
        for _ in range(times):
            connection.sendall(piece)
    with contextlib.suppress(ConnectionError):
        return connection.recv(100)
    return b""


@pytest.mark.parametrize(
    ("begin", "piece"),
    [
        (b"GET /healthz HTTP/1.1\r\nHost: x\r\n", b"A: " + b"a" * 1000 + b"\r\n"),
        (b"GET /healthz HTTP/1.1\r\nHost: x\r\n", b"a:\r\n" * 1000),
        (b"GET /healthz HTTP/1.1\r\nHost: x\r\nA: ", b"a" * 100_000),
        (b"GET /", b"a" * 100_000),
    ],
    ids=["headers", "tiny headers", "one header", "address"],
)
def test_a_head_that_does_not_end_is_refused(service: Service, begin: bytes, piece: bytes) -> None:
    before = memory(service)
    with connected(service) as connection:
        connection.sendall(begin)
        said = flood(connection, piece, 3000)
    assert said.startswith((b"HTTP/1.1 431 ", b"HTTP/1.1 400 ")) or not said
    assert memory(service) < before + (20 << 20)
    assert httpx.get(f"{service.address}/healthz").status_code == 200


def test_a_large_body_behind_a_small_head_is_no_large_head(service: Service) -> None:
    with service.client() as client:
        answer = client.request("POST", "/v1/blobs", content=b"x" * 1_000_000)
    assert answer["bytes"] == 1_000_000


def test_requests_on_one_connection_are_counted_each(service: Service) -> None:
    with httpx.Client(base_url=service.address) as client:
        for _ in range(30):  # together more than one head may be
            assert client.get("/healthz", headers={"X-Long": "a" * 4000}).status_code == 200


def test_connections_beyond_the_limit_are_told_so(service: Service) -> None:
    with contextlib.ExitStack() as stack:
        for _ in range(25):
            stack.enter_context(connected(service))
        assert httpx.get(f"{service.address}/healthz").status_code == 503


def test_a_head_that_takes_too_long_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first one and a later one on the same connection; a connection that speaks in time is left alone."""
    monkeypatch.setattr(protocol, "HEAD_SECONDS", 0.4)

    async def answer(scope: Any, receive: Any, send: Any) -> None:
        await asyncio.sleep(0.8)  # longer than a head may take: by then it is there
        await send({"type": "http.response.start", "status": 204, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    config = uvicorn.Config(
        answer, port=0, http=protocol.BoundedHttp, log_config=None, lifespan="off", timeout_keep_alive=30
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    address = server.servers[0].sockets[0].getsockname()[:2]
    head = b"GET / HTTP/1.1\r\nHost: x\r\n"
    try:
        with socket.create_connection(address, timeout=10) as slow:
            slow.sendall(head)
            assert slow.recv(100) == b""
        with socket.create_connection(address, timeout=10) as kept:
            kept.sendall(head + b"\r\n")
            assert kept.recv(100).startswith(b"HTTP/1.1 204 ")
            kept.sendall(head)
            assert kept.recv(100) == b""
    finally:
        server.should_exit = True
        thread.join(10)


def test_a_form_of_nobody_is_kept_nowhere(service: Service) -> None:
    headers = {"Origin": service.address, "Content-Type": "multipart/form-data; boundary=x"}
    answer = httpx.post(f"{service.address}/login", content=b"a" * 100_000, headers=headers)
    assert answer.status_code == 413
