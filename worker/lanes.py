"""Threads for shards, given to the lanes by their weights; a lane with nothing to do gives its share away."""

import os
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from math import lcm
from typing import Any, TypeVar

from service.lanes import BULK, INTERACTIVE, LANES

T = TypeVar("T")
Piece = tuple["Future[Any]", Callable[[], Any], bool]  # for whom, what, and whether that will be long at it

_QUIET_SECONDS = 0.5
_LOOK_SECONDS = 0.1
_NICE = 10  # about a tenth of the processor of a thread that asks for it at the same time; alone, all of it


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
        self._changed = threading.Condition()
        self._beside = 0  # interactive pieces too little for a thread of ours, which run on others just now
        self._quiet_at = 0.0  # when none of these will have been seen for a while
        self._running: dict[str, int] = dict.fromkeys(LANES, 0)  # pieces by lane
        self._long = 0  # of all these, such as will be long at it
        self._count = threads
        self._most_bulk = max(1, threads - 1)  # while there are any
        # Seconds that bulk work rests then for each second that a piece took.
        self._rest = weights[INTERACTIVE] / weights[BULK]
        self._rested_at = 0.0
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="shard", initializer=_step_back)

    @property
    def ahead(self) -> int:
        """Pieces that do well to wait here: one while others run, none while no thread will soon be free for it."""
        with self._changed:
            return int(any(self._running.values()) and self._long < self._count)

    def run(self, lane: str, work: Callable[[], T], *, long: bool = False) -> T:
        """The answer of `work`, done on one of the threads, `long` at it or not. Raises: whatever `work` does."""
        answer: Future[T] = Future()
        with self._changed:
            if not self._waiting[lane]:
                self._passes[lane] = max(self._passes[lane], self._now)
            self._waiting[lane].append((answer, work, long))
            self._changed.notify_all()
        self._threads.submit(self._next)
        return answer.result()

    @contextmanager
    def beside(self) -> Iterator[None]:
        """Inside, something interactive runs on a thread of its own: bulk work leaves it one of ours to run in its stead."""
        with self._changed:
            self._beside += 1
        try:
            yield
        finally:
            with self._changed:
                self._beside -= 1
                self._quiet_at = time.monotonic() + _QUIET_SECONDS

    def close(self) -> None:
        """Wait for what runs, and end the threads."""
        self._threads.shutdown()

    def _next(self) -> None:
        lane, (answer, work, long) = self._taken()
        begin = time.monotonic()
        try:
            answer.set_result(work())
        except BaseException as error:  # noqa: BLE001  it is raised again where the answer is waited for
            answer.set_exception(error)
        finally:
            with self._changed:
                self._running[lane] -= 1
                self._long -= long
                if lane == BULK:
                    self._rested_at = time.monotonic() + (time.monotonic() - begin) * self._rest
                self._changed.notify_all()

    def _taken(self) -> tuple[str, Piece]:
        with self._changed:
            while not (lanes := [lane for lane in LANES if self._waiting[lane] and self._may(lane)]):
                self._changed.wait(_LOOK_SECONDS)
            # Of two with the same pass, the first lane, which is the interactive one.
            lane = min(lanes, key=self._passes.__getitem__)
            piece = self._waiting[lane].popleft()
            self._running[lane] += 1
            self._long += piece[2]
            self._now = self._passes[lane]
            self._passes[lane] += self._strides[lane]
            return lane, piece

    def _may(self, lane: str) -> bool:
        """False for bulk work that has its share while little interactive work comes and goes: of threads, and of time."""
        now = time.monotonic()
        crowded = self._beside > 0 or now < self._quiet_at
        return (
            lane != BULK or not crowded or (self._running[BULK] < self._most_bulk and now >= self._rested_at)
        )
