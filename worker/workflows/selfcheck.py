"""A self-check of a device of the worker that takes the job: one step, for evidence is of one device and one moment."""

import time
from typing import Final

from sqlalchemy.orm import Session

from ninfer_core.selfcheck.result import SelfCheck
from ninfer_core.selfcheck.run import chosen
from service import selfchecks
from service.records import jobs
from service.records.models import Job, Shard
from worker.context import DONE, Answer, Context, Steps
from worker.devices import check
from worker.workflows import shards

_TELL_SECONDS: Final = 0.4  # between two words about how far it is


def selfcheck(context: Context, steps: Steps, job_id: str, epoch: int = 0) -> None:
    """The job."""
    shards.in_turn(context.at(epoch), steps, job_id, (("begin", shards.begin), ("check", _check)))


def _check(context: Context, job_id: str) -> Answer:
    job = context.job(job_id)
    device = context.devices.find(job.request["device"])
    total = len(chosen(device))
    context.write(job_id, jobs.plan, job_id, total, 0, _parts(job, total))

    written, written_at = 0, time.monotonic()

    def tell(done: int, total: int, _name: str) -> None:
        nonlocal written, written_at
        context.watch.check()
        if done == total or time.monotonic() - written_at > _TELL_SECONDS:
            context.write(job_id, _finish, job_id, range(written, done))
            written, written_at = done, time.monotonic()

    def inside() -> SelfCheck:
        with context.ticket(job_id):
            return check(device, job.request["level"], job.request["seed"], tell)

    document = context.on_shard_thread(inside, job.lane).as_json()

    def conclude(session: Session) -> None:
        selfchecks.save(
            session,
            document,
            project_id=job.project_id,
            id_=job_id,
            worker=context.devices.worker,
            job_id=job_id,
        )
        jobs.finish(session, job_id, document["outcome"])

    context.write(job_id, conclude)
    context.devices.look_again()
    return DONE


def _finish(session: Session, job_id: str, numbers: range) -> None:
    for number in numbers:
        jobs.finish_shard(session, job_id, number, "[]")


def _parts(job: Job, total: int) -> list[Shard]:
    """A shard without tasks for each kernel: what is done of them is the job's progress."""
    return [
        Shard(
            job_id=job.id,
            project_id=job.project_id,
            number=number,
            first=0,
            stop=0,
            bytes=0,
            bytes_done=0,
            objects=1,
            done=False,
        )
        for number in range(total)
    ]
