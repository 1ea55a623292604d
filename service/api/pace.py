"""Bodies as they arrive: who sends nothing for long, or still sends when the service stops, is refused in words."""

import asyncio
from collections.abc import AsyncIterator
from typing import Final

from service.errors import TooSlow, Unavailable
from service.parts import Parts

_LAST_SECONDS: Final = 3.0  # for bodies under way when the service stops; `serve` waits a little longer


async def paced(chunks: AsyncIterator[bytes], parts: Parts) -> AsyncIterator[bytes]:
    """The chunks. Raises: TooSlow, Unavailable."""
    idle = parts.settings.idle_seconds
    last: float | None = None
    while True:
        try:
            async with asyncio.timeout(idle):
                chunk = await anext(chunks)
        except StopAsyncIteration:
            return
        except TimeoutError:
            raise TooSlow(f"Nothing of the body came for {idle:g} seconds.") from None
        if parts.closing.is_set():
            now = asyncio.get_running_loop().time()
            last = now + _LAST_SECONDS if last is None else last
            if now > last:
                raise Unavailable("The service is stopping; nothing of the body was kept.")
        yield chunk
