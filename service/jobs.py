"""Jobs: validated in full, committed with their run, conversion or comparison, and only then made known to the durable engine.

Runs, conversions, comparisons and checks carry the id of their job; a self-check is there once it is done. `Job.request` is what a workflow reads: digests and ids, no documents.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final, Literal

from sqlalchemy.orm import Session

from ninfer_core.identity import DIGEST_PREFIX
from ninfer_core.targets import AUTO
from service import admission, contents, imports, recipes, scheme_checks, selfchecks
from service.comparisons import Compare
from service.comparisons import settled as settled_comparison
from service.errors import Fault, IdempotencyKeyReused, JobNotFound
from service.imports import Fetch
from service.job_requests import Convert, Terms, Verify, settled
from service.job_targets import named_target, recipe_of, stored_recipe
from service.parts import Parts
from service.records import audit, comparisons, conversions, jobs, runs, uploads, views
from service.records import imports as import_rows
from service.records import scheme_checks as scheme_rows
from service.records.jobs import Progress
from service.records.models import (
    Comparison,
    Conversion,
    Import,
    Job,
    JobEvent,
    Run,
    SchemeCheck,
    Upload,
)
from service.records.pages import Page
from service.records.types import new_id, now
from service.scheme_checks import CheckScheme
from service.selfchecks import Check
from service.settings import Settings
from service.workforce import workforce

Asked = Verify | Convert | Compare | Check | CheckScheme | Fetch
JobState = Literal["queued", "running", "passed", "failed", "incomplete", "error", "cancelled"]
_EVENTS_AT_ONCE: Final = 500
_USUAL: Final = Terms()
_WHOLES: Final = {
    "verify": "runs",
    "convert": "conversions",
    "compare": "comparisons",
    "selfcheck": "selfchecks",
    "scheme": "scheme-checks",
    "import": "imports",
}  # what a job leaves behind


@dataclass(frozen=True, slots=True)
class Sent:
    """How a request came: the digest of its body, and its idempotency key."""

    digest: str
    key: str | None

    @classmethod
    def of(cls, text: str, key: str | None) -> "Sent":
        """Of a body in one spelling, so that the order of members and white space make no other body."""
        return cls(DIGEST_PREFIX + hashlib.sha256(text.encode()).hexdigest(), key)


@dataclass(frozen=True, slots=True)
class Asking:
    """Everything about a new job but what it is to do."""

    settings: Settings
    project_id: str
    sent: Sent
    terms: Terms
    created_by: str | None
    campaign_id: str | None


@dataclass(frozen=True, slots=True)
class JobView:
    """A job with its progress, and the digest of the artifact that it verifies or made."""

    job: Job
    progress: Progress
    artifact: str | None
    waits_for: str | None = None  # in words, while it is queued


def create(
    parts: Parts,
    project_id: str,
    request: Asked,
    sent: Sent,
    *,
    terms: Terms = _USUAL,
    created_by: str | None = None,
    campaign_id: str | None = None,
) -> Job:
    """A new job, or the one that this key and body started before.

    Raises: CheckUnknown, ReferenceUnknown, ImportRefused, BlobsMissing, RecipeFaulty, RecipeMismatch, InvalidRequest, IdempotencyKeyReused.
    """
    asking = Asking(parts.settings, project_id, sent, terms, created_by, campaign_id)
    job = _known(parts, project_id, sent)
    if job is not None:
        admitted = [job] if job.state == "queued" and job.admitted_at is not None else []
    elif isinstance(request, Verify | Convert):
        job, admitted = _new(parts, asking, request)
    else:
        named = scheme_checks.digests(request) if isinstance(request, CheckScheme) else ()
        lost = contents.lost(parts, project_id, named)
        with parts.database.write() as session:
            if isinstance(request, Compare):
                whole, compared = settled_comparison(session, project_id, request)
                job = _add(session, asking, whole, None, compared)
            elif isinstance(request, Check):
                job = _add(session, asking, selfchecks.settled(request), None)
            elif isinstance(request, Fetch):
                job = _add(session, asking, imports.settled(parts.settings, request), None)
            else:
                whole = scheme_checks.settled(parts, session, project_id, request, lost)
                job = _add(session, asking, whole, None)
            admitted = _admitted(session, asking, job)
    admission.put_in_line(parts, admitted)
    return job


def store_upload(parts: Parts, project_id: str, upload: Upload, created_by: str) -> Job:
    """The job that makes content of the parts of an upload: the one that is at it, or a new one."""
    whole = imports.of_upload(upload.id)
    asking = Asking(parts.settings, project_id, Sent.of(whole["source"], None), _USUAL, created_by, None)
    with parts.database.write() as session:
        uploads.locked(session, upload.id)  # of two that ask at once, one makes it
        job = import_rows.open_job(session, project_id, whole["source"])
        if job is None:
            job = _add(session, asking, whole, None)
        admitted = _admitted(session, asking, job)
    admission.put_in_line(parts, admitted)
    return job


def _new(parts: Parts, asking: Asking, request: Verify | Convert) -> tuple[Job, list[Job]]:
    project_id = asking.project_id
    named = named_target(parts, project_id, request)
    given = recipe_of(parts, project_id, request)
    draft = recipes.read(given, named.contract) if isinstance(given, bytes) else None
    recipe = draft.recipe if draft is not None else None
    if isinstance(given, str):
        recipe = stored_recipe(parts, project_id, given, named.contract)
    lost = contents.lost(parts, project_id, request.inputs.values())
    with parts.database.write() as session:
        whole, artifact_id = settled(session, project_id, request, recipe, named.name, lost)
        if draft is not None:
            recipes.keep(session, project_id, draft)
        job = _add(session, asking, whole, artifact_id)
        return job, _admitted(session, asking, job)


def _known(parts: Parts, project_id: str, sent: Sent) -> Job | None:
    if sent.key is None:
        return None
    with parts.database.read() as session:
        job = jobs.by_key(session, project_id, sent.key)
    return None if job is None else _same(job, sent)


def _same(job: Job, sent: Sent) -> Job:
    if job.request_digest != sent.digest:
        raise IdempotencyKeyReused(
            f"The key stands for job {job.id}, which was asked for with another body.",
            Fault("header", "Idempotency-Key", f"this key stands for job {job.id}"),
        )
    return job


def _admitted(session: Session, asking: Asking, job: Job) -> list[Job]:
    """What is to be put in line now that the job is stored."""
    if job.admitted_at is not None:
        return [job] if job.state == "queued" else []
    return admission.admit(session, asking.settings, asking.project_id)


def _add(
    session: Session,
    asking: Asking,
    whole: dict[str, Any],
    artifact_id: str | None,
    compared: tuple[str, str] | None = None,
) -> Job:
    project_id, sent, terms = asking.project_id, asking.sent, asking.terms
    job_id, moment = new_id(), now()
    late = terms.deadline_seconds
    at_once = admission.has_room(session, asking.settings, project_id, terms.lane)
    job = jobs.add(
        session,
        Job(
            id=job_id,
            project_id=project_id,
            type=whole["type"],
            state="queued",
            request=whole,
            request_digest=sent.digest,
            idempotency_key=sent.key,
            artifact_id=artifact_id,
            lane=terms.lane,
            priority=terms.priority,
            admitted_at=moment if at_once else None,
            deadline_at=None if late is None else moment + timedelta(seconds=late),
            campaign_id=asking.campaign_id,
            created_by=asking.created_by,
            created_at=moment,
        ),
    )
    if job.id != job_id:
        return _same(job, sent)  # of two requests with one key at once, the other came first
    shared = {"id": job_id, "project_id": project_id, "job_id": job_id, "created_at": moment}
    if compared is not None:
        comparisons.add(session, Comparison(**shared, a_artifact_id=compared[0], b_artifact_id=compared[1]))
        return job
    if whole["type"] == Check.type:
        return job
    if whole["type"] == CheckScheme.type:
        form = whole.get("form")
        scheme_rows.add(
            session, SchemeCheck(**shared, subject="struct" if form is None else "parts", form=form)
        )
        return job
    if whole["type"] == Fetch.type:
        import_rows.add(session, Import(**shared, source=whole["source"]))
        return job
    recipe = whole["recipe"]
    shared |= {"recipe_digest": None if recipe == AUTO else recipe, "checkpoints": whole["checkpoints"]}
    if artifact_id is not None:
        asked = {name: whole[name] for name in ("checks", "target", "canonical", "sample", "full")}
        asked["max_age_seconds"] = whole["max_age_seconds"]
        runs.add(session, Run(**shared, **asked, artifact_id=artifact_id))
    else:
        conversions.add(session, Conversion(**shared, inputs=whole["inputs"], output=whole["output"]))
    return job


def view(parts: Parts, project_id: str, job_id: str) -> JobView:
    """Raises: JobNotFound."""
    with parts.database.read() as session:
        job = jobs.job(session, project_id, job_id)
        if job is None:
            raise _not_found(job_id)
        return viewed(parts, session, project_id, [job])[0]


def page(
    parts: Parts, project_id: str, *, limit: int, cursor: str | None, state: str | None, type_: str | None
) -> Page[JobView]:
    """Newest first. Raises: BadCursor."""
    with parts.database.read() as session:
        found = jobs.jobs(session, project_id, limit=limit, cursor=cursor, state=state, type=type_)
        return Page(viewed(parts, session, project_id, found.items), found.next)


def cancel(parts: Parts, project_id: str, job_id: str, actor: str) -> JobView:
    """Ask a job to stop; one that is final stays as it is. Raises: JobNotFound."""
    with parts.database.write() as session:
        found = jobs.job(session, project_id, job_id, lock=True)
        if found is None:
            raise _not_found(job_id)
        if found.state in jobs.OPEN and not found.cancel_requested:
            audit.add(session, project_id, actor, "job.cancelled", job_id, {"was": found.state})
        jobs.request_cancel(session, project_id, job_id)
    admission.admit_waiting(parts, project_id)  # its place may be free now
    return view(parts, project_id, job_id)


def events(parts: Parts, project_id: str, job_id: str, after: int) -> tuple[Sequence[JobEvent], bool]:
    """What happened after event `after`, and whether that was all there will ever be. Raises: JobNotFound."""
    with parts.database.read() as session:
        # The state first: when it is final, its event is there to be read.
        job = jobs.job(session, project_id, job_id)
        if job is None:
            raise _not_found(job_id)
        found = jobs.events(session, job_id, after, _EVENTS_AT_ONCE)
    return found, job.state in jobs.FINAL and len(found) < _EVENTS_AT_ONCE


def viewed(parts: Parts, session: Session, project_id: str, found: Sequence[Job]) -> list[JobView]:
    """Jobs with what is told of them, within a transaction."""
    queued = [job for job in found if job.state == "queued"]
    admitted = [job for job in queued if job.admitted_at is not None]
    waits = workforce(session, parts).waits if admitted else None
    without = len(admitted) < len(queued)
    room = admission.waits_for_room(session, parts.settings, project_id) if without else None
    progress = jobs.progress_of(session, [job.id for job in found])
    ids = {job.artifact_id for job in found if job.artifact_id is not None}
    artifacts = views.artifacts(session, project_id, ids) if ids else {}
    return [
        JobView(
            job,
            progress[job.id],
            artifacts[job.artifact_id].digest if job.artifact_id in artifacts else None,
            (waits if job.admitted_at is not None else room) if job.state == "queued" else None,
        )
        for job in found
    ]


def links(job: Job) -> dict[str, Any]:
    """Where to go on from a job."""
    own = f"/v1/jobs/{job.id}"
    found = {"self": own, "events": f"{own}/events", "cancel": f"{own}/cancel"}
    if job.type != Check.type or answered_selfcheck(job) is not None:
        whole = _WHOLES[job.type]
        found[whole.removesuffix("s").replace("-", "_")] = f"/v1/{whole}/{job.id}"
    return found


def answered_selfcheck(job: Job) -> str | None:
    """The id of the self-check that a job has left behind."""
    return job.id if job.type == Check.type and job.state in selfchecks.ANSWERED else None


def _not_found(job_id: str) -> JobNotFound:
    return JobNotFound(f"This project never had a job {job_id}.")
