"""Trying again, with longer and longer pauses, what may pass by itself: a store that does not answer, a full disk.

A file that is wrong stays wrong, and is never tried again. A database that is away is waited for; see `worker.patience`.
"""

import errno
import time
from collections.abc import Callable
from typing import Final, TypeVar

from sqlalchemy.exc import DBAPIError

from ninfer_core.errors import CannotWrite, NinferError
from worker.errors import MayPass

T = TypeVar("T")

_FIRST, _FACTOR, _LONGEST = 1.0, 4.0, 300.0  # seconds before the second attempt, and how they grow
_LOOK_SECONDS = 0.1
_PASSING: Final = frozenset(
    (
        errno.EIO,
        errno.ENOSPC,
        errno.EDQUOT,
        errno.EMFILE,
        errno.ENFILE,
        errno.EAGAIN,
        errno.ESTALE,
        errno.ETIMEDOUT,
        errno.ECONNREFUSED,
        errno.ECONNRESET,
        errno.EPIPE,
        errno.ENETUNREACH,
        errno.EHOSTUNREACH,
    )
)


def may_pass(error: BaseException) -> bool:
    """Whether it, or what caused it, may be over the next time."""
    seen: BaseException | None = error
    while seen is not None:
        if getattr(seen, "passing", False) or (isinstance(seen, OSError) and seen.errno in _PASSING):
            return True
        seen = seen.__cause__
    return False


def code_of(error: BaseException) -> tuple[str, str]:
    """(code, detail) of what failed."""
    said = error.error if isinstance(error, MayPass) else error
    if isinstance(said, CannotWrite) and isinstance(said.__cause__, OSError):
        # Its own words name the folder, which is for the log: where content lies is none of a client's business.
        return said.code, f"cannot store content: {said.__cause__.strerror}"
    return (said.code, str(said)) if isinstance(said, NinferError) else ("internal", told(said))


def told(error: BaseException) -> str:
    """What clients hear of an error that nobody foresaw: no path, no statement and no values, which may be anything."""
    said: object = error
    if isinstance(error, DBAPIError):
        said = error.orig
    elif isinstance(error, OSError) and error.strerror is not None:
        said = error.strerror
    return f"{type(error).__name__}: {said}"


def persistently(
    work: Callable[[], T],
    most: int,
    note: Callable[[int, str, str, float], object],
    check: Callable[[], None],
) -> T:
    """The answer of `work`, which is begun `most` times at most while it fails in a way that may pass.

    `note` is told the attempt, code and detail of what failed, and the seconds until the next; `check` may end the
    waiting, in which no thread for shards is held. Raises: what `work` raised at last, and what `check` does.
    """
    attempt = 0
    while True:
        attempt += 1
        try:
            return work()
        except Exception as error:
            if attempt >= most or not may_pass(error):
                raise
            code, detail = code_of(error)
        seconds = min(_LONGEST, _FIRST * _FACTOR ** (attempt - 1))
        note(attempt, code, detail, seconds)
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            time.sleep(min(left, _LOOK_SECONDS))
            check()
