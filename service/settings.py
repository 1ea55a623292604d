"""Every setting, read once in `serve`, `worker` and `migrate`, then passed on; nothing else reads the environment."""

import json
import os
from dataclasses import fields
from ipaddress import ip_network
from pathlib import Path
from typing import Annotated, Final
from urllib.parse import quote

from pydantic import AfterValidator, BeforeValidator, Field, model_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from ninfer_core.schemes.structs.limits import LIMITS, Limits

RECORDS_FILE: Final = "records.sqlite"
_RATE: Final = r"^[1-9][0-9]{0,8}/(second|minute|hour|day)$"


def _decoded(given: object) -> object:
    # Not left to pydantic-settings, which has an error of its own for text that is no JSON.
    if not isinstance(given, str):
        return given
    try:
        return json.loads(given)
    except RecursionError:
        raise ValueError("it is nested too deep to be read") from None
    except ValueError as error:
        raise ValueError(f"it is no JSON: {error}") from None


def _limits(given: object) -> object:
    given = _decoded(given)
    unknown = set(given) - {limit.name for limit in fields(Limits)} if isinstance(given, dict) else ()
    if unknown:
        raise ValueError(f"no limit of struct types is called {', '.join(sorted(map(str, unknown)))}")
    return given


def _networks(given: tuple[str, ...]) -> tuple[str, ...]:
    for network in given:
        ip_network(network)
    return given


