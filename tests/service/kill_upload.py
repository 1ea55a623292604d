"""`make kill-upload`: a push of 2 GB whose client and whose service are killed again and again ends with the same digest.

    python -m tests.service.kill_upload [--megabytes N] [--kills N] [--seed N] [--data DIR]

Each kill is a `kill -9` at a random moment, of the client, the service, or both. The service is started again on its
old folder; the client is started again with the same command. At the end the content that the service hands out is
hashed, and every byte that was sent is counted.
"""

import argparse
import hashlib
import json
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import httpx

from tests import memory
from tests.cli.build import COMMAND

_PIECE = 8 << 20


class Service:
    """The installed command, without a worker, always at the same port."""

    def __init__(self, data: Path) -> None:
        self._data = data
        with socket.create_server(("127.0.0.1", 0)) as listener:
            self._port = listener.getsockname()[1]
        self.address = f"http://127.0.0.1:{self._port}"
        self.token = ""
        self.starts = 0
        self._process: subprocess.Popen[str] | None = None

    def start(self) -> None:
        """Until it listens."""
        with self._data.with_name("serve.log").open("a") as log:
            self._process = subprocess.Popen(
                [str(COMMAND), "serve", "--data", str(self._data), "--port", str(self._port), "--no-worker"],
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        said = ""
        while self._process.stdout is not None and " token " not in said:
            line = self._process.stdout.readline()
            if not line:
                raise SystemExit(f"the service did not start: {said}")
            said += line
        printed = re.search(r"token +(ng_\S{20,})", said)
        self.token = printed[1] if printed is not None else self.token
        self.starts += 1

    def kill(self) -> None:
        """As a power cut would."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            if self._process.stdout is not None:
                self._process.stdout.close()

    def call(self, method: str, path: str) -> httpx.Response:
        """One request with the token."""
        headers = {"Authorization": f"Bearer {self.token}"}
        return httpx.request(method, self.address + path, headers=headers, timeout=60)


def start_push(service: Service, path: Path, report: Path) -> "subprocess.Popen[bytes]":
    """The command, with a short patience for each attempt."""
    environment = {**os.environ, "NINFER_GATE_URL": service.address, "NINFER_GATE_TOKEN": service.token}
    command = [str(COMMAND), "push", str(path), "--json", str(report)]
    return subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


def made(path: Path, size: int, seed: int) -> str:
    """The sha256 of a new file of random bytes."""
    draw, digest = random.Random(seed), hashlib.sha256()
    with path.open("wb") as file:
        for at in range(0, size, _PIECE):
            piece = draw.randbytes(min(_PIECE, size - at))
            digest.update(piece)
            file.write(piece)
    return digest.hexdigest()


def main() -> int:
    """0 when the digest is the same."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--megabytes", type=int, default=2_000)
    parser.add_argument("--kills", type=int, default=8)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--data", type=Path, default=None, help="where to work; memory where there is room")
    options = parser.parse_args()
    place = options.data or memory.folder()
    with tempfile.TemporaryDirectory(prefix="kill-upload-", dir=place) as folder:
        return run(Path(folder), options.megabytes * 1_000_000, options.kills, options.seed)


def run(folder: Path, size: int, kills: int, seed: int) -> int:
    """The whole trial in one folder."""
    needed = 3 * size
    if shutil.disk_usage(folder).free < needed:
        raise SystemExit(f"{folder} has no room for {needed:,} bytes; name another place with --data")
    path, report = folder / "weights.ninfer", folder / "push.json"
    wanted = made(path, size, seed)
    chance = random.Random(seed)
    service = Service(folder / "data")
    service.start()
    began = time.monotonic()
    rows: list[tuple[str, int, float]] = []
    push = start_push(service, path, report)
    try:
        marks = sorted(chance.uniform(0.05, 0.98) for _ in range(kills))
        for number, mark in enumerate(marks):
            # A kill by how far it is, not by time: so each one meets the upload on its way.
            victim = ("client", "service", "both")[number % 3]
            at = _reached(service, push, int(mark * size))
            if victim in ("client", "both"):
                push.send_signal(signal.SIGKILL)
                push.communicate()
            if victim in ("service", "both"):
                service.kill()
                time.sleep(chance.uniform(0.0, 1.0))
                service.start()
            rows.append((victim, at, time.monotonic() - began))
            if victim in ("client", "both"):
                push = start_push(service, path, report)
        _, said = push.communicate(timeout=600)
        seconds = time.monotonic() - began
        if push.returncode != 0:
            print(said.decode(errors="replace"), file=sys.stderr)
            return 1
        return _judge(service, wanted, size, json.loads(report.read_text()), rows, seconds)
    finally:
        if push.poll() is None:
            push.kill()
            push.communicate()
        service.kill()


def _reached(service: Service, push: "subprocess.Popen[bytes]", mark: int) -> int:
    """The offset of the upload, once it is there."""
    end = time.monotonic() + 300
    while time.monotonic() < end:
        if push.poll() is not None:
            raise SystemExit(f"push ended before its time with {push.returncode}")
        items = service.call("GET", "/v1/uploads").json()["items"]
        at = max((item["offset"] or 0 for item in items), default=0)
        if at >= mark:
            return int(at)
        time.sleep(0.005)
    raise SystemExit(f"the upload did not come to {mark:,} bytes")


def _judge(
    service: Service,
    wanted: str,
    size: int,
    report: dict[str, Any],
    rows: list[tuple[str, int, float]],
    seconds: float,
) -> int:
    found, count = hashlib.sha256(), 0
    headers = {"Authorization": f"Bearer {service.token}"}
    with httpx.stream(
        "GET", f"{service.address}/v1/blobs/sha256:{wanted}", headers=headers, timeout=60
    ) as answer:
        for piece in answer.iter_bytes(_PIECE):
            found.update(piece)
            count += len(piece)
    for victim, at, when in rows:
        print(f"  killed {victim:<8} at {at:>13,} bytes, {when:6.1f} s")
    last = report["files"][0]
    right = (found.hexdigest(), count, answer.status_code) == (wanted, size, 200)
    ended = service.call("GET", "/v1/uploads?state=stored").json()["items"]
    print(f"  {size:,} bytes in {seconds:.1f} s; the last client sent {last['sent_bytes']:,} of them")
    print(f"  uploads begun {len(ended)}, starts of the service {service.starts}")
    print(f"  digest {'the same' if right else 'ANOTHER'}: sha256:{found.hexdigest()}")
    return 0 if right and len(ended) == 1 else 1


if __name__ == "__main__":
    sys.exit(main())
