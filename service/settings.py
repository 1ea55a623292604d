"""Every setting, read once in `serve`, `worker` and `migrate`, then passed on; nothing else reads the environment."""

import json
import os
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Final
from urllib.parse import quote

from pydantic import BeforeValidator, Field, model_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from ninfer_core.schemes.structs.limits import LIMITS, Limits

RECORDS_FILE: Final = "records.sqlite"


def _limits(given: object) -> object:
    # Not left to pydantic-settings, which has an error of its own for text that is no JSON.
    if isinstance(given, str):
        try:
            given = json.loads(given)
        except RecursionError:
            raise ValueError("it is nested too deep to be read") from None
    unknown = set(given) - {limit.name for limit in fields(Limits)} if isinstance(given, dict) else ()
    if unknown:
        raise ValueError(f"no limit of struct types is called {', '.join(sorted(map(str, unknown)))}")
    return given


class Settings(BaseSettings):
    """Settings by environment variable `NINFER_GATE_<NAME>`; options of the command line go before them."""

    model_config = SettingsConfigDict(env_prefix="NINFER_GATE_", frozen=True, extra="forbid")

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
    shard_bytes: int = Field(
        default=256 << 20, ge=1, description="Bytes that one shard reads at most, where tasks can be parted."
    )
    max_blob_bytes: int = Field(default=128 << 30, ge=1, description="Largest body of one blob.")
    max_uploads: int = Field(
        default=8, ge=1, description="Uploads that are taken at a time; further ones wait, unread."
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
            f"NINFER_GATE_{name.upper()}": json.dumps(value) if isinstance(value, dict) else str(value)
            for name, value in values.items()
            if value is not None
        }


def _sqlite(path: Path) -> str:
    return f"sqlite:///{quote(str(path.absolute()))}"  # in an address, % and ? mean something
