"""Threads, reused buffers, the device, progress and stopping: what every pass over a file shares."""

import os
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from typing import TYPE_CHECKING, ParamSpec, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from ninfer_core.io import Progress, no_progress

if TYPE_CHECKING:
    from ninfer_core.kernels.processor import Processor

Given = ParamSpec("Given")
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
    """Runs tasks on `workers` threads; `advance` and `check` are what a task calls on its way.

    Threads of the caller may run tasks as well. What `progress` raises leaves the task that called it, and stops no
    other unless `run` started them both.
    """

    def __init__(
        self,
        workers: int | None = None,
        progress: Progress = no_progress,
        processor: "Processor | None" = None,
    ) -> None:
        """`processor` is where kernels run; None for this machine's own, loaded when the first kernel is wanted."""
        self._processor = processor
        self.workers = workers or os.cpu_count() or 1
        self.buffers = Buffers()
        self._progress = progress
        self._lock = threading.Lock()
        self._stop = threading.Event()

    @property
    def processor(self) -> "Processor":
        """Where kernels run."""
        if self._processor is None:
            from ninfer_core.kernels.processor import cpu_processor

            self._processor = cpu_processor()
        return self._processor

    def advance(self, count: int) -> None:
        """Report bytes done. Raises: Stopped, and what the progress raises."""
        self._go_on()
        with self._lock:
            self._progress(count)

    def check(self) -> None:
        """Where nothing is counted, work can be stopped all the same. Raises: as `advance`."""
        self.advance(0)

    def _go_on(self) -> None:
        if self._stop.is_set():
            raise Stopped

    def run(
        self, tasks: Iterable[Callable[Given, Result]], *given: Given.args, **named: Given.kwargs
    ) -> list[Result]:
        """Results in the order of the tasks, each called with what is `given`.

        The first exception stops every other task and is raised.
        Threads take the next task themselves: half a million tasks cost a list, not half a million futures.
        """
        waiting = list(tasks)
        results: list[Result | None] = [None] * len(waiting)
        numbers = iter(range(len(waiting)))

        def work() -> None:
            while True:
                self._go_on()
                with self._lock:
                    number = next(numbers, None)
                if number is None:
                    return
                results[number] = waiting[number](*given, **named)

        with ThreadPoolExecutor(self.workers, thread_name_prefix="pass") as executor:
            try:
                # Submitting is inside too: an interrupt must stop what has already begun.
                futures = [executor.submit(work) for _ in range(min(self.workers, len(waiting)))]
                done, _ = wait(futures, return_when=FIRST_EXCEPTION)
                for future in done:
                    future.result()
            except BaseException:
                self._stop.set()
                executor.shutdown(wait=True, cancel_futures=True)
                raise
        return cast(list[Result], results)
