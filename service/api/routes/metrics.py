"""What Prometheus reads: the counters of this process, and what the database says of queue, workers and uploads."""

from collections.abc import Iterator
from typing import Final

from fastapi import APIRouter
from prometheus_client import CollectorRegistry
from prometheus_client.core import GaugeMetricFamily
from starlette.requests import Request
from starlette.responses import Response

from service import metrics
from service.api.parameters import PartsParam, address_of
from service.api.problems import describe
from service.entry import bearer
from service.errors import RateLimited, RouteNotFound, Unauthorized
from service.lanes import LANES
from service.parts import Parts
from service.records import gauges, lanes
from service.records.database import moment
from service.records.models import DEFAULT_PROJECT
from service.records.uploads import OPEN as OPEN_UPLOADS
from service.scopes import ADMIN

_PLACES: Final[tuple[lanes.Place, ...]] = ("waiting", "in_line", "running")
_EXAMPLE: Final = (
    '# TYPE ninfer_gate_queue_jobs gauge\nninfer_gate_queue_jobs{lane="bulk",state="in_line"} 3.0\n'
)
_SAID: Final = {"content": {"text/plain": {"schema": {"type": "string"}, "example": _EXAMPLE}}}

router = APIRouter(tags=["health"])


@router.get(
    "/metrics",
    summary="Metrics for Prometheus",
    response_class=Response,
    responses={200: {"description": "Prometheus text.", **_SAID}, **describe(RouteNotFound)},
)
def read_metrics(parts: PartsParam, request: Request) -> Response:
    """Queue depth and age by lane, workers, uploads, and the counters of the process that answers.

    With the setting `metrics_token`, that token opens it; without, a token of an administrator of the first project;
    with `metrics_open`, none is needed. For anybody else there is nothing here.
    """
    scheme, _, token = request.headers.get("Authorization", "").partition(" ")
    _require(parts, token.strip() if scheme.lower() == "bearer" else None, address_of(request))
    registry = CollectorRegistry()
    registry.register(_Gauges(parts))
    return Response(metrics.exposition(registry), media_type=metrics.MEDIA_TYPE)


def _require(parts: Parts, token: str | None, address: str) -> None:
    if metrics.may_read(parts.settings, token):
        return
    if parts.settings.metrics_token is None and token is not None:
        try:
            caller = bearer(parts, token, address)
        except (Unauthorized, RateLimited):  # a failed try as anywhere else; and there is nothing here
            caller = None
        if caller is not None and caller.project_id == DEFAULT_PROJECT and caller.may(ADMIN):
            return
    raise RouteNotFound("There is nothing at this address.")


class _Gauges:
    """What is true at this moment, asked when it is told: it outlives no process and adds up over none."""

    def __init__(self, parts: Parts) -> None:
        with parts.database.read() as session:
            now = moment(session)
            self._depths = {
                (item.lane, item.state): (item.jobs, max(0.0, (now - item.oldest_at).total_seconds()))
                for item in lanes.depths(session)
            }
            self._uploads = gauges.open_uploads(session)
            self._workers = gauges.workers(session, parts.settings.dead_after_seconds)
            self._campaigns = gauges.campaigns(session)
            self._doomed = gauges.doomed(session)

    def describe(self) -> list[GaugeMetricFamily]:
        """Nothing: names are looked at when they are told."""
        return []

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """See `prometheus_client.registry.Collector`."""
        yield from self._queue()
        workers = GaugeMetricFamily("ninfer_gate_workers", "Workers that are alive.", labels=["draining"])
        for draining in (False, True):
            workers.add_metric([str(draining).lower()], self._workers.get(draining, 0))
        yield workers
        count = GaugeMetricFamily("ninfer_gate_open_uploads", "Uploads under way.", labels=["state"])
        size = GaugeMetricFamily(
            "ninfer_gate_open_upload_bytes", "Bytes that uploads under way announced.", labels=["state"]
        )
        found = {item.state: item for item in self._uploads}
        for state in OPEN_UPLOADS:
            item = found.get(state)
            count.add_metric([state], item.uploads if item else 0)
            size.add_metric([state], item.bytes if item else 0)
        yield from (count, size)
        yield GaugeMetricFamily("ninfer_gate_running_campaigns", "Campaigns that run.", self._campaigns)
        doomed, total = self._doomed
        yield GaugeMetricFamily("ninfer_gate_doomed_blobs", "Content that is about to go.", doomed)
        yield GaugeMetricFamily("ninfer_gate_doomed_bytes", "Bytes of it.", total)

    def _queue(self) -> Iterator[GaugeMetricFamily]:
        labels = ["lane", "state"]
        depth = GaugeMetricFamily(
            "ninfer_gate_queue_jobs",
            "Open jobs by lane: waiting for their project's room, in line, or running.",
            labels=labels,
        )
        age = GaugeMetricFamily(
            "ninfer_gate_queue_oldest_seconds", "Age of the oldest of these jobs; 0 for none.", labels=labels
        )
        for lane in LANES:
            for state in _PLACES:
                jobs, seconds = self._depths.get((lane, state), (0, 0.0))
                depth.add_metric([lane, state], jobs)
                age.add_metric([lane, state], seconds)
        yield from (depth, age)
