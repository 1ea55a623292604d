"""What verifications and conversions share: a job is planned, its shards run anywhere, and the job waits for them."""

import functools
import json
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from itertools import pairwise
from typing import Any

import structlog
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session

from ninfer_core import __version__
from ninfer_core.errors import OutOfStep
from ninfer_core.findings import Findings
from ninfer_core.verify.outcomes import Encoded, Outcome, from_json, to_json
from ninfer_core.verify.task import Task, shards
from service.queue import ENDED as ENGINE_ENDED
from service.queue import shard_id
from service.records import attempts, jobs, workers
from service.records.models import Job, Shard
from worker import measures, plans
from worker.company import SUSPECT
from worker.context import DONE, ENDED, GIVEN_UP, INTERNAL, Answer, Context, Steps
from worker.errors import LeftToOthers, RowMissing
from worker.patience import passing
from worker.produced import Told, told
from worker.watch import Cancelled, goes_on

log = structlog.get_logger()

Document = dict[str, Any]  # an outcome as JSON
_WAIT = "wait"
_SOONEST, _LATEST = 0.05, 0.5  # seconds between two looks at the shards
_LATEST_AT_LAST = 0.1  # once all that are left are begun: each may be the one that everything waits for
_ENGINE_EVERY = 3.0  # seconds between two looks at what the engine says of those that are not done


Work = Callable[[Context, str], Answer]  # what a step of a job does


def follow(
    context: Context,
    steps: Steps,
    job_id: str,
    workflow: str,
    *,
    plan: Work,
    last: tuple[str, Work],
    put_in_line: Work | None = None,
    at_once: Work | None = None,
) -> None:
    """Do the steps of a job that has shards; `workflow` is that of its shards, `put_in_line` stands for all of them going in line.

    `at_once` may do all of a job without any step.
    """
    if at_once is not None and _all(context, job_id, at_once):
        context.forget(job_id)
        return
    in_turn(
        context,
        steps,
        job_id,
        (
            ("begin", begin),
            ("plan", plan),
            ("put in line", put_in_line or functools.partial(every_shard, workflow)),
            (_WAIT, functools.partial(wait, workflow)),
            last,
        ),
    )


def _all(context: Context, job_id: str, at_once: Work) -> bool:
    """Whether the job has ended `at_once`: what is left to steps is left to do, for one, when the database is away."""
    try:
        return bool(context.answering(job_id, functools.partial(at_once, context, job_id))["ended"])
    except SQLAlchemyError as error:
        if not passing(error):
            raise
        log.warning("job.takes_steps", job=job_id, error=str(error).partition("\n")[0])
        return False


def in_turn(context: Context, steps: Steps, job_id: str, work: Sequence[tuple[str, Work]]) -> None:
    """Do the steps of a job one after the other, until one says that the job has ended."""
    first = True

    def doing(name: str, step: Work) -> Answer:
        # Steps before it have an answer: unless it is the first of all, a worker that had the job ended in this one.
        nonlocal first
        suspect, first = first and name not in (work[0][0], _WAIT), False
        if suspect and _too_often(context, job_id, name):
            return ENDED
        return step(context, job_id)

    for name, step in work:
        answer = functools.partial(context.answering, job_id, functools.partial(doing, name, step))
        if steps.step(name, answer)["ended"]:
            break
    context.forget(job_id)


def _too_often(context: Context, job_id: str, name: str) -> bool:
    """Count that a step begins which may have ended a worker; whether it has done so too often, and the job ends with that."""
    count = context.write(job_id, attempts.begin_step, job_id, f"{name}.{context.epoch}")
    if count < context.settings.max_attempts:
        return False
    detail = f"the step `{name}` was begun {count} times, and each time its worker ended before it did"
    context.fail(job_id, GIVEN_UP, detail)
    return True


def begin(context: Context, job_id: str) -> Answer:
    """The job runs now, or it has ended before anything began."""
    with context.database.write() as session:
        return DONE if jobs.begin(session, job_id, context.epoch) else ENDED


