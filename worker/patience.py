"""Waiting for a database that is away: while it fails over, restarts or is kept shut, work waits and then goes on."""

import sqlite3
import time
from collections.abc import Callable
from typing import Final, TypeVar

import structlog
from sqlalchemy.exc import DBAPIError, InterfaceError, OperationalError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as NoConnectionFree

log = structlog.get_logger()

T = TypeVar("T")

_SOONEST, _LATEST = 0.2, 5.0  # seconds between two attempts
_LOOK_SECONDS = 0.1
# PostgreSQL, of a session or server that is no longer what it was: ended while idle in a transaction; a standby now.
_SESSION_STATES: Final = ("25P03", "25006")
_TOO_COMPLEX = "54"  # PostgreSQL's class "program limit exceeded", which no waiting mends
# SQLite, of a statement that it does not understand, and of a call that makes no sense.
_WRONG: Final = (sqlite3.SQLITE_ERROR, sqlite3.SQLITE_MISUSE)


def passing(error: BaseException) -> bool:
    """Whether the database failed in a way that may be over the next time it is asked."""
    if isinstance(error, NoConnectionFree):
        return True
    if not isinstance(error, DBAPIError):
        return False
    state = getattr(error.orig, "sqlstate", None) or ""
    if error.connection_invalidated or state in _SESSION_STATES:
        return True
    lasting = state.startswith(_TOO_COMPLEX) or getattr(error.orig, "sqlite_errorcode", None) in _WRONG
    return isinstance(error, OperationalError | InterfaceError) and not lasting


def patiently(work: Callable[[], T], check: Callable[[], None]) -> T:
    """The answer of `work`, which is called again for as long as the database is away; `check` may end the waiting.

    Raises: whatever `work` does but that, and whatever `check` does.
    """
    pause = _SOONEST
    while True:
        try:
            return work()
        except SQLAlchemyError as error:
            if not passing(error):
                raise
            log.warning("database.away", again_seconds=round(pause, 1), error=str(error).partition("\n")[0])
        end = time.monotonic() + pause
        check()
        while (left := end - time.monotonic()) > 0:
            time.sleep(min(left, _LOOK_SECONDS))
            check()
        pause = min(_LATEST, pause * 1.5)
