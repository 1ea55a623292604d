"""What happens to a job, as server-sent events."""

import json
import time
from collections.abc import AsyncIterator, Sequence
from typing import Annotated, Any, Final

from fastapi import APIRouter, Header, Query
from fastapi.sse import KEEPALIVE_COMMENT, EventSourceResponse, format_sse_event
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from service import entry, jobs
from service.api.parameters import CallerParam, DoneJobId, PartsParam
from service.api.problems import describe
from service.auth import Caller
from service.errors import InvalidRequest, JobNotFound
from service.parts import Parts
from service.records.models import JobEvent

router = APIRouter(prefix="/v1/jobs", tags=["jobs"])

WAIT_SECONDS: Final = 1.0  # for news, until the connection, the token and the service are looked after
QUIET_SECONDS: Final = 15.0  # after which a comment shows that the connection still lives
_HEADERS: Final = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}

After = Annotated[int | None, Query(ge=0, description="Go on after this event; 0 is the beginning.")]
LastEventId = Annotated[
    int | None,
    Header(ge=0, alias="Last-Event-ID", description="As `after`, which goes before it; browsers send it."),
]


@router.get(
    "/{job}/events",
    summary="Events of a job",
    response_class=Response,
    responses={
        200: {
            "description": "Events `state`, `progress`, `retry` and `restarted`, numbered by `id`; the stream ends after the final state.",
            "content": {"text/event-stream": {"schema": {"type": "string"}}},
        },
        204: {"description": "The job is final and every event was heard: there is nothing to wait for."},
        **describe(JobNotFound, InvalidRequest),
    },
)
async def events(
    job: DoneJobId,
    parts: PartsParam,
    caller: CallerParam,
    after: After = None,
    last_event_id: LastEventId = None,
) -> Response:
    """`state`: {"state", and at the end "run" or "conversion", "verdict", "artifact", "error"}.

    `progress`: {"objects_done", "objects", "bytes_done", "bytes"}. `retry`: {"attempt", "code", "detail", "seconds"}, where
    something failed that may pass. `restarted`: {"epoch", "reason"}, where all is worked out anew. Reconnect with `Last-Event-ID` or `after`.
    """
    # A browser that connects again sends the address it knows, and the header with where it really was.
    begin = last_event_id if last_event_id is not None else after or 0
    first, ended = await run_in_threadpool(jobs.events, parts, caller.project_id, job, begin)
    if ended and not first:
        return Response(status_code=204)
    stream = _stream(parts, caller, job, begin, first, ended)
    return EventSourceResponse(stream, headers=_HEADERS)


async def _stream(
    parts: Parts, caller: Caller, job_id: str, after: int, found: Sequence[JobEvent], ended: bool
) -> AsyncIterator[bytes]:
    said = asked = time.monotonic()
    while True:
        for event in found:
            yield written(event)
            after, said = event.seq, time.monotonic()
        if ended or parts.closing.is_set():
            return
        if time.monotonic() - said >= QUIET_SECONDS:
            yield KEEPALIVE_COMMENT
            said = time.monotonic()
        news = await parts.hearing.news(job_id, after, WAIT_SECONDS)
        if time.monotonic() - asked >= entry.AGAIN_SECONDS:
            asked = time.monotonic()
            if not await run_in_threadpool(entry.lasts, parts, caller):
                return
        found = ()
        if news:
            found, ended = await run_in_threadpool(jobs.events, parts, caller.project_id, job_id, after)


def written(event: JobEvent) -> bytes:
    """An event on the wire."""
    data: dict[str, Any] = event.data
    return format_sse_event(data_str=json.dumps(data), event=event.type, id=str(event.seq))
