"""A worker's parts in this process, without the engine: jobs are followed step by step, and tests come in between."""

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

from service.lanes import LANES
from service.records import jobs
from tests.worker.rig import Rig
from worker.context import Answer, Context
from worker.lanes import Lanes
from worker.preparing import Store
from worker.sessions import Sessions
from worker.watch import Watch
from worker.workflows.compare import compare, compare_shard
from worker.workflows.convert import convert, convert_shard
from worker.workflows.imports import import_content
from worker.workflows.scheme import scheme
from worker.workflows.selfcheck import selfcheck
from worker.workflows.verify import verify, verify_shard

WORKFLOWS: Final[dict[str, tuple[Any, Any]]] = {
    "verify": (verify, verify_shard),
    "convert": (convert, convert_shard),
    "compare": (compare, compare_shard),
    "selfcheck": (selfcheck, None),
    "scheme": (scheme, None),
    "import": (import_content, None),
}


@contextmanager
def inside(rig: Rig) -> Iterator[Context]:
    """What the workflows of a worker of this service work with."""
    watch = Watch(rig.parts.database)
    with closing(Lanes(rig.settings.threads, dict.fromkeys(LANES, 1))) as pool:
        store = Store(rig.parts.database, rig.parts.blobs, watch, rig.settings.threads)
        yield Context(rig.settings, store, rig.queue, Sessions(), Sessions(), Sessions(), pool)


@dataclass
class Straight:
    """Steps that are done once, here; `before` holds what is to happen before a step. Nobody waits: shards are run."""

    context: Context
    job_id: str
    before: dict[str, Callable[[], object]] = field(default_factory=dict)
    epoch: int = 0

    def step(self, name: str, work: Callable[[], Answer]) -> Answer:
        """See `worker.context.Steps`."""
        self.before.get(name, lambda: None)()
        if name == "wait":
            self.run_shards()
        return work()

    def run_shards(self) -> None:
        """Every shard that is not done, as long as the job is open."""
        with self.context.database.read() as session:
            waiting = jobs.waiting(session, self.job_id)
        shard = WORKFLOWS[self.context.job(self.job_id).type][1]
        for number in waiting:
            job = self.context.job(self.job_id)
            if job.state in jobs.OPEN and job.epoch == self.epoch:
                shard(self.context, self, self.job_id, number, self.epoch)


def follow(context: Context, job_id: str, **before: Callable[[], object]) -> None:
    """The whole job; `before` is by the name of the step."""
    follow_at(context, job_id, context.job(job_id).epoch, **before)


def follow_at(context: Context, job_id: str, epoch: int, **before: Callable[[], object]) -> None:
    """As a worker does that has the job from an epoch of it."""
    workflow = WORKFLOWS[context.job(job_id).type][0]
    workflow(context, Straight(context, job_id, before, epoch), job_id, epoch)
