"""An S3-compatible server on loopback that can be told to fail, and settings of a service that keeps its content there.

It runs on threads of this process; credentials are those of nobody, in the variables that S3 tools read.
"""

import logging
import secrets
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import httpx
import obstore
import pytest
from obstore.store import S3Store as ObjectStore
from werkzeug.serving import BaseWSGIServer, make_server

Environment = dict[str, Any]
_CREDENTIALS = {"AWS_ACCESS_KEY_ID": "tests", "AWS_SECRET_ACCESS_KEY": "of nobody"}


@dataclass
class Fault:
    """What becomes of the next requests that fit: an error, an answer that is too slow or that breaks off."""

    times: int = 10**9
    method: str | None = None
    key: str = ""  # part of the path
    status: int | None = None
    seconds: float = 0.0
    cut: bool = False
    flip: bool = False  # the first byte of the body is another
    seen: int = 0

    def fits(self, environment: Environment) -> bool:
        """Whether it strikes, which counts."""
        fits = (
            self.seen < self.times
            and self.method in (None, environment["REQUEST_METHOD"])
            and self.key in environment["PATH_INFO"]
        )
        self.seen += fits
        return fits


@dataclass
class S3Server:
    """The server; `requests` are those it was sent, as method and path."""

    endpoint: str = ""
    faults: list[Fault] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)
    _server: BaseWSGIServer | None = None

    def start(self) -> None:
        """On a free port."""
        from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app  # a second

        logging.getLogger("werkzeug").setLevel(logging.CRITICAL)
        application = DomainDispatcherApplication(create_backend_app)
        self._server = make_server(
            "127.0.0.1", 0, lambda *given: self._answer(application, *given), threaded=True
        )
        self.endpoint = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, name="s3", daemon=True).start()

    def stop(self) -> None:
        """Close it."""
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()

    def bucket(self) -> str:
        """The name of a new bucket."""
        name = f"bucket-{secrets.token_hex(8)}"
        httpx.put(f"{self.endpoint}/{name}").raise_for_status()
        return name

    def put(self, bucket: str, key: str, content: bytes) -> None:
        """Put an object past everybody."""
        obstore.put(self._open(bucket), key, content)

    def get(self, bucket: str, key: str) -> bytes:
        """Its content."""
        return bytes(obstore.get(self._open(bucket), key).bytes())

    def keys(self, bucket: str) -> list[str]:
        """The keys of a bucket."""
        return sorted(item["path"] for item in obstore.list(self._open(bucket)).collect())

    def _open(self, bucket: str) -> ObjectStore:
        return ObjectStore(
            bucket,
            config={"endpoint": self.endpoint, "region": "us-east-1", "virtual_hosted_style_request": False},
            client_options={"allow_http": True},
        )

    def unfinished(self, bucket: str) -> int:
        """Objects that were begun in parts and neither finished nor given up."""
        text = httpx.get(f"{self.endpoint}/{bucket}", params={"uploads": ""}).raise_for_status().text
        return text.count("<Upload>")

    def fail(self, **how: Any) -> Fault:
        """From now on; see `Fault`."""
        self.faults.append(Fault(**how))
        return self.faults[-1]

    def mend(self) -> None:
        """No more faults."""
        self.faults.clear()

    def _answer(
        self, application: Callable[..., Iterable[bytes]], environment: Environment, start: Callable[..., Any]
    ) -> Iterable[bytes]:
        self.requests.append(f"{environment['REQUEST_METHOD']} {environment['PATH_INFO']}")
        fault = next((fault for fault in self.faults if fault.fits(environment)), None)
        if fault is None:
            return application(environment, start)
        time.sleep(fault.seconds)
        if fault.status is not None:
            start(f"{fault.status} Injected", [("Content-Length", "0"), ("Connection", "close")])
            return [b""]
        body = b"".join(application(environment, start))
        if fault.flip and body:
            body = bytes([body[0] ^ 1]) + body[1:]
        return [body[: len(body) // 2] if fault.cut else body]


@pytest.fixture(scope="session")
def s3_server() -> Iterator[S3Server]:
    """The server of this process."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in _CREDENTIALS.items():
            patch.setenv(name, value)
        server = S3Server()
        server.start()
        yield server
        server.stop()


@pytest.fixture
def s3(s3_server: S3Server) -> Iterator[S3Server]:
    """The server without faults, now and for who comes next."""
    s3_server.mend()
    s3_server.requests.clear()
    yield s3_server
    s3_server.mend()


@pytest.fixture
def s3_settings(s3: S3Server) -> dict[str, Any]:
    """Settings of a service whose content lies in a bucket of its own."""
    return {"store": f"s3://{s3.bucket()}/gate", "s3_endpoint": s3.endpoint}
