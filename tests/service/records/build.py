"""Rows as clients and workers make them, and two ways to do things at once."""

import hashlib
import multiprocessing
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from typing import Any, TypeVar

from sqlalchemy.orm import Session

from service.records import content, conversions, jobs, runs
from service.records.models import (
    DEFAULT_PROJECT,
    Artifact,
    ArtifactFile,
    Checkpoint,
    CheckpointFile,
    Conversion,
    Finding,
    Job,
    Object,
    Project,
    Recipe,
    Result,
    Run,
    Shard,
)
from service.records.types import new_id, now

P = DEFAULT_PROJECT
OTHER = "other"
R = TypeVar("R")

HOSTILE = {
    "nul": "a\0b",
    "only nul": "\0",
    "sub": "a\x1ab\x1a0\x1a1\x1a",
    "sub and nul": "\x1a\0\x1a0",
    "empty": "",
    "newlines": "\r\n\t\u2028",
    "wildcards": "%_\\'\"",
    "beyond the plane": "\U0001f600\U0010ffff",
    "combining": "e\u0301\u202e\ufeff",
    "a million": "x\u00e9" * 500_000,
}
HUGE = 10**39


def sha(text: object) -> str:
    """Any sha256 that is the text's own."""
    return hashlib.sha256(str(text).encode()).hexdigest()


def digest(text: object) -> str:
    """The same, as a digest."""
    return f"sha256:{sha(text)}"


def other_project(session: Session) -> str:
    """Another tenant."""
    session.add(Project(id=OTHER, name=OTHER, created_at=now()))
    session.flush()
    return OTHER


def artifact(name: object = "a", **changes: Any) -> Artifact:
    """An artifact that was just pushed."""
    facts: dict[str, Any] = {
        "project_id": P,
        "id": new_id(),
        "digest": digest(name),
        "kind": "ninfer",
        "entry": f"{name}.ninfer",
        "bytes": 1 << 40,
        "origin": "pushed",
        "listing": "pending",
        "created_at": now(),
    }
    return Artifact(**facts | changes)


def files(*names: str) -> list[ArtifactFile]:
    """Files of an artifact."""
    return [ArtifactFile(name=name, sha256=sha(name), bytes=len(name)) for name in names]


def objects(count: int) -> list[Object]:
    """Objects of two kinds and formats."""
    return [
        Object(
            ordinal=number,
            name=f"model.layers.{number}.weight",
            kind="tensor" if number % 3 else "resource",
            format="Q4G64_F16S" if number % 2 else None,
            layout="row-split-k128-v1" if number % 2 else None,
            entry={"shape": [number, HUGE], "bytes": HUGE + number},
        )
        for number in range(count)
    ]


def listed(session: Session, count: int = 3, name: object = "a") -> Artifact:
    """A stored artifact with objects."""
    stored, _ = content.add_artifact(session, artifact(name), files("a.ninfer"))
    content.list_objects(
        session,
        stored.id,
        rows=objects(count),
        listing="listed",
        revision=3,
        model_id="m",
        weights_id="w",
    )
    return stored


def checkpoint(name: object = "c", **changes: Any) -> Checkpoint:
    """A checkpoint without claims."""
    facts: dict[str, Any] = {
        "project_id": P,
        "id": new_id(),
        "digest": digest(name),
        "bytes": 5,
        "created_at": now(),
    }
    return Checkpoint(**facts | changes)


def checkpoint_files(*names: str) -> list[CheckpointFile]:
    """Files of a checkpoint."""
    return [CheckpointFile(name=name, sha256=sha(name), bytes=len(name)) for name in names]


def recipe(name: object = "r", **changes: Any) -> Recipe:
    """A recipe without a target."""
    facts: dict[str, Any] = {
        "project_id": P,
        "digest": digest(name),
        "recipe_id": str(name),
        "model_id": "m",
        "weights_id": "w",
        "document": "{}",
        "created_at": now(),
    }
    return Recipe(**facts | changes)


def job(**changes: Any) -> Job:
    """A queued job."""
    facts: dict[str, Any] = {
        "project_id": P,
        "id": new_id(),
        "type": "verify",
        "state": "queued",
        "request": {"type": "verify"},
        "request_digest": digest("request"),
        "created_at": now(),
    }
    return Job(**facts | changes)


def planned(session: Session, shards: int = 2, **changes: Any) -> Job:
    """A running job with shards of 100 bytes and 10 objects each."""
    stored = jobs.add(session, job(**changes))
    jobs.begin(session, stored.id)
    jobs.plan(session, stored.id, 10 * shards, 100 * shards, shard_rows(shards))
    return stored


def shard_rows(count: int) -> list[Shard]:
    """Shards of 100 bytes and 10 objects each."""
    return [Shard(number=n, first=n, stop=n + 1, bytes=100, objects=10) for n in range(count)]


def run(session: Session, count: int = 0, **changes: Any) -> Run:
    """A stored run over an artifact of `count` objects."""
    stored = listed(session, count, new_id())
    verified = planned(session, artifact_id=stored.id)
    row = Run(
        project_id=P,
        id=new_id(),
        job_id=verified.id,
        artifact_id=stored.id,
        checks=["structure", "values"],
        created_at=now(),
    )
    for name, value in changes.items():
        setattr(row, name, value)
    return runs.add(session, row)


def result(number: int, **changes: Any) -> Result:
    """What was found of an object: every third failed."""
    facts: dict[str, Any] = {
        "ordinal": number,
        "outcome": "passed" if number % 3 else "failed",
        "evidence": "derived-exact",
        "sha256": sha(number),
        "identity": digest(number),
        "metrics": {"groups": HUGE},
        "nmse": None,
    }
    return Result(**facts | changes)


def finding(number: int, **changes: Any) -> Finding:
    """A finding about an object."""
    facts: dict[str, Any] = {
        "seq": number,
        "code": "values.scale_not_finite",
        "severity": "error",
        "check": "values",
        "object": "o",
        "document": {"code": "values.scale_not_finite", "count": HUGE},
    }
    return Finding(**facts | changes)


def conversion(session: Session, **changes: Any) -> Conversion:
    """A stored conversion."""
    converted = planned(session, type="convert")
    row = Conversion(
        project_id=P,
        id=new_id(),
        job_id=converted.id,
        recipe_digest=digest("recipe"),
        checkpoints={"base": new_id()},
        inputs={},
        output={"revision": 3},
        created_at=now(),
    )
    for name, value in changes.items():
        setattr(row, name, value)
    return conversions.add(session, row)


def at_once(*works: Callable[[], R]) -> list[R]:
    """What each of these returns when threads do them at the same time."""
    barrier = threading.Barrier(len(works))

    def started(work: Callable[[], R]) -> R:
        barrier.wait(30)
        return work()

    with ThreadPoolExecutor(len(works)) as pool:
        return list(pool.map(started, works))


def in_processes(work: Callable[..., R], *arguments: Sequence[Any]) -> list[R]:
    """What `work` returns in one process for each column of `arguments`, all at the same time."""
    context = multiprocessing.get_context("spawn")
    count = len(arguments[0])
    with ProcessPoolExecutor(
        count, mp_context=context, initializer=_wait, initargs=(context.Barrier(count),)
    ) as pool:
        return list(pool.map(work, *arguments))


def _wait(barrier: Any) -> None:
    barrier.wait(60)
