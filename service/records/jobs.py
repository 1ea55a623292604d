"""Queries over jobs. A job is open while it is `queued` or `running`; its final state is set once and never changes."""

import re
from collections.abc import Collection, Mapping
from typing import Any, Final

from sqlalchemy import select
from sqlalchemy.orm import Session

from ninfer_core.identity import DIGEST_PREFIX
from service.records.events import IS_OPEN, OPEN, add_event, events, locked, require_open
from service.records.models import (
    Artifact,
    Comparison,
    Conversion,
    Job,
    JobContent,
    Run,
    SchemeCheck,
    SelfCheck,
)
from service.records.pages import Page, cut, decode, encode, fetched, identifier
from service.records.rows import batches, insert_new, values
from service.records.shards import (
    Progress,
    advance,
    drop_outcomes,
    finish_shard,
    outcomes,
    plan,
    plan_done,
    progress,
    progress_of,
    segment,
    shard,
    shards,
    waiting,
)
from service.records.types import now

__all__ = [
    "FINAL",
    "OPEN",
    "Progress",
    "add",
    "add_event",
    "advance",
    "begin",
    "by_ids",
    "by_key",
    "contents_of",
    "events",
    "finish",
    "finish_shard",
    "get",
    "job",
    "jobs",
    "locked",
    "open_jobs",
    "open_of_type",
    "outcomes",
    "plan",
    "plan_done",
    "progress",
    "progress_of",
    "request_cancel",
    "require_open",
    "segment",
    "shard",
    "shards",
    "waiting",
]

FINAL: Final = ("passed", "failed", "incomplete", "error", "cancelled")
_LISTING = "jobs"
_ANSWERS: Final[dict[str, tuple[str, Any, Any]]] = {  # what a job of a type leaves behind
    "verify": ("run", Run, Run.verdict),
    "convert": ("conversion", Conversion, Conversion.verdict),
    "compare": ("comparison", Comparison, Comparison.verdict),
    "scheme": ("scheme_check", SchemeCheck, SchemeCheck.verdict),
    "selfcheck": ("selfcheck", SelfCheck, SelfCheck.outcome),
}
# Members of a request that name an artifact, a recipe or a target by its digest, which have files or rows of their own.
_NO_CONTENT: Final = frozenset(("artifact", "recipe", "target", "a", "b"))
_DIGEST: Final = re.compile(f"{DIGEST_PREFIX}[0-9a-f]{{64}}")


def add(session: Session, job: Job) -> Job:
    """The stored job: `job`, or the one that has its idempotency key already; compare their ids to tell."""
    new = insert_new(session, Job, [values(job)]) == 1
    stored = locked(session, job.id) if new else None
    if stored is None and job.idempotency_key is not None:
        stored = by_key(session, job.project_id, job.idempotency_key)
    if stored is None:
        raise RuntimeError("a job was neither stored nor found")
    if new:
        owner = {"project_id": stored.project_id, "job_id": stored.id}
        named = sorted(contents_of(stored.request))
        if named:
            insert_new(session, JobContent, [{**owner, "sha256": sha256} for sha256 in named])
        add_event(session, stored, "state:queued", "state", {"state": stored.state})
    return stored


def contents_of(request: Mapping[str, Any]) -> frozenset[str]:
    """The sha256 of all content that a job's request names.

    Of a member that nobody thought of here, too much is kept rather than too little.
    """
    found, rest = set(), [value for name, value in request.items() if name not in _NO_CONTENT]
    while rest:
        value = rest.pop()
        if isinstance(value, dict):
            rest += value.values()
        elif isinstance(value, list):
            rest += value
        elif isinstance(value, str) and _DIGEST.fullmatch(value):
            found.add(value.removeprefix(DIGEST_PREFIX))
    return frozenset(found)


def by_key(session: Session, project_id: str, key: str) -> Job | None:
    """The job with an idempotency key."""
    query = select(Job).where(Job.project_id == project_id, Job.idempotency_key == key)
    return session.scalars(query).one_or_none()


def job(session: Session, project_id: str, job_id: str, *, lock: bool = False) -> Job | None:
    """The job with an id; with `lock` nobody else changes it before the end of the transaction."""
    query = select(Job).where(Job.project_id == project_id, Job.id == job_id)
    return session.scalars(query.with_for_update() if lock else query).one_or_none()


def get(session: Session, job_id: str) -> Job | None:
    """The job with an id, whichever project it belongs to: for workers."""
    return session.get(Job, job_id)


