"""When tokens were last used: remembered here, written down once a minute by a thread beside the requests."""

import threading
import time
from collections import OrderedDict
from datetime import datetime
from typing import Final

import structlog

from service.auth import Caller, hashed
from service.records import tokens
from service.records.database import Database
from service.records.types import now

_NOTED_SECONDS: Final = 60.0  # how exactly the last use of a token is known
_MOST_KNOWN: Final = 10_000
log = structlog.get_logger()


class Uses:
    """Which secrets opened something lately, and when that was written down: beside the requests, never in their way."""

    def __init__(self) -> None:
        """None so far."""
        self._lock = threading.Lock()
        self._done = threading.Condition(self._lock)
        self._known: OrderedDict[str, float] = (
            OrderedDict()
        )  # hash of a secret: when its use was written last
        self._unwritten: dict[str, datetime] = {}  # id of a token: when it was used
        self._writing = False

    def knows(self, secret: str | None) -> bool:
        """Whether it opened something here lately."""
        with self._lock:
            return hashed(secret) in self._known

    def note(self, database: Database, secret: str | None, caller: Caller) -> None:
        """It opened something just now."""
        if caller.token_id is None:
            return
        sha256, moment = hashed(secret), time.monotonic()
        with self._lock:
            if moment - self._known.get(sha256, -_NOTED_SECONDS) < _NOTED_SECONDS:
                return
            self._known[sha256] = moment
            self._known.move_to_end(sha256)
            if len(self._known) > _MOST_KNOWN:
                self._known.popitem(last=False)
            self._unwritten[caller.token_id] = now()
            if self._writing:
                return
            self._writing = True
        threading.Thread(target=self._write, args=(database,), daemon=True).start()

    def forget(self, secret: str | None) -> None:
        """It opens nothing any more."""
        with self._lock:
            self._known.pop(hashed(secret), None)

    def settle(self, seconds: float = 5.0) -> bool:
        """Whether, within this time, all that was noted is written down: to be asked before the database is closed."""
        with self._done:
            return self._done.wait_for(lambda: not self._writing, seconds)

    def _write(self, database: Database) -> None:
        while True:
            with self._lock:
                used, self._unwritten = self._unwritten, {}
                self._writing = bool(used)
                if not used:
                    self._done.notify_all()
                    return
            try:
                with database.write() as session:
                    tokens.note_used(session, used)
            except Exception as error:  # noqa: BLE001  a time of day is worth no request; the next use is noted again
                log.warning("token.use_not_noted", error=type(error).__name__)
