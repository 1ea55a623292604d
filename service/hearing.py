"""Who waits for news of jobs: one look at the database for all of them, however many streams there are."""

import asyncio
from collections.abc import Callable, Collection, Mapping
from typing import Final

from starlette.concurrency import run_in_threadpool

LOOK_SECONDS: Final = 0.5
# How far those of these jobs are that there are: the number of the last event of each, and whether it is over.
Look = Callable[[Collection[str]], Mapping[str, tuple[int, bool]]]


class Hearing:
    """Of one event loop. It looks while somebody waits, and rests when nobody does."""

    def __init__(self, look: Look) -> None:
        """`look` is called on a thread."""
        self._look = look
        # By job: who waits, and the last event that each has heard.
        self._waiting: dict[str, dict[asyncio.Future[None], int]] = {}
        self._task: asyncio.Task[None] | None = None

    async def news(self, job_id: str, after: int, seconds: float) -> bool:
        """Whether within this time there is something to read: an event after that one, an end, or nobody can tell."""
        woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(job_id, {})[woken] = after
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._listen())
        try:
            async with asyncio.timeout(seconds):
                await woken
        except TimeoutError:
            return False
        finally:
            waiting = self._waiting[job_id]
            del waiting[woken]
            if not waiting:
                del self._waiting[job_id]
        return True

    async def _listen(self) -> None:
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            jobs = tuple(self._waiting)
            if not jobs:
                return
            try:
                found = await run_in_threadpool(self._look, jobs)
            except Exception:  # noqa: BLE001  whoever is woken reads for itself, and meets the same
                found = {}
            for job_id in jobs:
                last, over = found.get(job_id, (0, True))
                for woken, after in self._waiting.get(job_id, {}).items():
                    if (last > after or over) and not woken.done():
                        woken.set_result(None)
