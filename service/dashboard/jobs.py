"""Pages of jobs: the list, one conversion, and the button that cancels."""

from dataclasses import dataclass
from typing import Annotated, Any, Literal, get_args

from fastapi import APIRouter, Path
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from service import jobs as job_cases
from service.dashboard.access import SameOrigin, Submitting, Visiting
from service.dashboard.against import against
from service.dashboard.artifacts import Text, making
from service.dashboard.compared import Compared, with_artifacts
from service.dashboard.failures import PageRoute, missing
from service.dashboard.format import clipped, duration
from service.dashboard.progress import Line, progress_line
from service.dashboard.render import HEADERS, page
from service.dashboard.states import STATES, State
from service.dashboard.verdicts import shown
from service.errors import JobNotFound
from service.jobs import JobState
from service.records import answers, comparisons, conversions, jobs, runs, views
from service.records.jobs import Progress
from service.records.models import Artifact, Comparison, Conversion, Job, Run
from service.workforce import SOMEBODY, Workforce, workforce

router = APIRouter(route_class=PageRoute)
JOBS, OBJECTS, FINDINGS, TENSORS = 50, 100, 50, 50
JobId = Annotated[str, Path(pattern="^[0-9a-f]{32}$")]
JobType = Literal["verify", "convert", "compare", "selfcheck", "scheme"]
_ROOMS = {"selfcheck": "selfchecks", "scheme": "scheme-checks"}  # of jobs whose page has the job's id


@dataclass(frozen=True, slots=True)
class JobRow:
    """A job with what it is about, as the list shows it; `line` is None once it is final."""

    job: Job
    artifact: Artifact | None
    run: Run | None
    recipe_id: str | None
    line: Line | None
    compared: Compared | None = None
    against: tuple[str, ...] = ()

    @property
    def address(self) -> str:
        """Where its page is."""
        if self.run is not None:
            return f"/runs/{self.run.id}"
        if self.compared is not None:
            return self.compared.address
        return f"/{_ROOMS.get(self.job.type, 'jobs')}/{self.job.id}"

    @property
    def shown(self) -> str:
        """The key of its state, with what a pass rests on."""
        return shown(self.job.state, self.run.report if self.run is not None else None)

    @property
    def took(self) -> str | None:
        """How long it ran."""
        return duration(self.job.started_at, self.job.finished_at)


@router.get("/jobs")
def listing(
    visiting: Visiting,
    request: Request,
    state: JobState | None = None,
    type: JobType | None = None,  # noqa: A002  the member of the address
    cursor: Text = None,
) -> Response:
    """The jobs, newest first."""
    project = visiting.project_id
    with visiting.parts.database.read() as session:
        listed = jobs.jobs(session, project, limit=JOBS, cursor=cursor, state=state, type=type)
        ids = [job.id for job in listed.items]
        held = views.artifacts(session, project, {job.artifact_id for job in listed.items if job.artifact_id})
        by_job = answers.of_jobs(session, Run, project, ids)
        made = answers.of_jobs(session, Conversion, project, ids)
        names = views.recipe_ids(session, project, {row.recipe_digest for row in made.values()})
        of_jobs = answers.of_jobs(session, Comparison, project, ids)
        compared = {row.job.id: row for row in with_artifacts(session, project, list(of_jobs.values()))}
        words = against(session, project, [*by_job.values(), *made.values()])
        open_jobs = [job for job in listed.items if job.state not in jobs.FINAL]
        progress = jobs.progress_of(session, [job.id for job in open_jobs])
        alive = workforce(session, visiting.parts) if open_jobs else SOMEBODY
    lines = {job.id: progress_line(job, progress[job.id]) for job in open_jobs}
    rows = [
        JobRow(
            job,
            held.get(job.artifact_id or ""),
            by_job.get(job.id),
            names.get(made[job.id].recipe_digest) if job.id in made else None,
            lines.get(job.id),
            compared.get(job.id),
            words.get(job.id, ()),
        )
        for job in listed.items
    ]
    watched = [("job", job.id) for job in open_jobs]
    return page(
        request,
        "jobs.html",
        rows=rows,
        listed=listed,
        state=state,
        type=type,
        choices=get_args(JobState),
        alive=alive,
        live="/jobs/events?" + "&".join(f"{key}={value}" for key, value in watched) if watched else None,
    )


@router.get("/jobs/{job_id}")
def one(
    visiting: Visiting, request: Request, job_id: JobId, objects: Text = None, findings: Text = None
) -> Response:
    """A conversion; a verification has its page among the runs, comparisons and checks have one of their own."""
    project = visiting.project_id
    with visiting.parts.database.read() as session:
        job = jobs.job(session, project, job_id)
        if job is None:
            raise missing("job")
        run = runs.by_job(session, job_id)
        if run is not None:
            return RedirectResponse(f"/runs/{run.id}", 303, HEADERS)
        if (comparison := comparisons.by_job(session, job_id)) is not None:
            return RedirectResponse(f"/comparisons/{comparison.id}", 303, HEADERS)
        if job.type in _ROOMS:
            return RedirectResponse(f"/{_ROOMS[job.type]}/{job_id}", 303, HEADERS)
        conversion = conversions.by_job(session, job_id)
        if conversion is None:
            raise missing("job")
        progress = jobs.progress(session, job_id)
        context: dict[str, Any] = {
            "made": making(session, project, conversion),
            "artifact": views.artifacts(session, project, [conversion.artifact_id or ""]).get(
                conversion.artifact_id or ""
            ),
            "objects": conversions.objects(session, conversion.id, limit=OBJECTS, cursor=objects),
            "findings": conversions.findings(session, conversion.id, limit=FINDINGS, cursor=findings),
        }
        alive = workforce(session, visiting.parts) if job.state == "queued" else SOMEBODY
    return page(
        request,
        "conversion.html",
        job=job,
        conversion=conversion,
        state=_state(job, conversion),
        why=_why(job, conversion, progress, alive),
        accounting=(conversion.document or {}).get("accounting") or {},
        most=TENSORS,
        took=duration(job.started_at, job.finished_at),
        progress=progress_line(job, progress),
        is_open=job.state not in jobs.FINAL,
        live=f"/jobs/events?job={job.id}" if job.state not in jobs.FINAL else None,
        **context,
    )


@router.post("/jobs/{job_id}/cancel", dependencies=[SameOrigin])
def cancel(visiting: Submitting, job_id: JobId) -> Response:
    """Ask for a job to stop; what is final stays as it is."""
    try:
        job_cases.cancel(visiting.parts, visiting.project_id, job_id, visiting.caller.actor)
    except JobNotFound:
        raise missing("job") from None
    return RedirectResponse(f"/jobs/{job_id}", 303, HEADERS)


def _state(job: Job, conversion: Conversion) -> State:
    return STATES[_word(job, conversion)]


def _word(job: Job, conversion: Conversion) -> str:
    """What came of it; `written` and `refused` only when the job ended so."""
    return conversion.verdict or job.state if job.state in ("passed", "failed") else job.state


def _why(job: Job, conversion: Conversion, progress: Progress, alive: Workforce) -> str:
    match _word(job, conversion):
        case "written":
            return "Every object was encoded, checked and written."
        case "refused" | "failed":
            return "Nothing was written: what follows has to be put right first."
        case "error":
            detail = clipped((job.error or {}).get("detail") or "no reason was recorded")
            return f"It could not be done: {detail}" + ("" if detail.endswith(".") else ".")
        case "cancelled":
            return "It was stopped before it was done; nothing was written."
        case "queued":
            return alive.waits
    return "A worker writes it now. This page follows along." if progress.bytes else "A worker begins."
