"""What there is to do and who does it: the lanes, the workers, and the jobs that were tried again or set aside."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from service.dashboard.access import Visiting
from service.dashboard.failures import PageRoute
from service.dashboard.format import clipped
from service.dashboard.render import page
from service.dashboard.states import STATES, State
from service.lanes import LANES
from service.records import jobs, lanes, views, workers
from service.records.lanes import Depth
from service.records.models import Artifact, Job, Worker
from service.scopes import ADMIN
from service.workforce import workforce

router = APIRouter(route_class=PageRoute)
TRIED, SET_ASIDE, WORKERS = 20, 20, 100
STATES_OF_LANE: Final = ("waiting", "in_line", "running")


@dataclass(frozen=True, slots=True)
class LaneRow:
    """One lane: jobs by state, and since when the oldest of those that do not run yet has been there."""

    lane: str
    jobs: dict[str, int]
    oldest_at: datetime | None


@dataclass(frozen=True, slots=True)
class WorkerRow:
    """A worker, when it was last heard of, and how it is."""

    worker: Worker
    beat_at: datetime
    state: State


@dataclass(frozen=True, slots=True)
class Troubled:
    """A job that did not go well at once: what it is about and what was said last."""

    job: Job
    artifact: Artifact | None
    code: str
    detail: str


@router.get("/queue")
def one(visiting: Visiting, request: Request) -> Response:
    """Of this project; workers are those of the service."""
    project = visiting.project_id
    with visiting.parts.database.read() as session:
        depths = lanes.depths(session, project)
        tried = views.tried_again(session, project, TRIED)
        set_aside = jobs.jobs(session, project, limit=SET_ASIDE, state="error").items
        ids = {job.artifact_id for job in (*tried, *set_aside) if job.artifact_id}
        held = views.artifacts(session, project, ids)
        known = workers.all(session)
        silent = {
            worker.executor_id
            for worker in workers.stale(session, visiting.parts.settings.dead_after_seconds)
        }
        alive = workforce(session, visiting.parts)
    return page(
        request,
        "queue.html",
        rows=[_row(lane, depths) for lane in LANES],
        settings=visiting.parts.settings,
        workers=[_worker(worker, worker.executor_id in silent) for worker in known[:WORKERS]],
        more_workers=max(0, len(known) - WORKERS),
        tells_hosts=visiting.may(ADMIN),
        tried=[_troubled(job, held) for job in tried],
        set_aside=[_troubled(job, held) for job in set_aside],
        more_set_aside=len(set_aside) == SET_ASIDE,
        alive=alive,
    )


def _row(lane: str, depths: list[Depth]) -> LaneRow:
    mine = [depth for depth in depths if depth.lane == lane]
    waiting = [depth.oldest_at for depth in mine if depth.state != "running" and depth.oldest_at is not None]
    counts = {state: sum(depth.jobs for depth in mine if depth.state == state) for state in STATES_OF_LANE}
    return LaneRow(lane, counts, min(waiting, default=None))


def _worker(worker: Worker, silent: bool) -> WorkerRow:
    state = "silent" if silent else "draining" if worker.draining else "alive"
    return WorkerRow(worker, datetime.fromtimestamp(worker.beat_at, UTC), STATES[state])


def _troubled(job: Job, held: dict[str, Artifact]) -> Troubled:
    said = (job.error if job.state == "error" else job.last_error) or job.last_error or {}
    code, detail = clipped(said.get("code") or "error", 60), said.get("detail") or "no reason was recorded"
    return Troubled(job, held.get(job.artifact_id or ""), code, clipped(detail))