class Settings(BaseSettings):
    """Settings by environment variable `NINFER_GATE_<NAME>`; options of the command line go before them."""

    model_config = SettingsConfigDict(
        env_prefix="NINFER_GATE_",
        frozen=True,
        extra="forbid",
        hide_input_in_errors=True,  # what is wrong with one setting is no reason to print the others, secrets among them
    )

    data: Path = Field(
        default=Path("ninfer-gate-data"), description="Folder of the content store and the default databases."
    )
    database_url: str | None = Field(
        default=None,
        description="`sqlite:///file` or `postgresql://...`; SQLite in the data folder by default.",
    )
    engine_database_url: str | None = Field(
        default=None,
        description="The durable engine's own database: SQLite in the data folder, or a schema in the records' PostgreSQL.",
    )
    host: str = Field(default="127.0.0.1", description="Address to listen on.")
    port: int = Field(default=8000, ge=0, le=65535, description="Port to listen on; 0 takes a free one.")
    threads: int = Field(
        default_factory=lambda: os.cpu_count() or 1, ge=1, description="Shards that a worker runs at a time."
    )
    device: str = Field(
        default="auto",
        pattern=r"^(auto|cpu|cuda:[0-9]{1,3})$",
        description="What a worker's kernels run on: `auto` for a GPU that proves itself and the processor otherwise, `cpu`, or `cuda:N`, without which the worker does not start.",
    )
    store: str | None = Field(
        default=None,
        pattern=r"^s3://[a-z0-9][a-z0-9.-]{1,61}[a-z0-9](/[A-Za-z0-9_-][A-Za-z0-9._-]*)*/?$",
        description="Where content lies: `s3://bucket/prefix`; the data folder by default. Credentials come from the variables that S3 tools read (`AWS_ACCESS_KEY_ID` and so on).",
    )
    s3_endpoint: str | None = Field(
        default=None, description="Address of an S3-compatible server; that of AWS by default."
    )
    s3_region: str = Field(default="us-east-1", description="Region of the bucket.")
    s3_public_endpoint: str | None = Field(
        default=None,
        description="Address under which clients reach the S3 server, for presigned uploads; `s3_endpoint` by default.",
    )
    cache_bytes: int = Field(
        default=8 << 30,
        ge=0,
        description="Bytes of S3 content that a machine keeps in its data folder; 0 for none.",
    )
    import_roots: Annotated[tuple[Path, ...], NoDecode, BeforeValidator(_decoded)] = Field(
        default=(), description='Folders that imports may read, as JSON: `["/mnt/models"]`; none by default.'
    )
    import_buckets: Annotated[tuple[str, ...], NoDecode, BeforeValidator(_decoded)] = Field(
        default=(),
        description='Buckets, with a prefix or without, that imports may read: `["models/public"]`.',
    )
    upload_seconds: float = Field(
        default=7 * 86_400.0, gt=0, description="How long an upload may rest before it is given up."
    )
    max_open_uploads: int = Field(
        default=1_000, ge=1, description="Uploads of one project that may be open, whoever goes on with them."
    )
    upload_part_bytes: int = Field(
        default=64 << 20, ge=5 << 20, description="Bytes of one part of a presigned upload."
    )
    max_attempts: int = Field(
        default=5,
        ge=1,
        description="How often a piece of work is begun before it is set aside with its last error.",
    )
    interactive_weight: int = Field(
        default=4,
        ge=1,
        description="Pieces of interactive work that a worker begins for each `bulk_weight` pieces of bulk work.",
    )
    bulk_weight: int = Field(default=1, ge=1, description="The other side of `interactive_weight`.")
    campaign_window: int = Field(
        default=16, ge=1, description="Jobs of one campaign that are open at a time; the next ones follow."
    )
    max_running_jobs: int | None = Field(
        default=None,
        ge=1,
        description="Jobs of one project that run at a time, where the project has no bound of its own.",
    )
    quota_bytes: int | None = Field(
        default=None, ge=0, description="Content that one project may hold, where it has no bound of its own."
    )
    drain_seconds: float = Field(
        default=20.0,
        gt=0,
        le=25,
        description="How long a worker that is told to end finishes what it has begun; then it hands the rest back.",
    )
    keep_engine_seconds: float = Field(
        default=86_400.0, gt=0, description="How long the durable engine remembers work that has ended."
    )
    keep_unreferenced_seconds: float = Field(
        default=7 * 86_400.0,
        ge=3_600,
        description="How long content is kept that nothing refers to, since it last came in.",
    )
    keep_uploads_seconds: float = Field(
        default=30 * 86_400.0, gt=0, description="How long ended uploads stay listed."
    )
    keep_events_seconds: float = Field(
        default=90 * 86_400.0,
        gt=0,
        description="How long the events of jobs that are over are kept; their results stay.",
    )
    anonymous_read: str | None = Field(
        default=None, description="Name of a project that may be read without a token; none by default."
    )
    rate_limit: str = Field(
        default="6000/minute",
        pattern=_RATE,
        description="Requests that one token, or one address without any, may make of one process of the API: `6000/minute`, `20/second`.",
    )
    login_rate_limit: str = Field(
        default="30/minute",
        pattern=_RATE,
        description="Failed tries of one address to be let in; then it is refused unheard until the time is over.",
    )
    outbound_private: Annotated[
        tuple[str, ...], NoDecode, BeforeValidator(_decoded), AfterValidator(_networks)
    ] = Field(
        default=(),
        description='Networks of private addresses that requests of ours may go to: `["10.0.0.0/8"]`; none by default.',
    )
    metrics_token: str | None = Field(
        default=None,
        description="Bearer token of GET /metrics; without it, administrators of the first project may read it.",
    )
    metrics_open: bool = Field(default=False, description="GET /metrics without any token.")
    metrics_port: int | None = Field(
        default=None,
        ge=0,
        le=65535,
        description="Port on which a worker tells its own metrics, to anybody who reaches it where no `metrics_token` is set; none by default.",
    )
    metrics_host: str = Field(default="127.0.0.1", description="Address of that port.")
    trace_endpoint: str | None = Field(
        default=None,
        description="OTLP address over HTTP that traces go to, with the extra `otel`; none by default.",
    )
    shard_bytes: int = Field(
        default=256 << 20, ge=1, description="Bytes that one shard reads at most, where tasks can be parted."
    )
    max_blob_bytes: int = Field(
        default=128 << 30, ge=1, description="Most bytes of one blob, or of one upload in pieces."
    )
    max_uploads: int = Field(
        default=8,
        ge=1,
        description="Uploads that are taken at a time, of one project three quarters of them; further ones wait, unread.",
    )
    max_connections: int = Field(
        default=400, ge=1, description="Connections at a time; further ones are answered with 503."
    )
    idle_seconds: float = Field(
        default=30.0, gt=0, description="How long a body may pause before it is given up."
    )
    max_json_bytes: int = Field(default=16 << 20, ge=1, description="Largest JSON body.")
    max_json_depth: int = Field(default=64, ge=2, description="Deepest nesting of a JSON body.")
    struct_limits: Annotated[Limits, NoDecode, BeforeValidator(_limits)] = Field(
        default=LIMITS,
        description='How much a struct type may ask for, as JSON; what it does not name stays: `{"nesting": 32}`.',
    )
    max_check_bytes: int = Field(
        default=16 << 30,
        ge=1,
        description="Most bytes of content that one check of a scheme reads, all of them into a worker's memory.",
    )
    max_files: int = Field(default=2_000, ge=1, description="Most files of one artifact or checkpoint.")
    max_page: int = Field(default=1_000, ge=1, description="Most items on one page of a list.")
    heartbeat_seconds: float = Field(default=1.0, gt=0, description="How often a worker says that it lives.")
    dead_after_seconds: float = Field(
        default=15.0, gt=0, description="Silence after which a worker's work is handed on."
    )
    log_json: bool = Field(default=False, description="Log lines as JSON.")

    @model_validator(mode="after")
    def _hold_together(self) -> "Settings":
        if self.dead_after_seconds < 3 * self.heartbeat_seconds:
            raise ValueError(
                f"dead_after_seconds is {self.dead_after_seconds:g}, less than three times heartbeat_seconds "
                f"({self.heartbeat_seconds:g}): workers would kill one another"
            )
        return self

    @property
    def records_url(self) -> str:
        """Database of the records."""
        return self.database_url or _sqlite(self.data / RECORDS_FILE)

    @property
    def engine_url(self) -> str:
        """Database of the durable engine: its own file on SQLite, its own schema on PostgreSQL."""
        if self.engine_database_url is not None:
            return self.engine_database_url
        if not self.records_url.startswith("sqlite"):
            return self.records_url
        return _sqlite(self.data / "engine.sqlite")

    def environment(self) -> dict[str, str]:
        """These settings as another process of ours reads them."""
        values = self.model_dump(mode="json")
        return {
            f"NINFER_GATE_{name.upper()}": json.dumps(value) if isinstance(value, dict | list) else str(value)
            for name, value in values.items()
            if value is not None
        }


def _sqlite(path: Path) -> str:
    return f"sqlite:///{quote(str(path.absolute()))}"  # in an address, % and ? mean something