def cut(
    job: Job, tasks: Sequence[Task[..., Any]], shard_bytes: int, objects: int, last_bytes: int | None = None
) -> list[Shard]:
    """The shards of these tasks; with `last_bytes` one more without tasks, which stands for what the job does itself.

    Objects are spread over them by bytes: tasks know nothing of objects, and a progress bar needs no more.
    """
    ranges = shards(tasks, shard_bytes)
    sizes = [sum(task.bytes for task in tasks[part.start : part.stop]) for part in ranges]
    if last_bytes is not None:
        ranges = (*ranges, range(len(tasks), len(tasks)))
        sizes.append(last_bytes)
    total, done, bounds = max(1, sum(sizes)), 0, [0]
    for size in sizes:
        done += size
        bounds.append(objects * done // total)
    if sizes:
        bounds[-1] = objects
    counts = [high - low for low, high in pairwise(bounds)]
    return [
        Shard(
            job_id=job.id,
            project_id=job.project_id,
            number=number,
            first=part.start,
            stop=part.stop,
            bytes=size,
            bytes_done=0,
            objects=count,
            done=False,
        )
        for number, (part, size, count) in enumerate(zip(ranges, sizes, counts, strict=True))
    ]


def save_plan(context: Context, job_id: str, objects: int, planned: list[Shard], digest: str) -> Answer:
    """Store the shards, unless others are stored already: then those count. Raises: LeftToOthers."""
    size = sum(shard.bytes for shard in planned)

    def save(session: Session) -> None:
        if plans.left_to(workers.all(session)):
            raise LeftToOthers  # it would begin the job anew
        jobs.plan(session, job_id, objects, size, planned, digest, __version__)

    context.write(job_id, save)
    return DONE


def every_shard(workflow: str, context: Context, job_id: str) -> Answer:
    """Put every shard in line that is not done."""
    _enqueue(context, workflow, job_id, _waiting(context, job_id))
    return DONE


def _enqueue(context: Context, workflow: str, job_id: str, numbers: Collection[int]) -> None:
    if not numbers:
        return
    job = context.job(job_id)
    for number in numbers:
        context.watch.check()
        context.queue.enqueue(
            workflow,
            shard_id(job_id, number, context.epoch),
            job_id,
            number,
            context.epoch,
            lane=job.lane,
            priority=job.priority,
        )


def wait(workflow: str, context: Context, job_id: str) -> Answer:
    """Until every shard is done, or the job has ended. Our own tables are asked, so that it can stop at any moment."""
    pause, asked_at = _SOONEST, time.monotonic()
    with context.ticket(job_id) as ticket:
        while True:
            ticket.check()
            context.watch.require_staying()
            if not goes_on(context.job(job_id), context.epoch):
                raise Cancelled
            waiting = _waiting(context, job_id)
            if not waiting:
                return DONE
            if time.monotonic() - asked_at > _ENGINE_EVERY:
                asked_at = time.monotonic()
                if _given_up(context, workflow, job_id, waiting):
                    return ENDED
            time.sleep(min(pause, _LATEST_AT_LAST if all(waiting.values()) else _LATEST))
            pause = min(_LATEST, pause * 1.5)


def _waiting(context: Context, job_id: str) -> dict[int, int]:
    with context.database.read() as session:
        return jobs.waiting(session, job_id)


def _given_up(context: Context, workflow: str, job_id: str, waiting: Collection[int]) -> bool:
    """Whether the engine will not run a shard any more that is not done: then this epoch of the job ends here.

    One that it does not know, for its database was lost or tidied, is put in line again.
    """
    ids = {number: shard_id(job_id, number, context.epoch) for number in waiting}
    said = context.queue.status(list(ids.values()))
    lost = {number: said[id_] for number, id_ in ids.items()}
    _enqueue(context, workflow, job_id, [number for number, word in lost.items() if word is None])
    # Asked once more, and after the engine: what it knows as ended may have ended well just now.
    over = next((number for number in _waiting(context, job_id) if lost.get(number) in ENGINE_ENDED), None)
    if over is None:
        return False
    context.begin_anew(job_id, INTERNAL, f"the engine ended shard {over} without a result ({lost[over]})")
    return True


def run(
    context: Context,
    job_id: str,
    number: int,
    work: Callable[[Job, int, int], tuple[list[Outcome], dict[str, Any] | None]],
    *,
    counted: bool = True,
) -> Answer:
    """One shard: `work` is given the numbers of its first task and of the one after its last; what it finds is stored, once."""

    def spelled(job: Job, first: int, stop: int) -> tuple[list[Document], dict[str, Any] | None]:
        found, segment = work(job, first, stop)
        return [to_json(outcome) for outcome in found], segment

    return run_spelled(context, job_id, number, spelled, counted=counted)


def run_spelled(
    context: Context,
    job_id: str,
    number: int,
    work: Callable[[Job, int, int], tuple[list[Document], dict[str, Any] | None]],
    *,
    counted: bool = True,
) -> Answer:
    """`run`, where `work` gives its outcomes as the JSON that `documents` hands out; a shard may do without being `counted`."""
    with context.database.read() as session:
        job, shard = jobs.get(session, job_id), jobs.shard(session, job_id, number)
    if not goes_on(job, context.epoch) or job is None:
        raise Cancelled
    if shard is None:
        raise RowMissing("shard", shard_id(job_id, number, context.epoch))
    if shard.done:
        return DONE
    plans.require_version(job)
    most = context.settings.max_attempts
    if shard.attempts >= most:
        return context.fail(job_id, GIVEN_UP, _blamed(shard))
    first, stop = shard.first, shard.stop

    def inside() -> tuple[str, dict[str, Any] | None, Told]:
        count = _counted(context, job_id, number) if counted else nullcontext()
        with context.ticket(job_id, number), count, measures.shard(job, number, shard.bytes):
            found, segment = work(job, first, stop)
        text = json.dumps(found, allow_nan=False, separators=(",", ":"))
        return text, segment, told(found, context.devices)

    alone = 0 < min(SUSPECT, most - 1) <= shard.attempts
    long = shard.bytes > context.settings.shard_bytes  # it could not be parted
    text, segment, produced = context.on_shard_thread(inside, job.lane, alone=alone, long=long)
    context.write(job_id, jobs.finish_shard, job_id, number, text, segment, produced)
    return DONE


@contextmanager
def _counted(context: Context, job_id: str, number: int) -> Iterator[None]:
    """Note that a shard is begun, for it may take this process down; and take that back where it ends otherwise."""
    context.write(job_id, attempts.begin_shard, job_id, number)
    try:
        yield
    except BaseException:
        # Without the database it stays counted: one more of several.
        with suppress(SQLAlchemyError), context.database.write() as session:
            attempts.leave_shard(session, job_id, number, context.epoch)
        raise


def _blamed(shard: Shard) -> str:
    said = (
        f"shard {shard.number} was begun {shard.attempts} times, and each time its worker ended before it did"
    )
    return f"{said}; the last time: {shard.last_error['detail']}" if shard.last_error else said


def outcomes(context: Context, planned: Sequence[Shard]) -> Iterator[Outcome]:
    """What the shards found out, in the order of their tasks; one shard's is in memory at a time."""
    return map(from_json, documents(context, planned))


def documents(context: Context, planned: Sequence[Shard]) -> Iterator[Document]:
    """`outcomes`, as the JSON that was stored."""
    for shard in planned:
        if shard.first == shard.stop:
            continue
        with context.database.read() as session:
            text = jobs.outcomes(session, shard.job_id, shard.number)
        yield from json.loads(text)


def encoded(found: Iterator[Outcome]) -> Iterator[Encoded | Findings]:
    """Those of a conversion. Raises: OutOfStep for any other."""
    for outcome in found:
        if not isinstance(outcome, Encoded | Findings):
            raise OutOfStep(f"expected an Encoded, got a {type(outcome).__name__}")
        yield outcome
