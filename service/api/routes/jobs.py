"""Jobs: asked for, followed, cancelled."""

from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Header, Query, Response

from service import jobs
from service.api import body, examples
from service.api.parameters import CallerParam, JobId, Paging, PartsParam, SubmitCaller
from service.api.problems import describe
from service.api.schemas.base import PageOf
from service.api.schemas.jobs import JOB, AnyJobSent, JobRead
from service.errors import (
    BlobsMissing,
    CheckUnknown,
    IdempotencyKeyReused,
    ImportRefused,
    InvalidRequest,
    JobNotFound,
    RecipeFaulty,
    RecipeMismatch,
    ReferenceUnknown,
)

router = APIRouter(prefix="/v1/jobs", tags=["jobs"])
IdempotencyKey = Annotated[
    str | None,
    Header(
        min_length=1,
        max_length=255,
        pattern=r"^[\x21-\x7e]+$",
        description="The same key and body give the same job; the same key with another body is refused.",
    ),
]


class JobPaging(Paging):
    """Jobs by state and type."""

    state: jobs.JobState | None = None
    type: Literal["verify", "convert", "compare", "selfcheck", "scheme", "import"] | None = None


@router.post(
    "",
    status_code=202,
    summary="Start a job",
    openapi_extra=body.request_body(
        JOB,
        verify=examples.VERIFY,
        verify_against_the_source=examples.VERIFY_PARITY,
        convert=examples.CONVERT,
        compare=examples.COMPARE,
        selfcheck=examples.SELFCHECK,
        scheme=examples.SCHEME,
        import_=examples.IMPORT,
    ),
    responses=describe(
        *body.BODY_ERRORS,
        CheckUnknown,
        ReferenceUnknown,
        BlobsMissing,
        RecipeFaulty,
        RecipeMismatch,
        IdempotencyKeyReused,
        ImportRefused,
    ),
)
def start(
    response: Response,
    parts: PartsParam,
    caller: SubmitCaller,
    sent: Annotated[body.Body[AnyJobSent], Depends(body.strict(JOB))],
    idempotency_key: IdempotencyKey = None,
) -> JobRead:
    """Verify an artifact, convert checkpoints into one, compare two, check a device, or what is stored by a foreign scheme.

    What can be seen to be wrong is said now.

    A recipe or checkpoints alone leave `parity` asked and unchecked, which ends as `incomplete`, as on the command line.
    """
    how = jobs.Sent.of(body.spelled(sent.document), idempotency_key)
    asked = sent.value
    job = jobs.create(
        parts, caller.project_id, asked.request(), how, terms=asked.terms, created_by=caller.actor
    )
    response.headers["Location"] = f"/v1/jobs/{job.id}"
    return JobRead.of(jobs.view(parts, caller.project_id, job.id))


@router.get("", summary="Jobs, newest first", responses=describe(InvalidRequest))
def page(parts: PartsParam, caller: CallerParam, query: Annotated[JobPaging, Query()]) -> PageOf[JobRead]:
    """What was asked for."""
    query.within(parts)
    found = jobs.page(
        parts, caller.project_id, limit=query.limit, cursor=query.cursor, state=query.state, type_=query.type
    )
    return PageOf(items=[JobRead.of(view) for view in found.items], next=found.next)


@router.get("/{job}", summary="A job", responses=describe(JobNotFound, InvalidRequest))
def one(job: JobId, response: Response, parts: PartsParam, caller: CallerParam) -> JobRead:
    """With its progress. While it is not final, `Retry-After` says when to ask again."""
    found = JobRead.of(jobs.view(parts, caller.project_id, job))
    if found.finished_at is None:
        response.headers["Retry-After"] = "1"
    return found


@router.post(
    "/{job}/cancel",
    status_code=202,
    summary="Cancel a job",
    responses=describe(JobNotFound, InvalidRequest),
)
def cancel(job: JobId, parts: PartsParam, caller: SubmitCaller) -> JobRead:
    """One that waits is cancelled at once, one that runs is asked to stop, one that is final stays as it is."""
    return JobRead.of(jobs.cancel(parts, caller.project_id, job, caller.actor))
