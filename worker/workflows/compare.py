"""A comparison: both directories are read and cut into shards, these are run, and one step merges what they found.

The job ends as `passed` when the comparison could be made, whatever it says; as `failed` where the structure of an
artifact has errors, which are findings of its side; and as `incomplete` where the files are sound and could not be read.
"""

from collections.abc import Iterator

from sqlalchemy.orm import Session

from ninfer_core.compare.comparison import Comparison, ObjectComparison
from ninfer_core.compare.outcomes import from_json, to_json
from ninfer_core.compare.summary import summary
from service.queue import COMPARE_SHARD
from service.records import comparisons, jobs
from service.records import models as rows
from worker.context import DONE, Answer, Context, Steps
from worker.errors import RowMissing
from worker.workflows import shards


def compare(context: Context, steps: Steps, job_id: str, epoch: int = 0) -> None:
    """The job."""
    context = context.at(epoch)
    shards.follow(context, steps, job_id, COMPARE_SHARD, plan=_plan, last=("merge", _merge))


def compare_shard(context: Context, steps: Steps, job_id: str, number: int, epoch: int = 0) -> None:
    """One shard of it."""
    context = context.at(epoch)

    def work(job: rows.Job, first: int, stop: int) -> tuple[list[shards.Document], None]:
        with context.comparing(job) as comparing:
            return [to_json(task.run()) for task in comparing.tasks[first:stop]], None

    steps.step(
        "run", lambda: context.answering(job_id, lambda: shards.run_spelled(context, job_id, number, work))
    )


def _plan(context: Context, job_id: str) -> Answer:
    job = context.job(job_id)
    if job.objects is not None:
        return DONE  # planned before
    with context.ticket(job_id), context.comparing(job) as comparing:
        objects = comparing.prepared.totals.objects
        parts = shards.cut(job, comparing.tasks, context.settings.shard_bytes, objects)
        return shards.save_plan(context, job_id, objects, parts, comparing.plan)


def _merge(context: Context, job_id: str) -> Answer:
    with context.database.read() as session:
        row = comparisons.by_job(session, job_id)
        planned = jobs.shards(session, job_id)
    if row is None:
        raise RowMissing("comparison", job_id)
    with context.ticket(job_id) as ticket, context.comparing(context.job(job_id)) as comparing:
        comparison = comparing.conclude(map(from_json, shards.documents(context, planned)), ticket)
        _save(context, row, comparison)
    return DONE


def _save(context: Context, row: rows.Comparison, comparison: Comparison) -> None:
    """Store the comparison and end the job with it. Raises: Cancelled, as soon as the job is over."""
    context.write_rows(
        row.job_id,
        (_object(row, item) for item in comparison.objects),
        lambda session, batch: comparisons.save_objects(session, row.id, batch),
    )
    context.write_rows(
        row.job_id,
        _findings(row, comparison),
        lambda session, batch: comparisons.save_findings(session, row.id, batch),
    )
    head, said = comparison.head_json(), summary(comparison)

    def conclude(session: Session) -> None:
        comparisons.save(session, row.id, verdict=comparison.verdict, document=head, summary=said)
        jobs.finish(session, row.job_id, _state(comparison))

    context.write(row.job_id, conclude)


def _state(comparison: Comparison) -> str:
    if comparison.a.errors or comparison.b.errors:
        return "failed"
    return "incomplete" if any(item.status == "unreadable" for item in comparison.objects) else "passed"


def _object(row: rows.Comparison, item: ObjectComparison) -> rows.ComparisonObject:
    return rows.ComparisonObject(
        comparison_id=row.id,
        project_id=row.project_id,
        ordinal=item.ordinal,
        status=item.status,
        rank=item.rank,
        weight=item.weight,
        document=item.as_json(),
    )


def _findings(row: rows.Comparison, comparison: Comparison) -> Iterator[rows.ComparisonFinding]:
    for number, document in enumerate(comparison.findings_json(), 1):
        yield rows.ComparisonFinding(
            comparison_id=row.id,
            project_id=row.project_id,
            seq=number,
            code=document["code"],
            severity=document["severity"],
            check=document["check"],
            object=document["object"],
            document=document,
        )
