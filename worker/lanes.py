"""Threads for shards, given to the lanes by their weights; a lane with nothing to do gives its share away."""

import os
import sys
import threading
from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from math import lcm
from typing import Any, TypeVar

from service.lanes import LANES

T = TypeVar("T")
Piece = tuple["Future[Any]", Callable[[], Any]]


_NICE = 5  # about a third of the processor of a thread that asks for it at the same time; alone, all of it


def _step_back() -> None:
    """Let requests, heartbeats and what is done between the shards go before the shards, which take all there is."""
    if sys.platform == "linux":  # where a priority is that of a thread
        with suppress(OSError):
            os.setpriority(
                os.PRIO_PROCESS, threading.get_native_id(), os.getpriority(os.PRIO_PROCESS, 0) + _NICE
            )


class Lanes:
    """So many threads; which of the pieces that wait goes next is decided when one of them is free.

    Stride scheduling: each lane has a pass, and the lowest goes next and then moves on by its stride, the longer the less
    it weighs. A lane that begins again does so where the others are: it has no claim to what it left unused.
    """

    def __init__(self, threads: int, weights: Mapping[str, int]) -> None:
        common = lcm(*weights.values())
        self._strides: dict[str, int] = {lane: common // weights[lane] for lane in LANES}
        self._passes: dict[str, int] = dict.fromkeys(LANES, 0)
        self._now = 0  # the pass of the piece that was begun last
        self._waiting: dict[str, deque[Piece]] = {lane: deque() for lane in LANES}
        self._lock = threading.Lock()
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="shard", initializer=_step_back)

    def run(self, lane: str, work: Callable[[], T]) -> T:
        """The answer of `work`, done on one of the threads. Raises: whatever `work` does."""
        answer: Future[T] = Future()
        with self._lock:
            if not self._waiting[lane]:
                self._passes[lane] = max(self._passes[lane], self._now)
            self._waiting[lane].append((answer, work))
        self._threads.submit(self._next)
        return answer.result()

    def close(self) -> None:
        """Wait for what runs, and end the threads."""
        self._threads.shutdown()

    def _next(self) -> None:
        answer, work = self._taken()
        try:
            answer.set_result(work())
        except BaseException as error:  # noqa: BLE001  it is raised again where the answer is waited for
            answer.set_exception(error)

    def _taken(self) -> Piece:
        with self._lock:
            # Of two with the same pass, the first lane, which is the interactive one.
            lane = min((lane for lane in LANES if self._waiting[lane]), key=self._passes.__getitem__)
            self._now = self._passes[lane]
            self._passes[lane] += self._strides[lane]
            return self._waiting[lane].popleft()
