"""HTTP as uvicorn speaks it, with bounds on what comes before anybody knows who is calling: size and time of a head."""

import asyncio
from typing import Any, Final

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

HEAD_BYTES: Final = 64 << 10
HEAD_SECONDS: Final = 30.0
_TOO_LARGE: Final = (
    b"HTTP/1.1 431 Request Header Fields Too Large\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"
)


class BoundedHttp(HttpToolsProtocol):
    """One connection. Address and headers of a request come within `HEAD_BYTES` and `HEAD_SECONDS`, or it is closed."""

    def __init__(self, *arguments: Any, **more: Any) -> None:
        super().__init__(*arguments, **more)
        self._in_head = True
        self._head_bytes = 0
        self._head_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """The first head is awaited from here on."""
        super().connection_made(transport)
        self._await_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """Nothing is awaited any more."""
        self._forget_timer()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Counts what belongs to a head that has not ended; what follows one in the same piece is not held against it."""
        self._head_bytes += len(data)
        super().data_received(data)
        if self._in_head and self._head_bytes > HEAD_BYTES and not self.transport.is_closing():
            self.transport.write(_TOO_LARGE)
            self.transport.close()

    def on_message_begin(self) -> None:
        """Another request on the same connection."""
        super().on_message_begin()
        if not self._in_head:
            self._await_head()

    def on_headers_complete(self) -> None:
        """The head is there."""
        self._in_head = False
        self._forget_timer()
        super().on_headers_complete()

    def _await_head(self) -> None:
        self._in_head, self._head_bytes = True, 0
        self._head_timer = self.loop.call_later(HEAD_SECONDS, self.transport.close)

    def _forget_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None
