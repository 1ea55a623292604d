"""A verification: the directory is read and cut into shards, these are run, and one step merges what they found."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from ninfer_core.findings import Finding
from ninfer_core.verify.outcomes import Outcome
from ninfer_core.verify.report import ObjectResult, Report, coverage, finding_json
from service.queue import VERIFY_SHARD
from service.records import jobs, runs
from service.records.models import Finding as FindingRow
from service.records.models import Result, Run
from worker.context import DONE, Answer, Context, Steps
from worker.errors import RowMissing
from worker.watch import Ticket
from worker.workflows import shards
from worker.workflows.listing import ensure_listed

_ROWS = 2_000  # in one transaction: on SQLite every other writer waits for it, heartbeats too


def verify(context: Context, steps: Steps, job_id: str) -> None:
    """The job."""
    work = (
        ("begin", lambda: shards.begin(context, job_id)),
        ("plan", lambda: context.answering(job_id, lambda: _plan(context, job_id))),
        ("put in line", lambda: shards.put_in_line(context, VERIFY_SHARD, job_id)),
        ("wait", lambda: context.answering(job_id, lambda: shards.wait(context, job_id))),
        ("merge", lambda: context.answering(job_id, lambda: _merge(context, job_id))),
    )
    for name, step in work:
        if steps.step(name, step)["ended"]:
            break
    context.forget(job_id)


def verify_shard(context: Context, steps: Steps, job_id: str, number: int) -> None:
    """One shard of it."""

    def work(first: int, stop: int) -> tuple[list[Outcome], dict[str, Any] | None]:
        with context.verification(job_id) as verification:
            return [task.run() for task in verification.prepared.tasks[first:stop]], None

    steps.step("run", lambda: context.answering(job_id, lambda: shards.run(context, job_id, number, work)))


def _plan(context: Context, job_id: str) -> Answer:
    job = context.job(job_id)
    if job.objects is not None:
        return DONE  # planned before
    with context.watch.ticket(job_id):
        if job.artifact_id is not None:
            ensure_listed(context.store, job.artifact_id)
        with context.verification(job_id) as verification:
            prepared = verification.prepared
            objects = prepared.totals.objects
            parts = shards.cut(job, prepared.tasks, context.settings.shard_bytes, objects)
    return shards.save_plan(context, job_id, objects, parts)


def _merge(context: Context, job_id: str) -> Answer:
    with context.database.read() as session:
        run = runs.by_job(session, job_id)
        planned = jobs.shards(session, job_id)
    if run is None:
        raise RowMissing("run", job_id)
    with context.watch.ticket(job_id) as ticket, context.verification(job_id) as verification:
        report = verification.conclude(shards.outcomes(context, planned), ticket)
        _save(context, run, report, ticket)
    return DONE


def _save(context: Context, run: Run, report: Report, ticket: Ticket) -> None:
    for results in _batches([_result(run, item) for item in report.objects]):
        ticket.check()
        with context.database.write() as session:
            runs.save_results(session, run.id, results)
    notes = [_finding(run, number, item) for number, item in enumerate(report.findings, 1)]
    for findings in _batches(notes):
        ticket.check()
        with context.database.write() as session:
            runs.save_findings(session, run.id, findings)
    errors = sum(item.severity == "error" for item in report.findings)
    with context.database.write() as session:
        runs.save(
            session,
            run.id,
            verdict=report.verdict,
            report_head=_head(report),
            errors=errors,
            advisories=len(report.findings) - errors,
        )
        jobs.finish(session, run.job_id, report.verdict)


def _batches(rows: list[Any]) -> Iterator[list[Any]]:
    for start in range(0, len(rows), _ROWS):
        yield rows[start : start + _ROWS]


def _head(report: Report) -> dict[str, Any]:
    """The report's members but `objects` and `findings`, which are rows."""
    document = replace(report, objects=(), findings=()).as_json()
    del document["objects"], document["findings"]
    document["artifact"]["content_root"] = report.content_root
    document["coverage"] = coverage(report.objects)
    return document


def _result(run: Run, item: ObjectResult) -> Result:
    return Result(
        run_id=run.id,
        project_id=run.project_id,
        ordinal=item.ordinal,
        outcome=item.outcome,
        evidence=item.evidence,
        sha256=item.sha256,
        identity=item.identity,
        metrics=item.metrics,
        nmse=_nmse(item.metrics),
    )


def _nmse(metrics: dict[str, Any]) -> float | None:
    """Squared error over squared source values: what the signal-to-noise ratio says, without its infinity."""
    error = metrics.get("error") or {}
    if error.get("sqnr_db") is not None:
        return float(10 ** (-error["sqnr_db"] / 10))
    return 0.0 if error.get("rmse") == 0 else None


def _finding(run: Run, number: int, item: Finding) -> FindingRow:
    return FindingRow(
        run_id=run.id,
        project_id=run.project_id,
        seq=number,
        code=item.code,
        severity=item.severity,
        check=item.check,
        object=item.object,
        document=finding_json(item),
    )
