"""A crowd at the service: 200 small verifications and 4 large ones of the bulk lane at once, listeners, thousands of requests.

`python -m benchmarks.load [--only sqlite|postgresql] [--small N] [--bulk N] [--gigabytes N] [--streams N] [--requests N]
[--json FILE] [--folder DIR]`. One `ninfer-gate serve` with its one worker, asked over HTTP, on SQLite in the journal mode
that it chooses and on a PostgreSQL that brings to the disk what it commits. A small job waits from its row (`created_at`) until
it begins (`started_at`); it is read from that moment on, for it needs no place among the shards. The limit is on that; how long
it takes from the request is said beside it. Every stream must tell all events of its job, without a gap. Memory is the resident memory of the API while
requests of many kinds go on; its growth is that between the second quarter and the last. Exits 1 when a limit is not met.
"""

import argparse
import asyncio
import json
import os
import re
import signal
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import httpx

from benchmarks.memory import sparse_artifact
from benchmarks.service import Service, serving
from benchmarks.timing import Row, Table
from service.client import Client
from tests.databases import PostgresServer

WAIT_SECONDS = 5.0
GROWTH_MB = 4.0
ARTIFACTS = 40  # different ones among the small
CONNECTIONS = 100
FINAL = ("passed", "failed", "incomplete", "error", "cancelled")
LONGEST = 900.0


@dataclass
class Asked:
    """A job, and when it was asked for."""

    id: str
    at: float
    answered: float
    bulk: bool


@dataclass
class Crowd:
    """What came of one rush."""

    jobs: list[Asked] = field(default_factory=list)
    rows: dict[str, dict[str, Any]] = field(default_factory=dict)
    errors: Counter[str] = field(default_factory=Counter)
    streams: int = 0

    def seconds(self, since: Callable[[Asked, dict[str, Any]], float], until: str) -> list[float]:
        """From a moment of each small job until another, sorted."""
        small = [(job, self.rows[job.id]) for job in self.jobs if not job.bulk]
        return sorted(_moment(row[until]) - since(job, row) for job, row in small)


