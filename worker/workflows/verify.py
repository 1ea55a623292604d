"""A verification: the directory is read and cut into shards, these are run, and one step merges what they found."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, Final

from sqlalchemy.orm import Session

from ninfer_core import __version__
from ninfer_core.findings import Finding
from ninfer_core.verify.outcomes import Outcome, to_json
from ninfer_core.verify.report import ObjectResult, Report, coverage, finding_json
from service.queue import VERIFY_SHARD
from service.records import content, identities, jobs, provenance, runs
from service.records.models import LISTED, Job, Result, Run, Shard
from service.records.models import Finding as FindingRow
from worker import facts, measures
from worker.context import DONE, ENDED, Answer, Context, Steps
from worker.errors import RowMissing
from worker.preparing import Verification
from worker.produced import Told, merged, told
from worker.reuse import reusable, source_key
from worker.workflows import shards
from worker.workflows.listing import list_if_possible, list_reported

_LITTLE_BYTES: Final = 1 << 20
_FEW_ROWS: Final = 500  # of a report, which are stored together with the end of its job


class _Planned(Exception):
    """Others are at the job, which took this worker for dead: its shards are to be done."""


def verify(context: Context, steps: Steps, job_id: str, epoch: int = 0) -> None:
    """The job."""
    context = context.at(epoch)
    last = ("merge", _merge)
    shards.follow(
        context,
        steps,
        job_id,
        VERIFY_SHARD,
        plan=_plan,
        last=last,
        put_in_line=_put_in_line,
        at_once=_at_once,
    )


def verify_shard(context: Context, steps: Steps, job_id: str, number: int, epoch: int = 0) -> None:
    """One shard of it."""
    context = context.at(epoch)
    steps.step("run", lambda: context.answering(job_id, lambda: _run(context, job_id, number)))


def _run(context: Context, job_id: str, number: int, *, counted: bool = True) -> Answer:
    def work(job: Job, first: int, stop: int) -> tuple[list[Outcome], dict[str, Any] | None]:
        with context.verification(job) as verification:
            return [task.run() for task in verification.tasks[first:stop]], None

    return shards.run(context, job_id, number, work, counted=counted)


def _at_once(context: Context, job_id: str) -> Answer:
    """All of a verification with little to read that nobody has begun: one transaction as it begins, one as it ends.

    Whatever comes in between, the job is running then and not planned, and takes its steps.
    """
    with context.database.write() as session:
        job = jobs.locked(session, job_id)
        artifact = (
            None if job is None or job.artifact_id is None else content.artifact(session, job.artifact_id)
        )
        if job is None or job.state != "queued" or artifact is None or artifact.bytes > _LITTLE_BYTES:
            return DONE
        if not jobs.begin(session, job_id, context.epoch):
            return DONE
    if artifact.listing != LISTED:
        list_if_possible(context.store, artifact.id)
    with context.verification(job) as verification:
        parts = shards.cut(
            job, verification.tasks, context.settings.shard_bytes, verification.prepared.totals.objects
        )
        if len(parts) != 1 or parts[0].bytes > _LITTLE_BYTES:
            return DONE
        return _ended(context, job, verification, parts[0])


def _ended(context: Context, job: Job, verification: Verification, shard: Shard) -> Answer:
    def work() -> list[Outcome]:
        with measures.shard(job, shard.number, shard.bytes):
            return [task.run() for task in verification.tasks]

    found = context.little(work, job.lane)
    shard.produced = told(map(to_json, found), context.devices)

    def planned(session: Session) -> None:
        objects = verification.prepared.totals.objects
        if not jobs.plan_done(session, job.id, objects, shard, verification.plan, __version__):
            raise _Planned

    with context.ticket(job.id) as ticket:
        report = verification.conclude(found, ticket)
        try:
            _save(context, verification.run, report, verification, merged([shard.produced]), planned)
        except _Planned:
            return DONE
    return ENDED


def _put_in_line(context: Context, job_id: str) -> Answer:
    """Every shard; a single one with little to read is run here, for its place in line would take longer than it does."""
    with context.database.read() as session:
        planned = jobs.shards(session, job_id)
    if len(planned) == 1 and planned[0].bytes <= _LITTLE_BYTES:
        return _run(context, job_id, planned[0].number, counted=False)  # as a step of the job it is
    return shards.every_shard(VERIFY_SHARD, context, job_id)


def _plan(context: Context, job_id: str) -> Answer:
    job = context.job(job_id)
    if job.objects is not None:
        return DONE  # planned before
    with context.ticket(job_id):
        if job.artifact_id is not None:
            list_if_possible(context.store, job.artifact_id)
        with context.verification(job) as verification:
            objects = verification.prepared.totals.objects
            parts = shards.cut(job, verification.tasks, context.settings.shard_bytes, objects)
            return shards.save_plan(context, job_id, objects, parts, verification.plan)


def _merge(context: Context, job_id: str) -> Answer:
    with context.database.read() as session:
        run = runs.by_job(session, job_id)
        planned = jobs.shards(session, job_id)
    if run is None:
        raise RowMissing("run", job_id)
    with context.ticket(job_id) as ticket, context.verification(context.job(job_id)) as verification:
        report = verification.conclude(shards.outcomes(context, planned), ticket)
        _save(context, run, report, verification, merged(shard.produced for shard in planned))
    return DONE


def _save(
    context: Context,
    run: Run,
    report: Report,
    verification: Verification,
    produced: Told,
    first: Callable[[Session], None] | None = None,
) -> None:
    """Store the report and end the job with it, after `first`. Raises: Cancelled, as soon as the job is over."""
    artifact = verification.artifact
    if artifact.listing != LISTED or len(report.objects) > (artifact.object_count or 0):
        list_reported(context, run, report)
    keys = reusable(verification.rests, report)
    parts: tuple[tuple[Iterable[Any], Callable[[Session, list[Any]], object]], ...] = (
        (
            _identities(report, verification),
            lambda session, rows: identities.save(session, verification.artifact, rows),
        ),
        (
            (_result(run, item, keys) for item in report.objects),
            lambda session, rows: runs.save_results(session, run.id, rows),
        ),
        (
            (_finding(run, number, item) for number, item in enumerate(report.findings, 1)),
            lambda session, rows: runs.save_findings(session, run.id, rows),
        ),
    )
    few: list[tuple[list[Any], Callable[[Session, list[Any]], object]]] = []
    if len(report.objects) + len(report.findings) <= _FEW_ROWS:
        few = [(stored, save) for rows, save in parts if (stored := list(rows))]
    else:
        for rows, save in parts:
            context.write_rows(run.job_id, rows, save)
    head = _head(report)
    errors = sum(item.severity == "error" for item in report.findings)
    advisories = len(report.findings) - errors

    def conclude(session: Session) -> None:
        if first is not None:
            first(session)
        for stored, save in few:
            save(session, stored)
        proved = facts.verified(
            session, run.project_id, report, verification.against.plan, run.checkpoints or {}
        )
        provenance.save(session, verification.artifact, "verified", run.id, proved)
        runs.save(
            session,
            run.id,
            verdict=report.verdict,
            report_head=head,
            errors=errors,
            advisories=advisories,
            target_digest=None if report.target is None else report.target["digest"],
            source_key=source_key(verification.rests, report),
            produced=produced,
        )
        jobs.finish(session, run.job_id, report.verdict)

    context.write(run.job_id, conclude)


def _identities(report: Report, verification: Verification) -> list[tuple[int, str]]:
    """What its objects are, if this run read them all out of what was stored."""
    if verification.known.files is not None or report.digest != verification.artifact.digest:
        return []
    return [(item.ordinal, item.identity) for item in report.objects if item.identity is not None]


def _head(report: Report) -> dict[str, Any]:
    """The report's members but `objects` and `findings`, which are rows."""
    document = replace(report, objects=(), findings=()).as_json()
    del document["objects"], document["findings"]
    document["artifact"]["content_root"] = report.content_root
    document["coverage"] = coverage(report.objects)
    return document


def _result(run: Run, item: ObjectResult, keys: Mapping[int, str]) -> Result:
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
        coverage=item.coverage,
        reuse_key=keys.get(item.ordinal),
        reused_run_id=None if item.reused is None else item.reused.run,
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
