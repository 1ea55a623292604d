"""Two million per-tensor results on SQLite and on PostgreSQL: how long the questions take that people ask.

`python -m benchmarks.provenance [--results N] [--folder DIR] [--only sqlite|postgresql]`. The rows are those that
workers write, built in bulk; the questions are asked of the service itself, over HTTP, its pages included. PostgreSQL is
the embedded one of the tests and runs as an ordinary user. Exits 1 when a median is above its limit.
"""

import argparse
import hashlib
import json
import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Protocol

import httpx
import psycopg

from benchmarks.listening import listening
from ninfer_core.verify.checks import CHECKS
from service import auth
from service.api.app import create_app
from service.blobs import BlobStore
from service.records.database import Database, migrate
from service.records.models import DEFAULT_PROJECT
from service.records.types import name_key
from service.settings import Settings
from tests.databases import PostgresServer

RESULTS = 2_000_000
LARGE = 100_000  # objects of the one artifact with many
OBJECTS = 1_000  # objects of each of the others
RUNS_EACH = 5
LIMIT_MS = 50.0
REPEATS = 41
PROFILE = "MAXABS_F16_RECIP_RNE_V1"
FORMATS = ("Q4G64_F16S", "Q5G64_F16S", "Q6G64_F16S", "W8G32_F16S")
BEGIN = datetime(2026, 1, 1, tzinfo=UTC)

Row = tuple[Any, ...]


class NoQueue:
    """Nothing here starts a job."""

    def enqueue(self, workflow: str, id: str, *args: str) -> None:  # noqa: A002  the engine's own word
        """Never called."""
        raise RuntimeError(f"{workflow} {id} {args}")


class Store(Protocol):
    """A database to be filled."""

    def fill(self, table: str, columns: Sequence[str], rows: Iterable[Row]) -> None:
        """Insert rows in bulk."""
        ...

    def done(self) -> None:
        """Everything is there: let the planner know."""
        ...


class Sqlite:
    """One file, written without a journal."""

    def __init__(self, path: Path) -> None:
        self._file = sqlite3.connect(path)
        for pragma in ("journal_mode = OFF", "synchronous = OFF", "cache_size = -600000"):
            self._file.execute(f"PRAGMA {pragma}")

    def fill(self, table: str, columns: Sequence[str], rows: Iterable[Row]) -> None:
        """See `Store.fill`."""
        named = ", ".join(f'"{column}"' for column in columns)
        marks = ", ".join("?" * len(columns))
        spelled = (tuple(map(self._spelled, row)) for row in rows)
        self._file.executemany(f"INSERT INTO {table} ({named}) VALUES ({marks})", spelled)  # noqa: S608  our own names
        self._file.commit()

    @staticmethod
    def _spelled(value: Any) -> Any:
        return value.strftime("%Y-%m-%d %H:%M:%S.%f") if isinstance(value, datetime) else value

    def done(self) -> None:
        """See `Store.done`."""
        self._file.execute("ANALYZE")
        self._file.commit()
        self._file.close()


class Postgresql:
    """One database, filled by COPY."""

    def __init__(self, url: str) -> None:
        self._connection = psycopg.connect(url)

    def fill(self, table: str, columns: Sequence[str], rows: Iterable[Row]) -> None:
        """See `Store.fill`."""
        named = ", ".join(f'"{column}"' for column in columns)
        with self._connection.cursor() as cursor, cursor.copy(f"COPY {table} ({named}) FROM STDIN") as copy:
            for row in rows:
                copy.write_row(row)
        self._connection.commit()

    def done(self) -> None:
        """See `Store.done`."""
        self._connection.autocommit = True
        self._connection.execute("VACUUM (ANALYZE)")
        self._connection.close()


