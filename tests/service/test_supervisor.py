"""The worker beside `serve`, played by small scripts: started again, killed when it freezes, ended with its server."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from service.settings import Settings
from service.supervisor import Supervisor

BEATING = """
import os, sys, time
fd = int(sys.argv[-1])
open(os.environ["NINFER_GATE_DATA"] + f"/{os.getpid()}", "w").close()
while True:
    os.write(fd, b".")
    time.sleep(0.05)
"""
SILENT = BEATING.replace("while True:", "os.write(fd, b'.')\nwhile True:\n    time.sleep(60)")
ENDING = BEATING.replace("while True:", "sys.exit(3)\nwhile True:")


def until(condition: Callable[[], object], what: str, seconds: float = 20) -> None:
    """Wait for a condition, or fail saying which."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            pytest.fail(f"not within {seconds} s: {what}")
        time.sleep(0.02)


def lives(data: Path) -> list[str]:
    """Process ids of every worker that was ever started."""
    return sorted(path.name for path in data.iterdir() if path.name.isdigit())


def runs(pid: int) -> bool:
    """Whether a process is there and no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[[str], Supervisor]]:
    """Supervisors of scripts, stopped at the end."""
    started: list[Supervisor] = []

    def begin(script: str) -> Supervisor:
        settings = Settings(data=tmp_path, dead_after_seconds=0.5, heartbeat_seconds=0.05)
        supervisor = Supervisor(settings, (sys.executable, "-c", script))
        supervisor.start()
        started.append(supervisor)
        return supervisor

    yield begin
    for supervisor in started:
        supervisor.stop(5)


def test_a_worker_that_beats_is_left_alone_and_stopped(
    start: Callable[[str], Supervisor], tmp_path: Path
) -> None:
    supervisor = start(BEATING)
    until(lambda: lives(tmp_path), "a worker")
    time.sleep(1.2)  # more than twice the silence that would be death
    assert len(lives(tmp_path)) == 1
    pid = supervisor.pid
    assert pid is not None
    supervisor.stop(5)
    assert not runs(pid)


@pytest.mark.parametrize("script", [SILENT, ENDING], ids=["silent", "ending"])
def test_a_worker_that_freezes_or_ends_is_started_again(
    start: Callable[[str], Supervisor], tmp_path: Path, script: str
) -> None:
    start(script)
    until(lambda: len(lives(tmp_path)) >= 2, "a second worker")


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
def test_a_worker_that_is_killed_or_stopped_is_replaced(
    start: Callable[[str], Supervisor], tmp_path: Path, number: int
) -> None:
    supervisor = start(BEATING)
    until(lambda: supervisor.pid is not None and lives(tmp_path), "a worker")
    first = supervisor.pid
    assert first is not None
    os.kill(first, number)
    until(lambda: supervisor.pid not in (None, first), "another worker")
    assert not runs(first)


def test_a_worker_that_cannot_be_started_just_now_is_tried_again(
    start: Callable[[str], Supervisor], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, tried = subprocess.Popen, []

    def failing_once(*arguments: object, **more: object) -> object:
        tried.append(1)
        if len(tried) == 1:
            raise BlockingIOError(11, "Resource temporarily unavailable")
        return real(*arguments, **more)  # type: ignore[call-overload]

    monkeypatch.setattr(subprocess, "Popen", failing_once)
    start(BEATING)
    until(lambda: lives(tmp_path), "a worker at the second try")


def test_a_worker_without_its_server_notices(tmp_path: Path) -> None:
    script = (
        "import os, sys, time; from pathlib import Path; from service.settings import Settings\n"
        "from service.supervisor import Supervisor\n"
        f"s = Supervisor(Settings(data=Path({str(tmp_path)!r})), (sys.executable, '-c', {BEATING!r}))\n"
        f"s.start()\nwhile not any(n.isdigit() for n in os.listdir({str(tmp_path)!r})): time.sleep(0.02)\n"
        "os.kill(os.getpid(), 9)\n"
    )
    subprocess.run([sys.executable, "-c", script], check=False, timeout=30)
    (worker,) = lives(tmp_path)
    until(lambda: not runs(int(worker)), "the worker's end")
