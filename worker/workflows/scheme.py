"""A check of stored arrays against a scheme of the catalogue, or of a payload against a struct type: one step.

Memory follows the content that was given: every file is read whole, and what is decoded is as large as its reference.
"""

import functools
from collections.abc import Callable
from typing import Any, Final

from sqlalchemy.orm import Session

from service.records import jobs, scheme_checks
from service.records.models import Job, Shard
from worker.context import DONE, Answer, Context, Steps
from worker.examining import Content, examined
from worker.workflows import shards

_STEPS: Final = ("begin", "check")


def scheme(context: Context, steps: Steps, job_id: str) -> None:
    """The job."""
    work: dict[str, Callable[[Context, str], Answer]] = {"begin": shards.begin, "check": _check}
    for name in _STEPS:
        doing = functools.partial(context.answering, job_id, functools.partial(work[name], context, job_id))
        if steps.step(name, doing)["ended"]:
            return


def _check(context: Context, job_id: str) -> Answer:
    job = context.job(job_id)
    with Content(context.store.blobs, job.request, context.watch) as content:
        # One shard without tasks: the bytes that are read are the job's progress.
        planned = [_shard(job, content.bytes, content.files)]
        context.write(job_id, jobs.plan, job_id, content.files, content.bytes, planned)

        def inside() -> dict[str, Any]:
            with context.watch.ticket(job_id, 0) as ticket:
                return examined(job.request, content, ticket, context.settings.struct_limits)

        document = context.on_shard_thread(inside)

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
