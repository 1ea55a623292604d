"""The service as it is served, over a migrated database, with a queue that nothing here may use."""

import re
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import uvicorn
from fastapi import FastAPI

from service import auth
from service.api.app import create_app
from service.blobs import BlobStore
from service.parts import Parts
from service.records.database import Database
from service.settings import RECORDS_FILE, Settings
from tests.databases import migrated_sqlite


class NoQueue:
    """The pages enqueue nothing."""

    def enqueue(self, workflow: str, id: str, *args: str | int, **line: object) -> None:  # noqa: A002  the engine's own word
        """Never called."""
        raise RuntimeError(f"{workflow} {id} {args}")

    def require_ready(self) -> None:
        """See `service.parts.Enqueues`."""


class Browser(httpx.Client):
    """Somebody with a session, whose forms hold what the page put into them."""

    def post(self, url: Any, *, data: Mapping[str, str] | None = None, **more: Any) -> httpx.Response:
        """Send a form; `csrf` is that of a page unless it is given."""
        sent = dict(data or {})
        if "csrf" not in sent:
            sent["csrf"] = self.csrf()
        return super().post(url, data=sent, **more)

    def csrf(self) -> str:
        """What forms of this session hold."""
        found = re.search(r'name="csrf" value="([0-9a-f]{64})"', self.get("/formats").text)
        assert found, "no form on the page"
        return found[1]


@dataclass(frozen=True, slots=True)
class Served:
    """A running service and the token that opens it."""

    parts: Parts
    address: str
    token: str

    def client(self, **more: object) -> httpx.Client:
        """Somebody who is not logged in; redirects are not followed."""
        return httpx.Client(base_url=self.address, timeout=30, **more)  # type: ignore[arg-type]

    def visitor(self, *scopes: str) -> Browser:
        """Somebody who is; with all scopes, or with a token of these."""
        token = auth.new_token(self.parts.database, scopes=scopes) if scopes else self.token
        secret = auth.open_session(self.parts.database, token).secret
        return Browser(base_url=self.address, timeout=30, headers={"Cookie": f"{auth.COOKIE}={secret}"})

    def session(self) -> str:
        """The secret of a new session."""
        return auth.open_session(self.parts.database, self.token).secret


def application(folder: Path, url: str | None = None, **more: Any) -> FastAPI:
    """The application over a new SQLite database, or over a migrated one."""
    settings = Settings(data=folder, database_url=url, **more)
    if url is None:
        folder.mkdir(exist_ok=True)
        (folder / RECORDS_FILE).write_bytes(migrated_sqlite())
    return create_app(settings, Database(settings.records_url), BlobStore(folder), NoQueue())


@contextmanager
def served(folder: Path, url: str | None = None, **more: Any) -> Iterator[Served]:
    """The service on a free port."""
    app = application(folder, url, **more)
    parts: Parts = app.state.parts
    try:
        with listening(app) as address:
            yield Served(parts, address, auth.new_token(parts.database))
    finally:
        assert parts.uses.settle()
        parts.database.close()


@contextmanager
def listening(app: FastAPI, port: int = 0) -> Iterator[str]:
    """The application over a real socket; the address."""
    config = uvicorn.Config(
        app, host="127.0.0.1", port=port, log_config=None, lifespan="off", timeout_graceful_shutdown=1
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    try:
        while not server.started:
            if not thread.is_alive():
                raise RuntimeError("uvicorn did not start")
            time.sleep(0.01)
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        app.state.parts.closing.set()
        server.should_exit = True
        thread.join(10)
