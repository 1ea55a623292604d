"""What is counted and timed, under names that stay: one place, so that a dashboard and an alert can rely on them.

Anything may count here; who tells them is `service.api` for its process and a worker for its own.
"""

from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

REGISTRY: Final = CollectorRegistry()

UPLOADED: Final = Counter(
    "ninfer_gate_upload_bytes", "Bytes of content that came in.", ["protocol"], registry=REGISTRY
)
ERRORS: Final = Counter(
    "ninfer_gate_errors", "Refusals and failed jobs by their code.", ["code"], registry=REGISTRY
)
REQUESTS: Final = Histogram(
    "ninfer_gate_request_seconds", "Seconds of a request.", ["method", "route", "status"], registry=REGISTRY
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
    "ninfer_gate_shard_bytes", "Bytes of finished shards by kind of work.", ["work"], registry=REGISTRY
)
SHARD_SECONDS: Final = Counter(
    "ninfer_gate_shard_seconds", "Seconds of finished shards by kind of work.", ["work"], registry=REGISTRY
)
VERDICT_LATENCY: Final = Histogram(
    "ninfer_gate_verdict_latency_seconds",
    "Seconds from the last shard to the verdict.",
    ["type"],
    registry=REGISTRY,
)
JOBS: Final = Counter("ninfer_gate_jobs", "Jobs that ended.", ["type", "lane", "state"], registry=REGISTRY)
RETRIES: Final = Counter("ninfer_gate_retries", "Work begun again by why.", ["why"], registry=REGISTRY)
WORKERS: Final = Gauge("ninfer_gate_workers", "Workers that are alive.", registry=REGISTRY)
