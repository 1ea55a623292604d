"""A service without its HTTP: databases, content and jobs made by its use cases, workers as real processes."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sqlalchemy import select
from sqlalchemy.exc import SQLAlchemyError

from ninfer_core.opening import ArtifactKind
from service import artifacts, checkpoints, jobs, reports
from service.blobs import open_store
from service.contents import NamedDigest, Stored, keep
from service.job_requests import Convert, Output, Verify
from service.parts import Parts
from service.queue import Queue, prepare
from service.records import jobs as job_rows
from service.records import models, workers
from service.records.database import Database, migrate
from service.records.types import new_id
from service.settings import RECORDS_FILE, Settings
from tests.databases import migrated_sqlite
from tests.warm import warm
from tests.worker.nursery import Forked, Nursery

PROJECT = models.DEFAULT_PROJECT
SECONDS = 180.0  # nobody waits that long, unless something is wrong or the machine is busy with much else
_NURSERY = Nursery()
# What differs between two runs of the same thing, and may.
_TIMES = {
    "created_at",
    "started_at",
    "finished_at",
    "admitted_at",
    "record",
}  # a record says how long it took
_TRIES = {"attempts", "last_error"}  # what happened on the way


def until(what: str, reached: Callable[[], Any], seconds: float = SECONDS, pause: float = 0.04) -> Any:
    """What `reached` returns as soon as it is true; fails after `seconds`."""
    deadline = time.monotonic() + seconds
    while True:
        with suppress(SQLAlchemyError):  # a database that a stopped worker keeps shut
            if found := reached():
                return found
        assert time.monotonic() < deadline, f"{what}: not within {seconds:g} s"
        time.sleep(pause)


@dataclass
class Worker:
    """A worker process; its standard error is in a file."""

    process: subprocess.Popen[bytes] | Forked
    log: Path

    @property
    def pid(self) -> int:
        """Of the process."""
        return self.process.pid

    def send(self, number: signal.Signals) -> None:
        """Send a signal, if it is still there."""
        with suppress(ProcessLookupError):
            os.kill(self.pid, number)

    def kill(self) -> None:
        """`kill -9`, and collect it."""
        self.send(signal.SIGKILL)
        self.process.wait(10)

    def wait(self, seconds: float = 30) -> int:
        """Its exit code."""
        return self.process.wait(seconds)

    def text(self) -> str:
        """What it logged."""
        return self.log.read_text()


@dataclass
class Rig:
    """One service."""

    settings: Settings
    parts: Parts
    queue: Queue
    workers: list[Worker] = field(default_factory=list)

    def start(self, **more: str) -> Worker:
        """One more worker."""
        log = self._new_log()
        return self._with(_NURSERY.start({**os.environ, **self.settings.environment(), **more}, log), log)

    def start_anew(self) -> Worker:
        """One more worker, started as the command does it: it loads and proves everything itself."""
        warm()
        log = self._new_log()
        with log.open("wb") as stderr:
            process = subprocess.Popen(
                [sys.executable, "-P", "-m", "worker"],
                env={**os.environ, **self.settings.environment()},
                stderr=stderr,
                stdin=subprocess.DEVNULL,
            )
        return self._with(process, log)

    def _new_log(self) -> Path:
        log = self.settings.data / f"worker-{len(self.workers)}.log"
        log.touch()
        return log

    def _with(self, process: subprocess.Popen[bytes] | Forked, log: Path) -> Worker:
        worker = Worker(process, log)
        self.workers.append(worker)
        return worker

    def started(self) -> Worker:
        """One more worker, ready to work."""
        worker = self.start()
        until(
            "the worker is ready",
            lambda: "worker.ready" in worker.text() or worker.process.poll() is not None,
        )
        assert worker.process.poll() is None, worker.text()
        return worker

    def store(self, path: Path) -> Stored:
        """The content of a file."""
        with self.parts.blobs.writer() as writer, path.open("rb") as file:
            while piece := file.read(1 << 20):
                writer.write(piece)
            return keep(self.parts, PROJECT, writer)

    def push(self, path: Path, kind: ArtifactKind = "ninfer") -> models.Artifact:
        """An artifact of one file."""
        return artifacts.push_one(self.parts, PROJECT, kind, path.name, self.store(path))[0]

    def checkpoint(self, folder: Path) -> str:
        """Every file of a folder; its id."""
        files = [NamedDigest(path.name, self.store(path).digest) for path in sorted(folder.iterdir())]
        return checkpoints.push(self.parts, PROJECT, files, repository=None, revision=None)[0].id

    def job(self, request: jobs.Asked) -> str:
        """A new job; its id."""
        return jobs.create(self.parts, PROJECT, request, jobs.Sent("sha256:" + "0" * 64, None)).id

    def verify(
        self,
        digest: str,
        checkpoint: str | None = None,
        document: Mapping[str, Any] | None = None,
        checks: tuple[str, ...] = (),
        **more: Any,
    ) -> str:
        """A new verification; its id. Nothing is taken over from an earlier one unless `full` is False."""
        recipe = None if document is None else json.dumps(document).encode()
        given = {} if checkpoint is None else {"base": checkpoint}
        return self.job(Verify(digest, checks, given, {}, recipe, **{"full": True, **more}))

    def convert(
        self, checkpoint: str, document: Mapping[str, Any], name: str = "out.ninfer", revision: int = 2
    ) -> str:
        """A new conversion; its id."""
        recipe = json.dumps(document).encode()
        return self.job(Convert(recipe, {"base": checkpoint}, Output(revision, None, name)))

    def row(self, job_id: str) -> models.Job:
        """The job as it is now."""
        with self.parts.database.read() as session:
            job = job_rows.get(session, job_id)
        assert job is not None
        return job

    def finished(self, job_id: str, seconds: float = SECONDS) -> models.Job:
        """The job, once it is over."""
        found: models.Job = until(
            f"job {job_id} is over",
            lambda: job if (job := self.row(job_id)).state in job_rows.FINAL else None,
            seconds,
        )
        return found

    def shards_done(self, job_id: str) -> int:
        """How many shards are done."""
        with self.parts.database.read() as session:
            return sum(shard.done for shard in job_rows.shards(session, job_id))

    def beats(self) -> list[models.Worker]:
        """The workers' rows."""
        with self.parts.database.read() as session:
            return workers.all(session)

    def report(self, job_id: str) -> dict[str, Any]:
        """The report of a run, put together from its rows as the API does."""
        with self.parts.database.read() as session:
            run = session.scalars(select(models.Run).where(models.Run.job_id == job_id)).one()
            pairs = session.execute(
                select(models.Object, models.Result)
                .join(models.Result, models.Result.ordinal == models.Object.ordinal)
                .where(models.Object.artifact_id == run.artifact_id, models.Result.run_id == run.id)
                .order_by(models.Object.ordinal)
            ).all()
            objects = reports.entries(session, [(item, result) for item, result in pairs])
            notes = select(models.Finding).where(models.Finding.run_id == run.id).order_by(models.Finding.seq)
            findings = [row.document for row in session.scalars(notes)]
        return {**run.report, "objects": objects, "findings": findings}

    def rows(self, job_id: str) -> dict[str, Any]:
        """Every row that a job leaves behind, without ids and times; equal for two jobs that asked the same."""
        found: dict[str, Any] = {}
        with self.parts.database.read() as session:
            job = job_rows.get(session, job_id)
            assert job is not None
            tables: list[tuple[Any, Any]] = [
                (models.Run, models.Run.job_id == job_id),
                (models.Result, models.Result.run_id == job_id),
                (models.Finding, models.Finding.run_id == job_id),
                (models.Conversion, models.Conversion.job_id == job_id),
                (models.ConversionObject, models.ConversionObject.conversion_id == job_id),
                (models.ConversionFinding, models.ConversionFinding.conversion_id == job_id),
                (models.Comparison, models.Comparison.job_id == job_id),
                (models.ComparisonObject, models.ComparisonObject.comparison_id == job_id),
                (models.ComparisonFinding, models.ComparisonFinding.comparison_id == job_id),
                (models.Shard, models.Shard.job_id == job_id),
                (models.Artifact, models.Artifact.id == job.artifact_id),
                (models.ArtifactFile, models.ArtifactFile.artifact_id == job.artifact_id),
                (models.Object, models.Object.artifact_id == job.artifact_id),
                (models.ObjectIdentity, models.ObjectIdentity.artifact_id == job.artifact_id),
                (models.Job, models.Job.id == job_id),
            ]
            for model, condition in tables:
                key = list(model.__table__.primary_key.columns)
                rows = session.scalars(select(model).where(condition).order_by(*key)).all()
                found[model.__tablename__] = [_values(row) for row in rows]
        cleaned: dict[str, Any] = json.loads(json.dumps(found).replace(job_id, "<job>"))
        return cleaned

    def events(self, job_id: str) -> list[tuple[int, str, str]]:
        """(number, type, key) of what the job said."""
        with self.parts.database.read() as session:
            return [(row.seq, row.type, row.key) for row in job_rows.events(session, job_id, 0, 10_000)]

    def said(self, job_id: str) -> list[tuple[str, dict[str, Any]]]:
        """(type, data) of what the job said."""
        with self.parts.database.read() as session:
            return [(row.type, row.data) for row in job_rows.events(session, job_id, 0, 10_000)]

    def close(self) -> None:
        """End every worker."""
        for worker in self.workers:
            worker.send(signal.SIGKILL)
            worker.process.wait(10)
        self.queue.close()
        self.parts.database.close()


def _values(row: Any) -> dict[str, Any]:
    values = {column.key: getattr(row, column.key) for column in type(row).__mapper__.columns}
    return {name: value for name, value in values.items() if name not in _TIMES | _TRIES}


@contextmanager
def rig(data: Path, url: str | None = None, **settings: Any) -> Iterator[Rig]:
    """A service in `data`, with small shards, quick heartbeats and short patience."""
    values: dict[str, Any] = {
        "data": data,
        "database_url": url,
        "threads": 2,
        "shard_bytes": 1 << 20,
        "heartbeat_seconds": 0.2,
        "dead_after_seconds": 2.0,
        "log_json": True,
        **settings,
    }
    made = Settings(**values)
    data.mkdir(exist_ok=True)
    if url is None and not (data / RECORDS_FILE).exists():
        (data / RECORDS_FILE).write_bytes(migrated_sqlite())
    migrate(made.records_url)
    prepare(made.engine_url)
    database = Database(made.records_url)
    queue = Queue(made.engine_url)
    built = Rig(made, Parts(made, database, open_store(made), queue), queue)
    try:
        yield built
    finally:
        built.close()


__all__ = ["PROJECT", "Rig", "Worker", "new_id", "rig", "until"]
