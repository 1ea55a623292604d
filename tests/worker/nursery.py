"""Worker processes forked from one that has loaded everything: a start costs a fork, not seconds of imports and checks.

`python -m tests.worker.nursery` reads requests from its standard input, one JSON line each, and answers each with a line.
What it forks runs `worker.__main__` as `python -m worker` does, with a process, a database and an engine of its own, except
that the processor is proved once, in the process whose kernels they all share. `Rig.start_anew` and
tests/service/test_serve.py start workers as the command does.
"""

import atexit
import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

VERSION = "TESTS_WORKER_VERSION"  # that a worker takes itself for, where its environment says so
_PAUSE = 0.02
_ROOT = Path(__file__).resolve().parents[2]  # where the package `tests` is found


class Nursery:
    """The process, started by the first worker that is asked for; it ends with its pipe."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, environment: dict[str, str], log: Path) -> "Forked":
        """A new worker; `environment` is all that it has, and `log` takes its standard error."""
        return Forked(self, self.ask({"environment": environment, "log": str(log)}))

    def ask(self, request: dict[str, Any]) -> Any:
        """Its answer."""
        if self._process is None:
            self._process = subprocess.Popen(
                [sys.executable, "-m", __name__], cwd=_ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE
            )
            atexit.register(self._end, self._process)
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(request).encode() + b"\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())

    @staticmethod
    def _end(process: subprocess.Popen[bytes]) -> None:
        with process:  # closes its pipes, and waits
            pass


class Forked:
    """As much of `subprocess.Popen` as tests of workers use."""

    def __init__(self, nursery: Nursery, pid: int) -> None:
        self.pid = pid
        self._nursery = nursery
        self._code: int | None = None

    def poll(self) -> int | None:
        """The exit code, minus the number of a signal, or None; collects the process."""
        if self._code is None:
            self._code = self._nursery.ask({"poll": self.pid})
        return self._code

    def wait(self, seconds: float) -> int:
        """The exit code. Raises: subprocess.TimeoutExpired."""
        deadline = time.monotonic() + seconds
        while (code := self.poll()) is None:
            if time.monotonic() > deadline:
                raise subprocess.TimeoutExpired("worker", seconds)
            time.sleep(_PAUSE)
        return code


def main() -> None:
    """Answer until nobody asks any more."""
    # What `worker.__main__` does before its imports has to come before ours.
    from worker import SIGNALS

    signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    for name in [name for name in os.environ if name.startswith("DBOS")]:
        del os.environ[name]
    import worker.start  # noqa: F401  loads what every worker needs

    _prove_once()
    for line in sys.stdin.buffer:
        request = json.loads(line)
        answer = _code(request["poll"]) if "poll" in request else _fork(request)
        sys.stdout.buffer.write(json.dumps(answer).encode() + b"\n")
        sys.stdout.buffer.flush()


def _prove_once() -> None:
    from ninfer_core.kernels.devices import find_device
    from worker import devices

    really, asked = devices.check, (devices.CPU, "quick", 0)
    proved = really(find_device(devices.CPU), "quick", 0, lambda *_: None)

    def check(device: Any, level: str, seed: int, progress: Any, only: str | None = None) -> Any:
        return proved if (device.name, level, seed) == asked else really(device, level, seed, progress, only)

    vars(devices)["check"] = check


def _speak_as(version: str | None) -> None:
    if version is None:
        return
    from worker import heartbeat, plans
    from worker.workflows import shards

    for module in (heartbeat, plans, shards):
        vars(module)["__version__"] = version
    vars(plans)["OURS"] = plans.version(version)


def _code(pid: int) -> int | None:
    found, status = os.waitpid(pid, os.WNOHANG)
    return os.waitstatus_to_exitcode(status) if found else None


def _fork(request: dict[str, Any]) -> int:
    if pid := os.fork():
        return pid
    try:
        stderr = os.open(request["log"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
        null = os.open(os.devnull, os.O_RDWR)
        for source, target in ((null, 0), (null, 1), (stderr, 2)):
            os.dup2(source, target)
        os.environ.clear()
        os.environ.update(request["environment"])
        _speak_as(os.environ.pop(VERSION, None))
        sys.argv = ["worker"]
        from worker.__main__ import main as work

        code = work()
        with suppress(OSError):
            sys.stderr.flush()
        os._exit(code)
    except BaseException:  # noqa: BLE001  what was forked never returns to our loop
        sys.excepthook(*sys.exc_info())
        os._exit(1)


if __name__ == "__main__":
    main()