def by_ids(session: Session, job_ids: Collection[str]) -> dict[str, Job]:
    """Those of these jobs that there are, whichever projects they belong to: for workers."""
    return {
        job.id: job
        for batch in batches(job_ids)
        for job in session.scalars(select(Job).where(Job.id.in_(batch)))
    }


def jobs(
    session: Session,
    project_id: str,
    *,
    limit: int,
    cursor: str | None = None,
    state: str | None = None,
    type: str | None = None,  # noqa: A002  as the column
    artifact_id: str | None = None,
) -> Page[Job]:
    """Jobs, newest first. Raises: BadCursor."""
    query = select(Job).where(Job.project_id == project_id)
    if state is not None:
        query = query.where(Job.state == state)
    if type is not None:
        query = query.where(Job.type == type)
    if artifact_id is not None:  # through its runs, which an index finds
        query = query.where(Job.id.in_(select(Run.job_id).where(Run.artifact_id == artifact_id)))
    after = decode(cursor, _LISTING, identifier)
    if after is not None:
        query = query.where(Job.id < after[0])
    rows = session.scalars(query.order_by(Job.id.desc()).limit(fetched(limit))).all()
    return cut(rows, limit, lambda row: encode(_LISTING, row.id))


def open_jobs(session: Session, limit: int, after: str = "") -> list[Job]:
    """The admitted jobs of every project that are queued or running, oldest first; `after` is an id to begin behind.

    Thousands that wait for room in their project hide none of another's.
    """
    query = select(Job).where(IS_OPEN, Job.admitted_at.is_not(None), Job.id > after)
    return list(session.scalars(query.order_by(Job.id).limit(limit)))


def open_of_type(session: Session, project_id: str, type: str, limit: int) -> list[Job]:  # noqa: A002
    """The jobs of one type that are queued or running, newest first."""
    query = select(Job).where(IS_OPEN, Job.project_id == project_id, Job.type == type)
    return list(session.scalars(query.order_by(Job.id.desc()).limit(limit)))


def begin(session: Session, job_id: str, epoch: int | None = None) -> bool:
    """Let a queued job run; whether it is running now, also when it was before. False for one that is over.

    With `epoch` only while the job is in that one.
    """
    found = locked(session, job_id)
    if found is None or found.state not in OPEN or (epoch is not None and found.epoch != epoch):
        return False
    if found.state == "queued":
        found.state = "running"
        found.started_at = now()
        session.flush()
        add_event(session, found, "state:running", "state", {"state": "running"})
    return True


def request_cancel(session: Session, project_id: str, job_id: str) -> Job | None:
    """Cancel a queued job at once, ask a running one to stop, leave one that is over; None when there is none."""
    found = locked(session, job_id)
    if found is None or found.project_id != project_id:
        return None
    if found.state == "queued":
        finish(session, job_id, "cancelled")
    elif found.state == "running":
        found.cancel_requested = True
        session.flush()
    return found


def finish(
    session: Session,
    job_id: str,
    state: str,
    *,
    artifact_id: str | None = None,
    error: dict[str, Any] | None = None,
    epoch: int | None = None,
) -> bool:
    """Set the final state, unless there is one; whether this call did. What came of it must be stored before.

    With `epoch` only while the job is in that one. Raises: ValueError for a state that is not final.
    """
    if state not in FINAL:
        raise ValueError(f"{state!r} is not a final state")
    found = locked(session, job_id)
    if found is None or found.state not in OPEN or (epoch is not None and found.epoch != epoch):
        return False
    found.state = state
    found.finished_at = now()
    found.error = error
    if artifact_id is not None:
        found.artifact_id = artifact_id
    session.flush()
    drop_outcomes(session, job_id)
    add_event(session, found, "state:final", "state", _ending(session, found))
    return True


def _ending(session: Session, found: Job) -> dict[str, Any]:
    data: dict[str, Any] = {"state": found.state}
    if found.type in _ANSWERS:
        name, answer, verdict = _ANSWERS[found.type]
        made = session.execute(select(answer.id, verdict).where(answer.job_id == found.id)).first()
        if made is not None:
            data[name] = made[0]
            if made[1] is not None:
                data["verdict"] = made[1]
    if found.artifact_id is not None:
        data["artifact"] = session.scalar(select(Artifact.digest).where(Artifact.id == found.artifact_id))
    if found.error is not None:
        data["error"] = found.error
    return data
