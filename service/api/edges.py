"""What is true of every answer: headers, and an end that reaches clients who are still sending."""

import asyncio
import time
from collections.abc import Callable
from typing import Final

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_LINGER_SECONDS: Final = 2.0
# Of every answer that says nothing else: what the API sends is data, which no browser may run, frame, guess at or keep.
_HEADERS: Final = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'; sandbox",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


class Edges:
    """ASGI middleware. A refusal before the end of a body is sent at once; then the rest is read and dropped for a moment.

    Closing at once would reset the connection, and the client would see that instead of the answer.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See the ASGI specification."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        names = {name for name, _ in scope["headers"]}
        unread = b"transfer-encoding" in names or any(
            name == b"content-length" and value != b"0" for name, value in scope["headers"]
        )

        async def hear() -> Message:
            nonlocal unread
            message = await receive()
            if message["type"] != "http.request" or not message.get("more_body", False):
                unread = False
            return message

        async def tell(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
                if unread:
                    headers["Connection"] = "close"
            elif unread and not message.get("more_body", False):
                await send({**message, "more_body": True})
                await _drain(hear, lambda: unread)
                message = {"type": "http.response.body", "body": b"", "more_body": False}
            await send(message)

        await self._app(scope, hear, tell)


async def _drain(receive: Receive, unread: Callable[[], bool]) -> None:
    end = time.monotonic() + _LINGER_SECONDS
    while unread() and (left := end - time.monotonic()) > 0:
        try:
            await asyncio.wait_for(receive(), left)
        except TimeoutError:
            return
