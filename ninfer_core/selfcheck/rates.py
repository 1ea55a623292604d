"""How fast a kernel is, beside the rate at which its device copies."""

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from ninfer_core.selfcheck.questions import Question

Timer = Callable[[], float]
"""Seconds from any beginning."""

_COPIED: Final = 64 << 20  # bytes: more than a cache holds
_AT_LEAST: Final = 0.05  # seconds that are measured


def copy_rate(processor: Any, timer: Timer) -> float:
    """Bytes a second that the device copies from its own memory to its own memory, the best of a few.

    A processor without a `copy_rate` of its own works in the memory of this machine.
    """
    own = getattr(processor, "copy_rate", None)
    if own is not None:
        return float(own(timer, _COPIED))
    source, target = np.ones(_COPIED, np.uint8), np.ones(_COPIED, np.uint8)
    return _COPIED / min(_seconds(lambda: np.copyto(target, source), timer) for _ in range(5))


def rate_of(processor: Any, question: Question, timer: Timer) -> float | None:
    """Bytes a second of a question, asked until enough time has passed; None where no bytes are counted."""
    if question.bytes == 0:
        return None
    best, passed, work = float("inf"), 0.0, question.work or question.ask
    while passed < _AT_LEAST:
        seconds = _seconds(lambda: work(processor), timer)
        if seconds <= 0:
            return None
        best, passed = min(best, seconds), passed + seconds
    return question.bytes / best


def _seconds(act: Callable[[], Any], timer: Timer) -> float:
    before = timer()
    act()
    return timer() - before
