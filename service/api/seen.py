"""What is noted of every request: an id that its answer carries, one line in the log, how long it took, a span.

Addresses and headers are never noted as they came: anybody may write anything there, secrets by mistake above all.
"""

import re
import secrets
import time
from contextlib import suppress
from typing import Final

import structlog
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service import logs, metrics, tracing

HEADER: Final = "X-Request-Id"
_SANE: Final = re.compile(r"[A-Za-z0-9._-]{1,64}\Z")
_NAMED: Final = re.compile(
    r"(?:sha256:[0-9a-f]{64}|[0-9a-f]{32}|[0-9]{1,18})\Z"
)  # what an id or a digest looks like
_METHODS: Final = frozenset(("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"))
_OTHER: Final = "other"
_GONE: Final = 499  # the client left before the answer began
_STREAM: Final = "text/event-stream"
_QUIET: Final = frozenset(("/healthz", "/readyz", "/metrics"))  # asked every few seconds by machines
log = structlog.get_logger("service.requests")


class Seen:
    """ASGI middleware around everything else, what answers to faults of ours included."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See the ASGI specification."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        given = Headers(scope=scope).get(HEADER, "")
        id_ = given if _SANE.match(given) and logs.veiled(given) == given else secrets.token_hex(16)
        noted = _Noted(scope)

        async def tell(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message)[HEADER] = id_
                noted.began(message)
            await send(message)

        with logs.of_request(id_), tracing.span("request", request=id_) as span:
            try:
                await self._app(scope, receive, tell)
            finally:
                noted.ended()
                with suppress(Exception):  # a trace is never worth an answer
                    span.told(f"{noted.method} {noted.route}", {"http.response.status_code": noted.status})


class _Noted:
    """One request, from its first byte to the last of its answer."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope
        self._at = time.perf_counter()
        self._seconds: float | None = None
        self.status = _GONE
        self.method = scope["method"] if scope["method"] in _METHODS else _OTHER
        self.route = _OTHER

    def began(self, message: Message) -> None:
        """The answer begins. One without an end is timed by its beginning."""
        self.status = message["status"]
        if Headers(raw=message["headers"]).get("content-type", "").startswith(_STREAM):
            self._seconds = time.perf_counter() - self._at

    def ended(self) -> None:
        """The answer has been sent, or nobody is there any more."""
        seconds = time.perf_counter() - self._at if self._seconds is None else self._seconds
        self.route = _template(self._scope)
        metrics.REQUESTS.labels(self.method, self.route, str(self.status)).observe(seconds)
        if self.route in _QUIET and self.status < 400:
            return
        log.info(
            "request.done",
            method=self.method,
            route=self.route,
            status=self.status,
            seconds=round(seconds, 4),
            **_names(self._scope),
        )


def _template(scope: Scope) -> str:
    """The route with its parameters unnamed: there are as many of these as routes."""
    path = getattr(scope.get("route"), "path", None)
    return path if isinstance(path, str) else _OTHER


def _names(scope: Scope) -> dict[str, str]:
    """The ids and digests in the address; whatever else stands there is left out."""
    found = {name: str(value) for name, value in scope.get("path_params", {}).items()}
    return {name: value for name, value in found.items() if _NAMED.match(value)}
