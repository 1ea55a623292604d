"""The service as a whole: upload and verification against the command line, and peak memory of its processes.

`python -m benchmarks.service [--only upload|verify|memory] [--gigabytes N] [--folder DIR]`. Ratios are of medians taken
turn by turn in one run. Both sides of an upload bring their bytes to the disk (fsync); a verification by the service
is its job from creation to end, one by the command the whole process. Exits 1 when a limit is not met.
"""

import argparse
import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path

from benchmarks.files import CLI, TENSORS, checkpoint
from benchmarks.memory import shapes, sparse_artifact
from ninfer_core.convert import convert
from service.client import Client

UPLOAD_BYTES = 1 << 30
LEAST_RATIO = 0.5
MOST_RATIO = 1.25
WORKER_MB, API_MB = 600, 200
REPEATS = 5


@dataclass(frozen=True)
class Service:
    """A running service."""

    process: "subprocess.Popen[str]"
    address: str
    token: str

    def children(self) -> set[int]:
        """The processes that it started: its workers."""
        tasks = Path(f"/proc/{self.process.pid}/task").iterdir()
        return {int(child) for task in tasks for child in (task / "children").read_text().split()}

    def peak_mb(self) -> tuple[float, float]:
        """Peak resident memory of the API and of its worker."""
        return _peak(self.process.pid), max(map(_peak, self.children()))


def _peak(pid: int) -> float:
    found = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    return int(found[1]) / 1000 if found else 0.0


@contextmanager
def serving(
    folder: Path, database: str | None = None, *, worker: bool = True, **settings: object
) -> Iterator[Service]:
    """A service of its own on a free port, over the SQLite of its folder or another database; nobody is too quick for it."""
    command: list[str | Path] = [
        Path(sys.executable).with_name("ninfer-gate"),
        "serve",
        "--data",
        folder,
        "--port",
        "0",
    ]
    given = {"rate_limit": "1000000/minute", "database_url": database, **settings}
    named = {f"NINFER_GATE_{name.upper()}": str(value) for name, value in given.items() if value is not None}
    if not worker:
        command.append("--no-worker")
    with (folder.parent / "service.log").open("w") as log:
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=log, text=True, env={**os.environ, **named}
        )
    try:
        text = ""
        while process.stdout is not None and "token" not in text and (line := process.stdout.readline()):
            text += line
        address, token = re.search(r"http://\S+", text), re.search(r"token\s+(\S+)", text)
        if address is None or token is None:
            sys.exit(f"the service did not start: {text}")
        yield Service(process, address[0], token[1])
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(60)


def seconds(work: Callable[[], object]) -> float:
    """Wall time of one call."""
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def run_all(commands: Sequence[Sequence[str | Path]]) -> None:
    """One after the other."""
    for command in commands:
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def upload(service: Service, folder: Path) -> bool:
    """Median of uploads over median of copies with sha256, which are brought to the disk as uploads are.

    Copies that stay in the page cache are shown beside it: with a slow disk that ratio says more of the disk.
    """
    source, copy = folder / "upload.bin", folder / "copy.bin"
    copied, cached, uploaded = [], [], []
    for number in range(REPEATS):
        with source.open("wb") as file:  # other bytes each time: content that is held is not stored again
            block = os.urandom(1 << 20)
            for _ in range(UPLOAD_BYTES >> 20):
                file.write(block)
            file.write(number.to_bytes(8, "little"))
        subprocess.run(["sync", source], check=True)
        for times, commands in (
            (cached, (["cp", source, copy], ["sha256sum", copy])),
            (copied, (["cp", source, copy], ["sync", copy], ["sha256sum", copy])),
        ):
            times.append(seconds(partial(run_all, commands)))
            copy.unlink()
        send = [
            *("curl", "--fail", "--silent", "--show-error", "-X", "POST", "-T", source, "-o", os.devnull),
            *("-H", f"Authorization: Bearer {service.token}", "-H", "Expect:", f"{service.address}/v1/blobs"),
        ]
        uploaded.append(seconds(partial(subprocess.run, send, check=True)))
        shutil.rmtree(folder / "data" / "blobs", ignore_errors=True)  # room on the disk
    ratio = statistics.median(copied) / statistics.median(uploaded)
    without = statistics.median(cached) / statistics.median(uploaded)
    speed = UPLOAD_BYTES / statistics.median(uploaded) / 1e6
    print(
        f"upload of 1 GiB   {speed:6.0f} MB/s   {ratio:.2f} of the speed of cp + sync + sha256sum"
        f"   (>= {LEAST_RATIO:.2f}) {'ok' if ratio >= LEAST_RATIO else 'TOO SLOW'}   {without:.2f} without the sync",
        flush=True,
    )
    return ratio >= LEAST_RATIO


