"""Work on independent items, over all processors that this process may use; and arrays as kernels take them."""

import os
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

WORTH_A_THREAD: Final = 1 << 22  # values of one thread, below which starting it costs more than it saves
_TURNS: Final = 4  # ranges of each thread: one that was kept waiting leaves its rest to the others

Work = Callable[[int, int], None]


def processors() -> int:
    """How many processors this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)  # of Linux alone
    return len(affinity(0)) if affinity else os.cpu_count() or 1


def over_items(count: int, values_each: int, work: Work) -> None:
    """`work(start, stop)` for ranges that cover `count` items; each item makes `values_each` values of the result.

    The kernels inside release the interpreter lock. What a range raises is raised here.
    """
    threads = min(processors(), count, count * values_each // WORTH_A_THREAD)
    if threads <= 1:
        work(0, count)
        return
    pieces = threads * _TURNS
    bounds = [count * k // pieces for k in range(pieces + 1)]
    ranges = deque(pairwise(bounds))

    def take() -> None:
        while True:
            try:
                start, stop = ranges.popleft()
            except IndexError:  # all are taken
                return
            work(start, stop)

    # Started for this call and gone with it: nothing is left behind for a process that forks. The caller works too.
    with ThreadPoolExecutor(threads - 1, thread_name_prefix="decode") as pool:
        others = [pool.submit(take) for _ in range(threads - 1)]
        take()
    for other in others:
        other.result()


def stored(array: NDArray[Any]) -> NDArray[Any]:
    """The array in C order and read-only, whatever it was: a kernel is compiled for one type of array, not for each."""
    view = np.ascontiguousarray(array).view()
    view.flags.writeable = False
    return view
