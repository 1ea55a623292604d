"""`ninfer-gate serve`: database, API, pages and one worker process, with no other server."""

import ctypes
import os
import signal
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from types import FrameType
from typing import Any

import structlog
import uvicorn

from ninfer_core import __version__
from ninfer_core.errors import CannotRead
from service import logs, tracing
from service.cli.failures import Task, guarded
from service.cli.settings import changed_settings
from service.protocol import BoundedHttp
from service.settings import Settings
from service.supervisor import Supervisor

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_GRACE_SECONDS = 5  # for requests under way
_M_ARENA_MAX = -8  # malloc.h

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Request:
    """The command line as it was given; None leaves a setting as it is."""

    changes: dict[str, Any]
    worker: bool


def serve(request: Request) -> int:
    """0 after a clean stop."""
    task = Task("serve", "serving", "What was stored stays; jobs go on when the service is started again.")
    return guarded(task, lambda: _serve(changed_settings(request.changes), request.worker))


def _share_arenas() -> None:
    """Let all threads of this process take memory from two arenas, where the C library is glibc.

    By default nearly every thread gets one of its own, and what many short-lived ones once held is never given back.
    """
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).mallopt(_M_ARENA_MAX, 2)


def _serve(settings: Settings, with_worker: bool) -> int:
    from service import queue
    from service.api.app import create_app
    from service.auth import first_token
    from service.blobs import open_store
    from service.records.database import Database, migrate

    _share_arenas()
    logs.configure(settings.log_json)
    tracing.start(settings, "api")
    os.makedirs(settings.data, mode=0o700, exist_ok=True)
    migrate(settings.records_url)
    queue.prepare(settings.engine_url)
    database = Database(settings.records_url)
    client = queue.Queue(settings.engine_url)
    supervisor = Supervisor(settings) if with_worker else None
    try:
        with _listening(settings) as listener:
            app = create_app(settings, database, open_store(settings), client)
            server = _Server(
                uvicorn.Config(
                    app,
                    http=BoundedHttp,
                    limit_concurrency=settings.max_connections,
                    loop="uvloop",
                    log_config=None,
                    access_log=False,
                    timeout_graceful_shutdown=_GRACE_SECONDS,
                    server_header=False,
                ),
                started=lambda: _announce(listener, settings, first_token(database)),
                stopping=app.state.parts.closing.set,
            )
            if supervisor is not None:
                supervisor.start()
            app.state.parts.storing.start(app.state.parts)  # takes up uploads that a dead process left whole
            server.run(sockets=[listener])
            app.state.parts.uses.settle()
    finally:
        if supervisor is not None:
            supervisor.stop()
        client.close()
        database.close()
        tracing.stop()
    log.info("service.stopped")
    return 0


@contextmanager
def _listening(settings: Settings) -> Iterator[socket.socket]:
    """The bound socket. Raises: CannotRead with the address when it cannot be had."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    try:
        listener = socket.create_server((settings.host, settings.port), family=family, backlog=1024)
    except OSError as error:
        raise CannotRead(
            f"cannot listen on {settings.host} port {settings.port}: {error.strerror}"
        ) from error
    with listener:
        yield listener


def _announce(listener: socket.socket, settings: Settings, token: str | None) -> None:
    host, port = listener.getsockname()[:2]
    shown = f"[{host}]" if ":" in host else host
    print(f"ninfer-gate {__version__} serves at http://{shown}:{port}")
    print(f"  data    {settings.data.absolute()}")
    if token is None:
        print("  token   printed at the first start; `ninfer-gate token create --data DIR` makes another")
    else:
        print(f"  token   {token}   (printed this once; every request and the pages need it)")
    sys.stdout.flush()


class _Server(uvicorn.Server):
    """Says when it listens, and ends by a signal without raising it again: that is how a service stops."""

    def __init__(
        self, config: uvicorn.Config, started: Callable[[], None], stopping: Callable[[], None]
    ) -> None:
        """`stopping` lets event streams end, which otherwise would have to be cut."""
        super().__init__(config)
        self._tell_started, self._tell_stopping = started, stopping

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """As uvicorn's; then the address is told."""
        await super().startup(sockets)
        if not self.should_exit:
            self._tell_started()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Every signal that asks to end lets the server end; a second SIGINT does not wait for requests."""
        before = {number: signal.signal(number, self.handle_exit) for number in _SIGNALS}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """See `capture_signals`."""
        log.info("service.stopping", signal=signal.Signals(sig).name)
        self._tell_stopping()
        super().handle_exit(sig, frame)
