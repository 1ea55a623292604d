"""The command `serve` as a whole: it starts, tells its address and token, survives its worker, and stops in order."""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import numpy as np
import pytest

from ninfer_core.formats import FORMATS
from tests import build
from tests.cli.build import COMMAND, run
from tests.service.serving import Service, serving


@pytest.fixture
def artifact(tmp_path: Path) -> Path:
    """A small sound artifact."""
    shape = (64, 256)
    payload = build.legal_payload(FORMATS["Q4G64_F16S"], shape, np.random.default_rng(1))
    return build.write_artifact(tmp_path / "a.ninfer", {"w": (FORMATS["Q4G64_F16S"], shape, payload)})


def verify(service: Service, path: Path) -> dict[str, object]:
    """The finished job of a verification."""
    with service.client() as client:
        pushed = client.push_artifact([path])
        started = client.start({"type": "verify", "artifact": pushed["digest"]})
        return client.wait(started["id"], timeout_seconds=300)


def worker_of(service: Service) -> int:
    """The process id of the worker that runs now."""
    pid = service.process.pid
    children = {
        int(child)
        for task in Path(f"/proc/{pid}/task").iterdir()
        for child in (task / "children").read_text().split()
    }
    (worker,) = children
    return worker


@contextmanager
def stops_soon_with_open_streams(service: Service, job: str) -> Iterator[None]:
    """Whoever listens to a job that never ends while the service is stopped is left, and the stop waits for nobody."""
    heard = threading.Event()

    def listen() -> None:
        request = {"Authorization": f"Bearer {service.token}"}
        with httpx.stream("GET", f"{service.address}/v1/jobs/{job}/events", headers=request) as stream:
            for _ in stream.iter_raw():
                heard.set()

    listener = threading.Thread(target=listen, daemon=True)
    listener.start()
    assert heard.wait(20)
    begin = time.monotonic()
    yield
    assert service.process.wait(20) == 0
    assert time.monotonic() - begin < 4
    listener.join(5)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP])
def test_a_signal_stops_it_soon_also_with_open_streams(tmp_path: Path, number: int) -> None:
    """SIGTERM does in `test_served_again`."""
    with serving(tmp_path / "data", "--no-worker") as service:
        with service.client() as client:
            digest = client.request("POST", "/v1/artifacts?kind=ninfer&name=a.ninfer", content=b"x")["digest"]
            job = client.start({"type": "verify", "artifact": digest})["id"]
        with stops_soon_with_open_streams(service, job):
            service.process.send_signal(number)


def test_served_again(tmp_path: Path, artifact: Path) -> None:
    """The token is printed once and another can be made; the engine is made anew from our own rows."""
    data = tmp_path / "data"
    with serving(data, "--no-worker") as service:
        with service.client() as client:
            digest = client.push_artifact([artifact])["digest"]
            started = client.start({"type": "verify", "artifact": digest})["id"]
        first = service.token
        with stops_soon_with_open_streams(service, started):
            service.process.send_signal(signal.SIGTERM)
    engine = list(data.glob("engine.sqlite*"))
    assert engine
    for file in engine:
        file.unlink()
    with serving(data, token=first) as service:
        assert service.token == first  # it was not printed again
        with service.client() as client:
            assert client.wait(started, timeout_seconds=300)["state"] == "passed"
            (job,) = client.items("/v1/jobs")
        assert (job["id"], job["state"]) == (started, "passed")
        made = run("token", "create", "--data", data)
        assert made.returncode == 0
        second = made.stdout.strip()
        listed = json.loads(run("token", "list", "--json", "-", "--data", data).stdout)
        (old,) = (row["id"] for row in listed["tokens"] if row["name"] == "first")
        assert run("token", "revoke", old, "--data", data).returncode == 0
        for token, status in ((first, 401), (second, 200)):
            headers = {"Authorization": f"Bearer {token}"}
            assert httpx.get(f"{service.address}/v1/jobs", headers=headers).status_code == status
    assert first not in service.log.read_text()
    assert oct(data.stat().st_mode & 0o777) == "0o700"


def test_one_command_on_postgresql_replaces_a_worker_that_is_lost(
    tmp_path: Path, artifact: Path, postgresql_url: str
) -> None:
    """Killed, and then its successor stopped. On SQLite one command works in `test_served_again`."""
    quick = {"NINFER_GATE_DEAD_AFTER_SECONDS": "2", "NINFER_GATE_HEARTBEAT_SECONDS": "0.3"}
    with serving(tmp_path / "data", "--database-url", postgresql_url, environment=quick) as service:
        assert verify(service, artifact)["state"] == "passed"
        for number in (signal.SIGKILL, signal.SIGSTOP):
            lost = worker_of(service)
            os.kill(lost, number)
            assert verify(service, artifact)["state"] == "passed", number
            assert worker_of(service) != lost, number
    assert not list((tmp_path / "data").glob("*.sqlite"))


def test_a_worker_of_its_own(tmp_path: Path, artifact: Path) -> None:
    data = tmp_path / "data"
    with serving(data, "--no-worker") as service:
        worker = subprocess.Popen([str(COMMAND), "worker", "--data", str(data)], stderr=subprocess.DEVNULL)
        try:
            assert verify(service, artifact)["state"] == "passed"
        finally:
            worker.send_signal(signal.SIGTERM)
            assert worker.wait(30) == 0


# Command lines in one process that loads everything once; what is raised past `run` ends it.
ONE_AFTER_ANOTHER = """
import contextlib, io, json, os, sys
from service.cli.app import run

answers = []
for environment, arguments in json.load(sys.stdin):
    os.environ.update(environment)
    with contextlib.redirect_stderr(io.StringIO()) as said:
        code = run(arguments)
    answers.append([code, said.getvalue()])
print(json.dumps(answers))
"""


def test_what_cannot_be_served_is_said(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        busy = run("serve", "--data", tmp_path / "data", "--port", port)
    assert f"port {port}" in busy.stderr
    never = run("worker", "--data", tmp_path / "never")  # becomes another program, and needs a process
    for refused in (busy, never):
        assert refused.returncode == 2, refused.args
        assert refused.stderr, refused.args
        assert "Traceback" not in refused.stderr, refused.stderr
    (tmp_path / "file").touch()
    data, wrong = str(tmp_path / "data"), {"NINFER_GATE_THREADS": "none"}
    lines: list[tuple[dict[str, str], list[str]]] = [
        ({}, ["serve", "--data", str(tmp_path / "file")]),
        ({}, ["serve", "--data", data, "--database-url", "mysql://x/y"]),
        ({}, ["migrate", "--data", str(tmp_path / "file" / "under")]),
        (wrong, ["serve", "--data", data]),
    ]
    done = subprocess.run(
        [sys.executable, "-c", ONE_AFTER_ANOTHER],
        input=json.dumps(lines),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    answers = json.loads(done.stdout)
    for (_, arguments), (code, said) in zip(lines, answers, strict=True):
        assert code == 2, arguments
        assert said, arguments
        assert "Traceback" not in said, said
    assert "NINFER_GATE_THREADS" in answers[-1][1]