def _moment(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


def quantile(values: Sequence[float], share: float) -> float:
    """The value that so large a share does not exceed."""
    return values[min(len(values) - 1, int(share * len(values)))]


class Http:
    """Requests with the token, as many at a time as there are connections; what fails is counted by its kind."""

    def __init__(self, service: Service, crowd: Crowd) -> None:
        self._crowd = crowd
        self.client = httpx.AsyncClient(
            base_url=service.address,
            headers={"Authorization": f"Bearer {service.token}"},
            timeout=httpx.Timeout(60.0, pool=None),
            limits=httpx.Limits(max_connections=CONNECTIONS, max_keepalive_connections=CONNECTIONS),
        )

    async def json(self, method: str, path: str, **more: Any) -> Any:
        """The answer's document; None when there is none."""
        try:
            answer = await self.client.request(method, path, **more)
        except httpx.HTTPError as error:
            self._crowd.errors[type(error).__name__] += 1
            return None
        if answer.is_error:
            self._crowd.errors[f"{answer.status_code} {answer.json().get('code')}"] += 1
            return None
        return answer.json()


async def ask(http: Http, crowd: Crowd, artifact: str, *, bulk: bool) -> None:
    """Start one verification of everything."""
    body = {"type": "verify", "artifact": artifact, "full": True, "lane": "bulk" if bulk else "interactive"}
    at = time.time()
    job = await http.json("POST", "/v1/jobs", json=body)
    if job is not None:
        crowd.jobs.append(Asked(job["id"], at, time.time(), bulk))


async def listen(http: Http, crowd: Crowd, job: Asked) -> None:
    """Hear a job to its end: events numbered without a gap, the last of them its final state."""
    expected, data = 1, ""
    try:
        async with http.client.stream("GET", f"/v1/jobs/{job.id}/events", timeout=LONGEST) as answer:
            async for line in answer.aiter_lines():
                if line.startswith("id:"):
                    if int(line[3:]) != expected:
                        crowd.errors["event out of order"] += 1
                    expected += 1
                elif line.startswith("data:"):
                    data = line[5:]
    except httpx.HTTPError as error:
        crowd.errors[f"stream {type(error).__name__}"] += 1
        return
    if json.loads(data or "{}").get("state") not in FINAL:
        crowd.errors["stream without an end"] += 1
        return
    crowd.streams += 1


async def rush(service: Service, small: Sequence[str], large: str, numbers: argparse.Namespace) -> Crowd:
    """All at once; then wait for the end of everything."""
    crowd = Crowd()
    http = Http(service, crowd)
    begin = time.time()
    asking = [asyncio.create_task(ask(http, crowd, large, bulk=True)) for _ in range(numbers.bulk)]
    asking += [
        asyncio.create_task(ask(http, crowd, small[number % len(small)], bulk=False))
        for number in range(numbers.small)
    ]
    hearing: list[asyncio.Task[None]] = []
    while len(hearing) < numbers.streams and not all(task.done() for task in asking):
        await asyncio.sleep(0.01)
        hearing += [
            asyncio.create_task(listen(http, crowd, job))
            for job in crowd.jobs[len(hearing) : numbers.streams]
        ]
    await asyncio.gather(*asking)
    waiting = {job.id for job in crowd.jobs}
    while waiting and time.time() - begin < LONGEST:
        await asyncio.sleep(3.0)  # a page of so many jobs costs as much as several of them
        for id_ in await _ended(http, waiting):
            waiting.discard(id_)
    await asyncio.wait_for(asyncio.gather(*hearing), 60.0)
    crowd.errors["not over"] += len(waiting)
    for job in crowd.jobs:
        row = await http.json("GET", f"/v1/jobs/{job.id}")
        if row is not None:
            crowd.rows[job.id] = row
            if row["state"] != "passed":
                crowd.errors[f"job {row['state']}"] += 1
    await http.client.aclose()
    return crowd


async def _ended(http: Http, waiting: set[str]) -> list[str]:
    """Those that are over: a page of what is queued or runs holds all others, as long as they are no more than that."""
    open_: set[str] = set()
    for state in ("queued", "running"):
        page = await http.json("GET", "/v1/jobs", params={"state": state, "limit": 1000})
        if page is None:
            return []
        open_ |= {row["id"] for row in page["items"]}
    return [id_ for id_ in waiting if id_ not in open_]


async def requests(service: Service, crowd: Crowd, count: int) -> list[float]:
    """Resident memory of the API in MB, at a hundred moments of so many requests of many kinds."""
    http = Http(service, crowd)
    job = next(job for job in crowd.jobs if not job.bulk)
    artifact = crowd.rows[job.id]["artifact"]
    paths = (
        f"/v1/jobs/{job.id}",
        "/v1/jobs?limit=20",
        f"/v1/artifacts/{artifact}",
        f"/v1/artifacts/{artifact}/objects",
        f"/v1/runs/{job.id}",
        f"/v1/runs/{job.id}/findings",
        "/v1/artifacts?limit=20",
        "/readyz",
        f"/v1/jobs/{job.id}/events?after=0",
    )
    found: list[float] = []
    number = 0

    async def some() -> None:
        nonlocal number
        while number < count:
            path = paths[number % len(paths)]
            number += 1
            if number % max(1, count // 100) == 0:
                found.append(resident_mb(service.process.pid))
            answer = await http.client.get(path)
            if answer.is_error:
                crowd.errors[f"{answer.status_code} {path.partition('?')[0]}"] += 1

    await asyncio.gather(*(some() for _ in range(8)))
    await http.client.aclose()
    return found


def resident_mb(pid: int) -> float:
    """Resident memory of a process."""
    found = re.search(r"VmRSS:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    return int(found[1]) / 1000 if found else 0.0


def growth(memory: Sequence[float]) -> float:
    """MB between the medians of the second quarter and of the last: the first is for caches and pools to fill."""
    quarter = max(1, len(memory) // 4)
    return statistics.median(memory[-quarter:]) - statistics.median(memory[quarter : 2 * quarter])


@contextmanager
def room(parent: Path | None) -> Iterator[Path]:
    """A folder for a while."""
    with tempfile.TemporaryDirectory(dir=parent) as name:
        os.chmod(name, 0o711)  # noqa: S103  the server of PostgreSQL is another user, and goes through it
        yield Path(name)


@contextmanager
def database(kind: str, folder: Path) -> Iterator[str | None]:
    """The address of a fresh one; None for that of the data folder."""
    if kind == "sqlite":
        yield None
        return
    server = PostgresServer(
        folder,
        fsync="on",
        synchronous_commit="on",
        full_page_writes="on",
        autovacuum="on",
        shared_buffers="128MB",
    )
    try:
        yield server.url(server.create())
    finally:
        server.stop()


def measure(kind: str, folder: Path, numbers: argparse.Namespace, table: Table) -> bool:
    """One database."""
    folder.mkdir()
    with database(kind, folder) as url, serving(folder / "data", url) as service:
        with Client(service.address, service.token, 600.0) as client:
            small = []
            for number in range(ARTIFACTS):
                path = folder / f"{number}.ninfer"
                sparse_artifact(path, [("Q4G64_F16S", (64 + 8 * number, 1024))])
                small.append(client.push_artifact([path])["digest"])
            path = folder / "large.ninfer"
            sparse_artifact(path, [("Q4G64_F16S", (int(numbers.gigabytes * 1e9) // 17 // 512, 16384))])
            large = client.push_artifact([path])["digest"]
            path.unlink()
            for digest in (large, small[0]):  # what is compiled, loaded and read for the first time
                client.wait(client.start({"type": "verify", "artifact": digest, "full": True})["id"])
        crowd = asyncio.run(rush(service, small, large, numbers))
        memory = asyncio.run(requests(service, crowd, numbers.requests))
        api, worker = service.peak_mb()
    return _told(kind, crowd, memory, numbers, table, f"peak: API {api:.0f} MB, worker {worker:.0f} MB")


def _told(
    kind: str, crowd: Crowd, memory: list[float], numbers: argparse.Namespace, table: Table, peak: str
) -> bool:
    failed = {name: count for name, count in crowd.errors.items() if count}
    bad, good = sum(failed.values()), numbers.small + numbers.bulk + numbers.streams + numbers.requests
    rows = []
    if crowd.rows and not failed:
        asked = crowd.seconds(lambda job, _: job.at, "started_at")
        for name, values, target in (
            ("from its request until it begins", asked, None),
            (
                "from created until it begins",
                crowd.seconds(lambda _, row: _moment(row["created_at"]), "started_at"),
                WAIT_SECONDS,
            ),
            ("from its request until it is over", crowd.seconds(lambda job, _: job.at, "finished_at"), None),
        ):
            note = f"median {quantile(values, 0.5):.2f} s, longest {values[-1]:.2f} s"
            rows.append(
                Row(
                    f"{kind}: p95 s {name}",
                    note.partition(",")[0],
                    quantile(values, 0.95),
                    target,
                    "<=",
                    note,
                )
            )
        span = max(_moment(crowd.rows[job.id]["finished_at"]) for job in crowd.jobs if not job.bulk)
        rate = numbers.small / (span - min(job.at for job in crowd.jobs))
        bulk = [_moment(crowd.rows[job.id]["finished_at"]) - job.at for job in crowd.jobs if job.bulk]
        note = (
            f"{rate:.0f} small jobs a second; the last large one was over after {max(bulk, default=0):.1f} s"
        )
        rows.append(Row(f"{kind}: small jobs a second", f"{rate:.1f}/s", rate, None, ">=", note))
    grown = growth(memory)
    told = f"{memory[0]:.0f} to {memory[-1]:.0f} MB; {peak}"
    rows += [
        Row(
            f"{kind}: share of all answers that were no error",
            "",
            good / (good + bad),
            1.0,
            ">=",
            str(failed or ""),
        ),
        Row(f"{kind}: streams heard to their end", "", crowd.streams, numbers.streams, ">=", ""),
        Row(
            f"{kind}: MB that the API grows by, {numbers.requests} requests",
            "",
            max(grown, 0.01),
            GROWTH_MB,
            "<=",
            told,
        ),
    ]
    for row in rows:
        table.add(row)
        if row.note:
            print(f"    {row.note}", flush=True)
    return all(row.verdict in ("", "met") for row in rows)


def main() -> None:
    """Measure; exit 1 when a limit is not met."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", choices=("sqlite", "postgresql"), help="leave the other out")
    parser.add_argument("--small", type=int, default=200, help="interactive jobs")
    parser.add_argument("--bulk", type=int, default=4, help="bulk jobs")
    parser.add_argument("--gigabytes", type=float, default=2, help="size of what a bulk job verifies")
    parser.add_argument("--streams", type=int, default=50, help="event streams meanwhile")
    parser.add_argument("--requests", type=int, default=10_000, help="requests while memory is watched")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the rows to FILE")
    parser.add_argument("--folder", type=Path, help="where the files go (default: the temporary folder)")
    numbers = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # what was started is ended then too
    table = Table("a crowd at the service")
    fine = True
    for kind in ("sqlite", "postgresql"):
        if numbers.only in (None, kind):
            with room(numbers.folder) as folder:
                fine &= measure(kind, folder / kind, numbers, table)
    if numbers.json:
        table.write(numbers.json)
    sys.exit(0 if fine else 1)


if __name__ == "__main__":
    main()
