"""Threads, reused buffers, progress and stopping: what every pass over a file shares."""

import os
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from ninfer_core.io import Progress, no_progress

Result = TypeVar("Result")


class Stopped(Exception):
    """The pass was told to stop; nothing it found so far is an answer."""


class Buffers(threading.local):
    """Growing byte buffers by purpose, one set a thread, reused so that no pass pays for fresh pages."""

    def __init__(self) -> None:
        self._by_name: dict[str, NDArray[np.uint8]] = {}

    def get(self, name: str, size: int) -> NDArray[np.uint8]:
        """`size` bytes with undefined content, valid until this thread asks for `name` again."""
        buffer = self._by_name.get(name)
        if buffer is None or buffer.size < size:
            buffer = self._by_name[name] = np.empty(max(size, 1), np.uint8)
        return buffer[:size]


class Pool:
    """Runs tasks on `workers` threads; `advance` and `check` are what a task calls on its way."""

    def __init__(self, workers: int | None = None, progress: Progress = no_progress) -> None:
        self.workers = workers or os.cpu_count() or 1
        self.buffers = Buffers()
        self._progress = progress
        self._lock = threading.Lock()
        self._stop = threading.Event()

    def advance(self, count: int) -> None:
        """Report bytes done. Raises: Stopped."""
        self.check()
        with self._lock:
            self._progress(count)

    def check(self) -> None:
        """Raises: Stopped when the pass is to end."""
        if self._stop.is_set():
            raise Stopped

    def run(self, tasks: Iterable[Callable[[], Result]]) -> list[Result]:
        """Results in the order of the tasks. The first exception stops every other task and is raised."""
        with ThreadPoolExecutor(self.workers, thread_name_prefix="pass") as executor:
            try:
                # Submitting is inside too: an interrupt among thousands of tasks must stop those already begun.
                futures: list[Future[Result]] = [executor.submit(task) for task in tasks]
                return [future.result() for future in futures]
            except BaseException:
                self._stop.set()
                executor.shutdown(wait=True, cancel_futures=True)
                raise
