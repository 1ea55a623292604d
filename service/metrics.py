"""What is counted and timed, under names that stay: one place, so that a dashboard and an alert can rely on them.

Anything may count here. `service.api` tells them for its process, with what the database says of the queue; a worker tells
its own on a port, where a setting names one. Labels have few values: never an id, a path or a name that a client chose.
"""

import hmac
import threading
from collections.abc import Callable, Iterable
from socketserver import ThreadingMixIn
from typing import Any, Final
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from prometheus_client import (
    CONTENT_TYPE_LATEST,
    CollectorRegistry,
    Counter,
    Histogram,
    disable_created_metrics,
    generate_latest,
)
from prometheus_client.process_collector import ProcessCollector

from service.settings import Settings

# Or each would have a second series, which says when it began: nobody asks.
disable_created_metrics()  # type: ignore[no-untyped-call]  # the library has no types for it
REGISTRY: Final = CollectorRegistry()
MEDIA_TYPE: Final = CONTENT_TYPE_LATEST
_REQUEST_SECONDS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)
_LATENCY_SECONDS: Final = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)

UPLOADED: Final = Counter(
    "ninfer_gate_upload_bytes", "Bytes of content that came in.", ["protocol"], registry=REGISTRY
)
ERRORS: Final = Counter(
    "ninfer_gate_errors", "Refusals and failed jobs by their code.", ["code"], registry=REGISTRY
)
REQUESTS: Final = Histogram(
    "ninfer_gate_request_seconds",
    "Seconds of a request, to the end of its answer; of an event stream, to its beginning.",
    ["method", "route", "status"],
    registry=REGISTRY,
    buckets=_REQUEST_SECONDS,
)
CACHE: Final = Counter(
    "ninfer_gate_cache_reads",
    "Reads of stored content by whether the cache had it.",
    ["found"],
    registry=REGISTRY,
)
DAMAGED: Final = Counter(
    "ninfer_gate_damaged_blobs", "Stored content that was found changed. Alarm on any.", registry=REGISTRY
)
SHARD_BYTES: Final = Counter(
    "ninfer_gate_shard_bytes",
    "Bytes of finished shards by kind of work, for verifications with the checks of their one pass.",
    ["work", "checks"],
    registry=REGISTRY,
)
SHARD_SECONDS: Final = Counter(
    "ninfer_gate_shard_seconds", "Seconds of the same shards.", ["work", "checks"], registry=REGISTRY
)
VERDICT_LATENCY: Final = Histogram(
    "ninfer_gate_verdict_latency_seconds",
    "Seconds from the last shard to the verdict.",
    ["type"],
    registry=REGISTRY,
    buckets=_LATENCY_SECONDS,
)
JOBS: Final = Counter(
    "ninfer_gate_jobs", "Jobs that a worker ended.", ["type", "lane", "state"], registry=REGISTRY
)
RETRIES: Final = Counter("ninfer_gate_retries", "Work begun again by why.", ["why"], registry=REGISTRY)
ProcessCollector(registry=REGISTRY)  # process_resident_memory_bytes, process_open_fds and so on


def exposition(*more: CollectorRegistry) -> bytes:
    """All of it as Prometheus reads it, then what is in `more`."""
    return b"".join(generate_latest(registry) for registry in (REGISTRY, *more))


def may_read(settings: Settings, token: str | None) -> bool:
    """Whether a setting lets somebody with this bearer token read the metrics, whoever that is."""
    if settings.metrics_open:
        return True
    if settings.metrics_token is None or token is None:
        return False
    return hmac.compare_digest(
        token.encode(errors="replace"), settings.metrics_token.encode(errors="replace")
    )


class _Server(ThreadingMixIn, WSGIServer):
    daemon_threads = True


class _Handler(WSGIRequestHandler):
    timeout = 10  # of a client that sends or reads nothing

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  the name it has there
        """Nothing: a scrape is no news."""


def serve(settings: Settings, well: Callable[[], bool]) -> Callable[[], None]:
    """Tell the metrics of this process on a port of its own, where the settings name one; the answer ends that.

    /healthz there says with 200 or 503 whether it is `well`.

    There, a token is asked for only when one is set: the address is this machine's alone unless a setting says otherwise.
    Raises: OSError when the port cannot be had.
    """
    if settings.metrics_port is None:
        return lambda: None

    def answer(environment: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        if environment.get("PATH_INFO") == "/healthz":
            fine = well()
            start("200 OK" if fine else "503 Service Unavailable", [("Content-Type", "text/plain")])
            return [b"ok\n" if fine else b"not ready\n"]
        scheme, _, token = environment.get("HTTP_AUTHORIZATION", "").partition(" ")
        given = token if scheme.lower() == "bearer" else None
        allowed = settings.metrics_token is None or may_read(settings, given)
        if environment.get("PATH_INFO") != "/metrics" or not allowed:
            start("404 Not Found", [("Content-Type", "text/plain")])
            return [b"There is nothing at this address.\n"]
        start("200 OK", [("Content-Type", MEDIA_TYPE)])
        return [exposition()]

    server = make_server(settings.metrics_host, settings.metrics_port, answer, _Server, _Handler)
    threading.Thread(target=server.serve_forever, name="metrics", daemon=True).start()

    def stop() -> None:
        server.shutdown()
        server.server_close()

    return stop
