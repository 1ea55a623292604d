"""What this worker counts and times of its work, and what its log lines and spans of it are about."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import structlog
from sqlalchemy.exc import SQLAlchemyError

from service import logs, metrics, tracing
from service.queue import COMPARE_SHARD, CONVERT_SHARD, LIST_OBJECTS, VERIFY_SHARD
from service.records import gauges
from service.records.database import Database
from service.records.models import Job

log = structlog.get_logger()

_SHARDS: Final = frozenset((VERIFY_SHARD, CONVERT_SHARD, COMPARE_SHARD))
_NO_CHECKS: Final = "none"


@contextmanager
def workflow(name: str, *args: str | int) -> Iterator[None]:
    """Around the workflow `name`: its lines say which artifact, job or shard they are about."""
    facts = {"artifact" if name == LIST_OBJECTS else "job": args[0] if args else None}
    if name in _SHARDS and len(args) > 1:
        facts["shard"] = args[1]
    with logs.about(**facts), tracing.span(name, **{key: value for key, value in facts.items() if value}):
        yield


@contextmanager
def shard(job: Job, number: int, size: int) -> Iterator[None]:
    """Around the work on a shard, on the thread that does it; counted when it comes to its end."""
    begin = time.perf_counter()
    with (
        logs.about(job=job.id, shard=number),
        tracing.span("shard", job=job.id, shard=number, bytes=size),
    ):
        yield
    labels = kind(job)
    metrics.SHARD_BYTES.labels(*labels).inc(size)
    metrics.SHARD_SECONDS.labels(*labels).inc(time.perf_counter() - begin)


def kind(job: Job) -> tuple[str, str]:
    """(work, checks): one pass over a shard makes all checks of a verification, so they have their seconds in common."""
    checks = job.request.get("checks") if isinstance(job.request, dict) else None
    return job.type, "+".join(sorted(map(str, checks))) if checks else _NO_CHECKS


def ended(database: Database, job_id: str) -> None:
    """Count a job whose workflow has just come to its end; one that goes on in another epoch is none of these."""
    try:
        with database.read() as session:
            job = gauges.over(session, job_id)
    except SQLAlchemyError as error:  # a number in a chart is no reason to do work again
        log.warning("job.not_counted", job=job_id, error=str(error).partition("\n")[0])
        return
    if job is None:
        return
    metrics.JOBS.labels(job.type, job.lane, job.state).inc()
    if job.state == "error" and isinstance(job.error, dict):
        metrics.ERRORS.labels(str(job.error.get("code"))).inc()
    if job.last_shard_at is not None and job.state not in ("error", "cancelled"):
        seconds = max(0.0, (job.finished_at - job.last_shard_at).total_seconds())
        metrics.VERDICT_LATENCY.labels(job.type).observe(seconds)
