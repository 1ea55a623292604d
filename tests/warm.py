"""Kernels compiled before a worker starts: with a cold cache that takes longer than a test waits for one."""

import time
from functools import cache

from ninfer_core.kernels.cache import cache_directory
from ninfer_core.kernels.devices import find_device
from ninfer_core.selfcheck.run import self_check


@cache
def warm() -> None:
    """Whatever a worker compiles as it proves itself is in the cache from now on."""
    folder = cache_directory()
    done = None if folder is None else folder / "quick-check"
    if done is None or not done.exists():
        self_check(find_device("cpu"), level="quick", seed=0, timer=time.perf_counter)
        if done is not None:
            done.touch()
