"""Places for what takes memory while a client sends it, however slowly: so many at a time, and for no project all of them."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final
from weakref import WeakValueDictionary

_OTHERS: Final = 4  # one place of so many is for other projects than the one that has the rest


class Places:
    """The places of one process; who finds none waits."""

    def __init__(self, count: int) -> None:
        """`count` in all; where there is only one, it is for everybody."""
        self._all = asyncio.Semaphore(count)
        self._most = max(1, count - max(1, count // _OTHERS))
        # One that nobody holds or waits for is forgotten, and begins anew at its bound.
        self._own: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()

    @asynccontextmanager
    async def of(self, project_id: str) -> AsyncIterator[None]:
        """One for this project."""
        own = self._own.setdefault(project_id, asyncio.Semaphore(self._most))
        async with own, self._all:
            yield
