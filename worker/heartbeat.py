"""The row that says this worker lives, written again and again by a thread of its own.

The kernels release the interpreter, so heavy work does not keep it. A row that is not there any more was removed by a
peer, which took this worker for dead and handed its work on: then this process ends at once.
"""

import os
import socket
import threading
import time
from collections.abc import Callable

import structlog
from sqlalchemy.exc import SQLAlchemyError

from ninfer_core import __version__
from service.records import workers
from service.records.database import Database
from worker.peers import Beat
from worker.processes import Process

log = structlog.get_logger()

EXIT_LOST = 75  # taken for dead by a peer; start again


def end_at_once() -> None:
    """Leave without a word to anybody: whatever this process still did would be done twice."""
    os._exit(EXIT_LOST)


class Heartbeat:
    """Beats for one worker from `begin` to `stop`."""

    def __init__(
        self,
        database: Database,
        executor_id: str,
        process: Process,
        every: float,
        lost: Callable[[], None] = end_at_once,
    ) -> None:
        self.executor_id = executor_id
        self._database, self._process, self._every, self._lost = database, process, every, lost
        self._beat_at = time.monotonic()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="heartbeat", daemon=True)

    def begin(self) -> None:
        """Write the row, before the engine may give us work, and go on doing so."""
        process = self._process
        with self._database.write() as session:
            workers.enter(
                session,
                self.executor_id,
                host=socket.gethostname(),
                machine=process.machine,
                pid=process.pid,
                started=process.started,
                version=__version__,
            )
        self._beat_at = time.monotonic()
        self._thread.start()

    @property
    def silence(self) -> float:
        """Seconds since a beat arrived."""
        return time.monotonic() - self._beat_at

    @property
    def alive(self) -> bool:
        """Whether the thread runs."""
        return self._thread.is_alive()

    def drain(self) -> None:
        """Say in the row that this worker begins nothing any more."""
        with self._database.write() as session:
            workers.drain(session, self.executor_id)

    def stop(self) -> None:
        """End the thread, and remove the row: nobody needs to ask what became of this worker."""
        self._ended.set()
        self._thread.join(self._every + 1)
        with self._database.write() as session:
            workers.remove(session, self.executor_id)

    def _run(self) -> None:
        while not self._ended.wait(self._every):
            try:
                with self._database.write() as session:
                    known = workers.beat(session, self.executor_id)
            except SQLAlchemyError as error:
                log.warning("heartbeat.failed", silence=round(self.silence, 1), error=str(error))
                continue
            if not known and not self._ended.is_set():
                log.error("worker.declared_dead", executor=self.executor_id)
                self._lost()
                return
            self._beat_at = time.monotonic()


def beats(database: Database) -> list[Beat]:
    """Every worker's row. Raises: SQLAlchemyError."""
    with database.read() as session:
        return [
            Beat(row.executor_id, Process(row.machine, row.pid, row.started), row.beat_at)
            for row in workers.all(session)
        ]