@dataclass(frozen=True)
class Artifact:
    """One artifact to be: its number, and how many objects and runs it has."""

    number: int
    objects: int
    runs: int

    @property
    def id(self) -> str:
        """Its id."""
        return _id("a", self.number)

    @property
    def digest(self) -> str:
        """Its digest."""
        return _digest(f"artifact {self.number}")

    def run_id(self, run: int) -> str:
        """The id of one of its runs."""
        return _id("b", self.number * 1_000 + run)

    def identity(self, ordinal: int) -> str:
        """Every second tensor is one that neighbouring artifacts hold, too."""
        whose = self.number if ordinal % 2 else self.number // 10
        return _digest(f"tensor {whose} {ordinal}")


def plan(results: int) -> list[Artifact]:
    """One artifact with many objects, and as many with a thousand as it takes."""
    large = min(LARGE, results // 2)
    rest = max(1, (results - large) // (OBJECTS * RUNS_EACH))
    return [Artifact(0, large, 1), *(Artifact(number, OBJECTS, RUNS_EACH) for number in range(1, rest + 1))]


def build(store: Store, artifacts: Sequence[Artifact]) -> int:
    """Every row; how many of them are results."""
    project = DEFAULT_PROJECT
    store.fill(
        "artifacts",
        _ARTIFACT,
        (
            (one.id, project, one.digest, "ninfer", f"{one.number}.ninfer", 10**9, "pushed", "listed", 2, "m", "w", one.objects, BEGIN)
            for one in artifacts
        ),
    )  # fmt: skip
    store.fill(
        "artifact_files",
        ("artifact_id", "ordinal", "name", "sha256", "bytes", "project_id"),
        ((one.id, 0, f"{one.number}.ninfer", one.digest[7:], 10**9, project) for one in artifacts),
    )
    store.fill("objects", _OBJECT, (row for one in artifacts for row in _objects(one)))
    store.fill(
        "object_identities",
        ("artifact_id", "ordinal", "identity", "project_id"),
        (
            (one.id, ordinal, one.identity(ordinal), project)
            for one in artifacts
            for ordinal in range(one.objects)
        ),
    )
    store.fill("edges", _EDGE, (row for one in artifacts for row in _edges(one)))
    runs = [(one, run) for one in artifacts for run in range(one.runs)]
    store.fill("jobs", _JOB, (_job(one, run) for one, run in runs))
    store.fill("runs", _RUN, (_run(one, run) for one, run in runs))
    store.fill("results", _RESULT, (row for one, run in runs for row in _results(one, run)))
    store.done()
    return sum(one.objects for one, _ in runs)


_ARTIFACT = (
    *("id", "project_id", "digest", "kind", "entry", "bytes", "origin", "listing", "revision", "model_id"),
    *("weights_id", "object_count", "created_at"),
)
_OBJECT = (
    *("artifact_id", "ordinal", "name", "name_key", "kind", "format", "layout", "entry"),
    "project_id",
)
_EDGE = (
    *("artifact_id", "kind", "basis", "key", "value", "value_key", "role", "origin_id", "created_at"),
    "project_id",
)
_JOB = (
    *(
        "id",
        "type",
        "state",
        "request",
        "request_digest",
        "artifact_id",
        "cancel_requested",
        "objects",
        "bytes",
    ),
    *("created_at", "started_at", "finished_at", "project_id"),
)
_RUN = (
    *("id", "job_id", "artifact_id", "checks", "recipe_digest", "checkpoints", "verdict", "report", "errors"),
    *("advisories", "canonical", "full", "created_at", "finished_at", "project_id"),
)
_RESULT = (
    *("run_id", "ordinal", "outcome", "evidence", "sha256", "identity", "metrics", "nmse", "coverage"),
    *("reuse_key", "project_id"),
)


def _objects(one: Artifact) -> Iterator[Row]:
    entry = json.dumps({"encoding": None, "shape": [4096, 4096], "offset": 0, "bytes": 8 << 20})
    for ordinal in range(one.objects):
        name = f"text/layers/{ordinal // 12}/part_{ordinal % 12}"
        fmt = FORMATS[ordinal % 4]
        yield (
            one.id,
            ordinal,
            name,
            name_key(name),
            "tensor",
            fmt,
            "row-split-k128-v1",
            entry,
            DEFAULT_PROJECT,
        )


def _edges(one: Artifact) -> Iterator[Row]:
    facts = [("encoder_profile", PROFILE), ("recipe", _digest(f"recipe {one.number % 50}"))]
    facts += [
        ("tool_version", "0.1.0"),
        ("target", "m/w"),
        ("checkpoint", _digest(f"weights {one.number % 90}")),
    ]
    facts += [("format", name) for name in FORMATS]
    for kind, value in facts:
        for basis in ("claimed", "verified"):
            key = name_key(name_key(value))
            shared = (value, name_key(value), "", one.run_id(0), BEGIN, DEFAULT_PROJECT)
            yield one.id, kind, basis, key, *shared


def _job(one: Artifact, run: int) -> Row:
    begin = BEGIN + timedelta(minutes=run)
    moments = (begin, begin, begin + timedelta(seconds=9))
    counted = (False, one.objects, 10**9)
    return (
        *(one.run_id(run), "verify", "passed", '{"type":"verify"}', _digest("request"), one.id),
        *counted,
        *moments,
        DEFAULT_PROJECT,
    )


def _run(one: Artifact, run: int) -> Row:
    extent = {"full": one.objects, "sampled": 0, "reused": 0, "none": 0, "total": one.objects}
    checks = [
        {
            "name": name,
            "outcome": "passed",
            "coverage": "full",
            "objects": one.objects,
            "bytes": 1,
            "reason": None,
        }
        for name in CHECKS
    ]
    report = {
        "schema": "ninfer-gate/report/1",
        "verdict": "passed",
        "artifact": {"kind": "ninfer", "content_root": _digest("root"), "files": []},
        "recipe": None,
        "target": None,
        "sample": None,
        "checks": checks,
        "coverage": {"objects": extent, "bytes": extent},
        "unlisted_findings": {},
        "versions": {"ninfer_gate": "0.1.0", "encoder_profiles": {PROFILE: 1}},
    }
    id_, begin = one.run_id(run), BEGIN + timedelta(minutes=run)
    return (
        *(id_, id_, one.id, json.dumps(list(CHECKS)), _digest(f"recipe {one.number % 50}"), "{}", "passed"),
        *(json.dumps(report), 0, 0, False, False, begin, begin, DEFAULT_PROJECT),
    )


def _results(one: Artifact, run: int) -> Iterator[Row]:
    error = {"sqnr_db": 30.0, "max_abs_error": 0.01, "rmse": 0.001, "cosine": 0.999}
    metrics = json.dumps({"groups": 262_144, "zero_groups": 0, "scale_largest": 0.01, "error": error})
    id_ = one.run_id(run)
    for ordinal in range(one.objects):
        identity = one.identity(ordinal)
        nmse = (ordinal * 7_919 % 100_003) / 1e8
        key = f"sha256:{hashlib.sha256(identity.encode()).hexdigest()}" if run == 0 else None
        outcome = "passed" if ordinal % 997 else "failed"
        yield (
            *(id_, ordinal, outcome, "derived-exact", identity[7:], identity, metrics, nmse, "full"),
            *(key, DEFAULT_PROJECT),
        )


def _id(kind: str, number: int) -> str:
    return f"019391a2{kind}{number:023x}"


def _digest(text: str) -> str:
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


@dataclass(frozen=True)
class Asking:
    """A service over the filled database."""

    http: httpx.Client
    cookie: dict[str, str]

    def median_ms(self, paths: Sequence[str], repeats: int) -> float:
        """Median over requests that go round `paths`; each answer must be one."""
        times = []
        for number in range(repeats + len(paths)):
            begin = time.perf_counter()
            answer = self.http.get(paths[number % len(paths)], headers=self.cookie)
            times.append((time.perf_counter() - begin) * 1e3)
            answer.raise_for_status()
        return statistics.median(times[len(paths) :])


@contextmanager
def asking(folder: Path, url: str) -> Iterator[Asking]:
    """The service, with a token and a page session."""
    settings = Settings(data=folder, database_url=url)
    database = Database(url)
    token = auth.new_token(database)
    session = auth.open_session(database, token).secret
    app = create_app(settings, database, BlobStore(folder), NoQueue())
    try:
        with listening(app) as address:
            headers = {"Authorization": f"Bearer {token}"}
            with httpx.Client(base_url=address, headers=headers, timeout=120) as http:
                yield Asking(http, {"Cookie": f"{auth.COOKIE}={session}"})
    finally:
        database.close()


def questions(artifacts: Sequence[Artifact]) -> dict[str, list[str]]:
    """What is asked, each of several things in turn."""
    some = artifacts[1 :: max(1, len(artifacts) // 8)][:8]
    large = artifacts[0]
    pages = [f"/runs/{one.run_id(0)}?outcome=all" for one in some]
    return {
        "run page, a thousand objects": pages,
        "run page, the large artifact": [f"/runs/{large.run_id(0)}?outcome=all"],
        "run over the API": [f"/v1/runs/{one.run_id(1)}" for one in some],
        "artifacts by encoder profile": [f"/v1/provenance?encoder_profile={PROFILE}&limit=50"],
        "artifacts by profile and checkpoint": [
            f"/v1/provenance?encoder_profile={PROFILE}&checkpoint={_digest(f'weights {number}')}&limit=50"
            for number in range(8)
        ],
        "worst 20 of a thousand": [f"/v1/runs/{one.run_id(1)}/objects?order=worst&limit=20" for one in some],
        "worst 20 of the large artifact": [f"/v1/runs/{large.run_id(0)}/objects?order=worst&limit=20"],
        "where else a tensor lies": [
            f"/v1/provenance/tensors/{one.identity(2 * number)}" for number, one in enumerate(some)
        ],
        "provenance of an artifact": [f"/v1/provenance/artifacts/{one.digest}" for one in some],
    }


def measure(name: str, folder: Path, url: str, store: Store, results: int) -> tuple[str, dict[str, float]]:
    """Heading and medians in milliseconds."""
    begin = time.perf_counter()
    artifacts = plan(results)
    count = build(store, artifacts)
    took = time.perf_counter() - begin
    print(f"{name}: {count:,} results of {len(artifacts):,} artifacts built in {took:.0f} s", file=sys.stderr)
    with asking(folder, url) as service:
        medians = {what: service.median_ms(paths, REPEATS) for what, paths in questions(artifacts).items()}
    return f"{name}, built in {took:.0f} s", medians


def databases(folder: Path, only: str | None) -> Iterator[tuple[str, str, Callable[[], Store]]]:
    """Name, address and opener of each kind, migrated."""
    if only in (None, "sqlite"):
        path = folder / "records.sqlite"
        migrate(f"sqlite:///{path}")
        yield "SQLite", f"sqlite:///{path}", lambda: Sqlite(path)
    if only in (None, "postgresql"):
        server = PostgresServer()
        try:
            url = server.url(server.migrated())
            yield "PostgreSQL", url, lambda: Postgresql(url)
        finally:
            server.stop()


def main() -> int:
    """Build, ask, print a table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--results", type=int, default=RESULTS)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--only", choices=("sqlite", "postgresql"))
    given = parser.parse_args()
    columns: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory(dir=given.folder) as name:
        for kind, url, opened in databases(Path(name), given.only):
            heading, medians = measure(kind, Path(name) / kind, url, opened(), given.results)
            columns[heading] = medians
    print(f"| question | {' | '.join(columns)} |")
    print(f"|---|{'---:|' * len(columns)}")
    for what in next(iter(columns.values())):
        print(f"| {what} | {' | '.join(f'{medians[what]:.1f} ms' for medians in columns.values())} |")
    slow = [what for medians in columns.values() for what, median in medians.items() if median > LIMIT_MS]
    if slow:
        print(f"above {LIMIT_MS:.0f} ms: {', '.join(slow)}", file=sys.stderr)
    return 1 if slow else 0


if __name__ == "__main__":
    sys.exit(main())
