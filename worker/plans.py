"""Which list of tasks a job was cut from: only a worker that makes the same list may run or merge its shards."""

import hashlib
from collections.abc import Sequence
from typing import Any

from ninfer_core import __version__
from ninfer_core.verify.task import Task
from service.records.models import Job
from service.records.rows import batches
from worker.errors import PlanChanged

_AT_ONCE = 10_000


def digest(tasks: Sequence[Task[..., Any]]) -> str:
    """What two workers must agree on: the version that made the list, its length, and what each task reads."""
    found = hashlib.sha256(f"{__version__}\n{len(tasks)}\n".encode())
    for batch in batches(tasks, _AT_ONCE):
        found.update("".join(f"{task.bytes}\n" for task in batch).encode())
    return f"sha256:{found.hexdigest()}"


def require(job: Job, found: str) -> None:
    """Raises: PlanChanged when the job is planned, and not from the list of tasks with the digest `found`."""
    if job.objects is not None and job.plan != found:
        raise PlanChanged(job.plan, found)