def verification(service: Service, folder: Path) -> bool:
    """Median of jobs that verify everything in 2 GB over median of commands that do; the upload is not in it."""
    path = folder / "verified.ninfer"
    made = folder / "checkpoint"
    made.mkdir()
    convert(checkpoint(made, TENSORS, (4096, 8192)), path)
    shutil.rmtree(made)
    by_command, by_service = [], []
    with Client(service.address, service.token) as client:
        digest = client.push_artifact([path])["digest"]
        request = {"type": "verify", "artifact": digest, "checks": [], "full": True}
        for number in range(REPEATS + 1):
            command = seconds(partial(run_all, [[*CLI, "verify", path]]))
            job = client.wait(client.start(request)["id"])
            if job["state"] != "passed":
                sys.exit(f"the job ended as {job['state']}")
            begin, end = (datetime.fromisoformat(job[name]) for name in ("created_at", "finished_at"))
            if number:  # the first of both compiles
                by_command.append(command)
                by_service.append((end - begin).total_seconds())
    size = path.stat().st_size
    path.unlink()
    ours, theirs = statistics.median(by_service), statistics.median(by_command)
    print(
        f"verify {size / 1e9:.1f} GB: by the service {ours:.2f} s, by the command {theirs:.2f} s   {ours / theirs:.2f}"
        f"   (<= {MOST_RATIO:.2f}) {'ok' if ours <= MOST_RATIO * theirs else 'TOO SLOW'}",
        flush=True,
    )
    return ours <= MOST_RATIO * theirs


def memory(folder: Path, total: int) -> bool:
    """Peak memory of API and worker for one verification of every shape, each in a service of its own."""
    fine = True
    for fmt, shape in shapes(total):
        with serving(folder / "data") as service, Client(service.address, service.token) as client:
            path = folder / "a.ninfer"
            sparse_artifact(path, [(fmt, shape)])
            begin = time.perf_counter()
            artifact = client.push_artifact([path])
            pushed = time.perf_counter()
            job = client.wait(
                client.start({"type": "verify", "artifact": artifact["digest"], "checks": []})["id"]
            )
            api, worker = service.peak_mb()
            good = job["state"] == "passed" and api < API_MB and worker < WORKER_MB
            print(
                f"verify {fmt} {list(shape)}: {job['state']}, pushed in {pushed - begin:.1f} s, verified in "
                f"{time.perf_counter() - pushed:.1f} s   worker {worker:.0f} MB (< {WORKER_MB})   "
                f"API {api:.0f} MB (< {API_MB}) {'ok' if good else 'TOO MUCH'}",
                flush=True,
            )
            fine &= good
            path.unlink()
        shutil.rmtree(folder / "data")
    return fine


def main() -> None:
    """Measure; exit 1 when a limit is not met."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--gigabytes", type=float, default=4, help="size of each artifact")
    parser.add_argument("--only", choices=("upload", "verify", "memory"), help="leave the others out")
    parser.add_argument("--folder", type=Path, help="where the files go (default: the temporary folder)")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=arguments.folder) as name:
        folder = Path(name)
        fine = True
        with serving(folder / "data") as service:
            if arguments.only in (None, "upload"):
                fine &= upload(service, folder)
            if arguments.only in (None, "verify"):
                fine &= verification(service, folder)
        shutil.rmtree(folder / "data")
        if arguments.only in (None, "memory"):
            fine &= memory(folder, int(arguments.gigabytes * 1e9))
    sys.exit(0 if fine else 1)


if __name__ == "__main__":
    main()
