"""A check of stored arrays against a scheme of the catalogue, or of a payload against a struct type: one step.

Memory follows the content that was given: every file is read whole, and what is decoded is as large as its reference.
"""

from typing import Any

from sqlalchemy.orm import Session

from service.records import jobs, scheme_checks
from service.records.models import Job, Shard
from worker.context import DONE, Answer, Context, Steps
from worker.examining import Content, examined
from worker.workflows import shards


def scheme(context: Context, steps: Steps, job_id: str, epoch: int = 0) -> None:
    """The job."""
    shards.in_turn(context.at(epoch), steps, job_id, (("begin", shards.begin), ("check", _check)))


def _check(context: Context, job_id: str) -> Answer:
    job = context.job(job_id)
    with Content(context.store.blobs, job.request, context.watch) as content:
        # One shard without tasks: the bytes that are read are the job's progress.
        planned = [_shard(job, content.bytes, content.files)]
        context.write(job_id, jobs.plan, job_id, content.files, content.bytes, planned)

        def inside() -> dict[str, Any]:
            with context.ticket(job_id, 0) as ticket:
                return examined(job.request, content, ticket, context.settings.struct_limits)

        document = context.on_shard_thread(inside, job.lane)

    def conclude(session: Session) -> None:
        scheme_checks.save(session, job_id, document)
        jobs.finish_shard(session, job_id, 0, "[]")
        jobs.finish(session, job_id, document["verdict"])

    context.write(job_id, conclude)
    return DONE


def _shard(job: Job, size: int, files: int) -> Shard:
    return Shard(
        job_id=job.id,
        project_id=job.project_id,
        number=0,
        first=0,
        stop=0,
        bytes=size,
        bytes_done=0,
        objects=files,
        done=False,
    )
