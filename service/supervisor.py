"""The worker process beside `serve`: started, watched, killed when it freezes, started again, stopped with us.

The worker writes a byte into a pipe with every heartbeat. A worker that is stopped or hangs writes none and is killed;
one whose server is gone cannot write any more and stops by itself. Nothing else passes between the two but the databases.
"""

import os
import select
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import suppress

import structlog

from service.settings import Settings

# -P: a file called worker.py where a person happens to stand is not the worker.
WORKER = (sys.executable, "-P", "-m", "worker")
BEAT_FD_OPTION = "--beat-fd"
_START_SECONDS = 60.0  # until the first beat: imports, and a database that may have to be waited for
_LONGEST_PAUSE = 30.0

log = structlog.get_logger()


class Supervisor:
    """One worker process, kept alive from `start` to `stop`."""

    def __init__(self, settings: Settings, command: Sequence[str] = WORKER) -> None:
        """`command` is given the pipe's file descriptor as its last arguments, and the settings in its environment."""
        self._command = command
        self._silence = settings.dead_after_seconds
        self._environment = {**os.environ, **settings.environment()}
        self._stopping = threading.Event()
        self._process: subprocess.Popen[bytes] | None = None
        self._thread = threading.Thread(target=self._watch, name="supervisor", daemon=True)

    @property
    def pid(self) -> int | None:
        """Of the worker that runs now."""
        process = self._process
        return None if process is None or process.poll() is not None else process.pid

    def start(self) -> None:
        """Start the worker; it is started again whenever it ends."""
        self._thread.start()

    def stop(self, grace_seconds: float = 30.0) -> None:
        """Ask the worker to finish what it must, wait, and end it; before `start`, nothing."""
        self._stopping.set()
        if not self._thread.is_alive():
            return
        self._thread.join(timeout=_START_SECONDS)
        process = self._process
        if process is None or process.poll() is not None:
            return
        process.terminate()
        try:
            process.wait(grace_seconds)
        except subprocess.TimeoutExpired:
            log.warning(
                "worker.killed", pid=process.pid, why=f"still there {grace_seconds:g} s after SIGTERM"
            )
            process.kill()
            process.wait()

    def _watch(self) -> None:
        pause = 0.5
        while not self._stopping.is_set():
            begin = time.monotonic()
            code: int | str | None
            try:
                code = self._run()
            except OSError as error:  # no process, no descriptor to be had just now: it may pass
                code = error.strerror
            if self._stopping.is_set():
                return
            pause = 0.5 if time.monotonic() - begin > _LONGEST_PAUSE else min(2 * pause, _LONGEST_PAUSE)
            log.warning("worker.ended", code=code, starts_again_in_seconds=pause)
            self._stopping.wait(pause)

    def _run(self) -> int | None:
        """One life of the worker; its exit code, or None when we are to stop and it still runs."""
        reader, writer = os.pipe()
        try:
            self._process = process = subprocess.Popen(  # noqa: S603  our own interpreter and module
                [*self._command, BEAT_FD_OPTION, str(writer)],
                env=self._environment,
                pass_fds=(writer,),
                stdin=subprocess.DEVNULL,
                start_new_session=True,
            )
        finally:
            os.close(writer)
        log.info("worker.started", pid=process.pid)
        try:
            return self._listen(process, reader)
        finally:
            if not self._stopping.is_set():
                os.close(reader)  # while we stop it must be able to beat on

    def _listen(self, process: subprocess.Popen[bytes], reader: int) -> int | None:
        silent_at = time.monotonic() + _START_SECONDS
        beats = select.poll()  # not select(), which refuses descriptors beyond 1,023
        beats.register(reader, select.POLLIN)
        while not self._stopping.is_set():
            ready = beats.poll(200)
            if ready and os.read(reader, 4096):
                silent_at = time.monotonic() + self._silence
            elif ready or process.poll() is not None:
                return process.wait()
            if time.monotonic() > silent_at:
                log.error("worker.killed", pid=process.pid, why="no heartbeat")
                with suppress(ProcessLookupError):
                    process.kill()
                return process.wait()
        return None
