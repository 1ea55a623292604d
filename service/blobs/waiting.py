"""Calls to a store over the network, made on a loop of their own, so that who waits for one can be told to stop."""

import asyncio
import os
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import wait
from typing import Any, Final, TypeVar

T = TypeVar("T")
Check = Callable[[], None]  # raises when the thread that calls it is to stop

_LOOK_SECONDS: Final = 0.2
_LOCK = threading.Lock()
_LOOPS: dict[int, asyncio.AbstractEventLoop] = {}  # by process: a loop does not outlive a fork


def never() -> None:
    """A check of work that nobody stops."""


def answer(call: Coroutine[Any, Any, T], check: Check = never, stop: Callable[[], None] | None = None) -> T:
    """What `call` returns or raises.

    When `check` raises meanwhile, `stop` tells the call to end by itself; without it the call is broken off.
    """
    future = asyncio.run_coroutine_threadsafe(call, _loop())
    try:
        while not wait([future], _LOOK_SECONDS).done:
            check()
    except BaseException:
        if stop is not None:
            stop()
        else:
            future.cancel()
        raise
    return future.result()


def _loop() -> asyncio.AbstractEventLoop:
    with _LOCK:
        loop = _LOOPS.get(os.getpid())
        if loop is None:
            loop = _LOOPS[os.getpid()] = asyncio.new_event_loop()
            threading.Thread(target=loop.run_forever, name="store", daemon=True).start()
        return loop
