"""Live progress: server-sent events of one job, or of the open jobs of a list, for the pages' script.

A job's own events are the API's business (`/v1/jobs/{id}/events`). A page wants less and more: no history, but words and
numbers just as the page shows them, also between two events, and a sign of life that tells a quiet job from a dead line.
"""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import asdict
from typing import Annotated, Final

from fastapi import APIRouter, Query
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response, StreamingResponse

from service import entry
from service.auth import Caller
from service.dashboard.access import Visiting, Visitor
from service.dashboard.failures import PageRoute, missing
from service.dashboard.progress import progress_line
from service.dashboard.render import HEADERS, fragment
from service.dashboard.verdicts import shown
from service.parts import Parts
from service.records import answers, jobs, runs, views
from service.records.models import Run

router = APIRouter(route_class=PageRoute)
LOOK_SECONDS: Final = 0.5  # between two looks at the database
BEAT_SECONDS: Final = 5.0  # of silence before a sign of life; the script gives a line up after four of them
RETRY_MILLISECONDS: Final = 2_000
MOST_JOBS: Final = 50
_STREAM_HEADERS: Final = dict(HEADERS) | {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}


@router.get("/runs/{run_id}/events")
def of_run(visiting: Visiting, run_id: str) -> Response:
    """The job of one run."""
    with visiting.parts.database.read() as session:
        run = runs.run(session, visiting.project_id, run_id)
    if run is None:
        raise missing("run")
    return _stream(visiting, [run.job_id])


@router.get("/jobs/events")
def of_jobs(visiting: Visiting, job: Annotated[list[str], Query(max_length=MOST_JOBS)]) -> Response:
    """Several jobs of a list; those that are not there are left out."""
    return _stream(visiting, job)


def _stream(visiting: Visitor, job_ids: Sequence[str]) -> Response:
    return StreamingResponse(
        events(visiting.parts, visiting.caller, job_ids),
        media_type="text/event-stream",
        headers=_STREAM_HEADERS,
    )


async def events(parts: Parts, caller: Caller, job_ids: Sequence[str]) -> AsyncIterator[str]:
    """What changes, until every job is final; then `end`. Nothing more when the service closes or the session has ended."""
    yield f"retry: {RETRY_MILLISECONDS}\n\n"
    said: dict[str, str] = {}
    waiting = list(dict.fromkeys(job_ids))
    quiet_since = asked = time.monotonic()
    while waiting and not parts.closing.is_set():
        if time.monotonic() - asked >= entry.AGAIN_SECONDS:
            asked = time.monotonic()
            if not await run_in_threadpool(entry.lasts, parts, caller):
                return
        seen = await run_in_threadpool(_look, parts, caller.project_id, waiting)
        waiting = [id_ for id_ in waiting if id_ in seen and not seen[id_][0]]
        for id_, (_, data) in seen.items():
            if said.get(id_) != data:
                said[id_] = data
                quiet_since = time.monotonic()
                yield f"event: job\ndata: {data}\n\n"
        if time.monotonic() - quiet_since > BEAT_SECONDS:
            quiet_since = time.monotonic()
            yield "event: beat\ndata:\n\n"
        if waiting:
            await asyncio.sleep(LOOK_SECONDS)
    if not waiting:
        yield "event: end\ndata:\n\n"


def _look(parts: Parts, project_id: str, job_ids: Sequence[str]) -> dict[str, tuple[bool, str]]:
    """By job: whether it is final, and what its row should look like."""
    with parts.database.read() as session:
        found = views.jobs(session, project_id, job_ids)
        progress = jobs.progress_of(session, list(found))
        passed = [job.id for job in found.values() if job.state == "passed"]
        by_job = answers.of_jobs(session, Run, project_id, passed)
    seen = {}
    for id_, job in found.items():
        final = job.state in jobs.FINAL
        document = {
            "job": id_,
            "final": final,
            "state": job.state,
            "mark": fragment(
                "parts/marks.html",
                "state_mark",
                shown(job.state, by_job[id_].report if id_ in by_job else None),
            ),
            **({} if final else asdict(progress_line(job, progress[id_]))),
        }
        seen[id_] = (final, json.dumps(document))
    return seen
