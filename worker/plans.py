"""Which list of tasks a job was cut from: only a worker that makes the same list may run or merge its shards."""

import hashlib
import re
from collections.abc import Iterable, Sequence
from typing import Any, Final

from ninfer_core import __version__
from ninfer_core.verify.task import Task
from service.records.models import Job, Worker
from service.records.rows import batches
from worker.errors import PlanChanged

_AT_ONCE = 10_000


def digest(tasks: Sequence[Task[..., Any]]) -> str:
    """What two workers must agree on: the version that made the list, its length, and what each task reads."""
    found = hashlib.sha256(f"{__version__}\n{len(tasks)}\n".encode())
    for batch in batches(tasks, _AT_ONCE):
        found.update("".join(f"{task.bytes}\n" for task in batch).encode())
    return f"sha256:{found.hexdigest()}"


def version(name: str | None) -> tuple[int, ...]:
    """The numbers of a version, to be compared."""
    return tuple(int(part) for part in re.findall(r"[0-9]{1,9}", name or ""))


OURS: Final = version(__version__)


def left_to(others: Iterable[Worker]) -> bool:
    """Whether one of these is newer than we are and stays: what a newer version has planned is left to it.

    The other way round a job is begun anew; so two versions never take a job from each other in turns.
    """
    return any(not other.draining and version(other.version) > OURS for other in others)


def require_version(job: Job) -> None:
    """Raises: PlanChanged when another version has planned the job."""
    if job.objects is not None and job.planned_by is not None and job.planned_by != __version__:
        raise PlanChanged(job.planned_by, __version__)


def require(job: Job, found: str) -> None:
    """Raises: PlanChanged when the job is planned, and not from the list of tasks with the digest `found`."""
    if job.objects is not None and job.plan != found:
        raise PlanChanged(job.plan, found)
