"""What is being done: jobs, their shards and events, campaigns, and the workers that live."""

from datetime import datetime
from typing import Any

from sqlalchemy import (
    CheckConstraint,
    ForeignKey,
    Index,
    Integer,
    UniqueConstraint,
    false,
    text,
)
from sqlalchemy.orm import Mapped, mapped_column

from service.records.models.base import DIGEST, ID, SHA256, Base, OfProject
from service.records.types import HostileString, HostileText, Json


class Job(OfProject, Base):
    """What a client asked for, committed before the durable engine hears of it; `id` is the engine's workflow id too."""

    __tablename__ = "jobs"
    __table_args__ = (
        UniqueConstraint("project_id", "idempotency_key"),
        Index(None, "project_id", "id"),
        Index(None, "campaign_id", "id"),
        Index(None, "campaign_id", "state", "id"),
        Index(
            "ix_jobs_open",
            "id",
            sqlite_where=text("state IN ('queued', 'running')"),
            postgresql_where=text("state IN ('queued', 'running')"),
        ),
        Index(
            "ix_jobs_project_open",
            "project_id",
            "id",
            sqlite_where=text("state IN ('queued', 'running')"),
            postgresql_where=text("state IN ('queued', 'running')"),
        ),
        Index(
            "ix_jobs_waiting",
            "project_id",
            "lane",
            "priority",
            "id",
            sqlite_where=text("state = 'queued' AND admitted_at IS NULL"),
            postgresql_where=text("state = 'queued' AND admitted_at IS NULL"),
        ),
        Index(
            "ix_jobs_admitted",
            "project_id",
            "lane",
            "state",
            sqlite_where=text("state IN ('queued', 'running') AND admitted_at IS NOT NULL"),
            postgresql_where=text("state IN ('queued', 'running') AND admitted_at IS NOT NULL"),
        ),
        CheckConstraint(
            "state IN ('queued', 'running', 'passed', 'failed', 'incomplete', 'error', 'cancelled')", "state"
        ),
        CheckConstraint("lane IN ('interactive', 'bulk')", "lane"),
    )
    id: Mapped[str] = mapped_column(ID, primary_key=True)
    type: Mapped[str] = mapped_column(
        HostileString(20)
    )  # verify, convert, compare, selfcheck, scheme, import
    state: Mapped[str] = mapped_column(HostileString(20))
    request: Mapped[Any] = mapped_column(Json)  # normalised: digests and ids, never documents
    request_digest: Mapped[str] = mapped_column(DIGEST)  # of the body as it was sent
    idempotency_key: Mapped[str | None] = mapped_column(HostileString(255))
    artifact_id: Mapped[str | None] = mapped_column(ID, ForeignKey("artifacts.id"))  # verified, or made
    cancel_requested: Mapped[bool] = mapped_column(default=False)
    error: Mapped[Any] = mapped_column(Json, nullable=True)  # {"code", "detail"} when the state is `error`
    objects: Mapped[int | None]  # in all; known once the work is planned
    bytes: Mapped[int | None]  # to read in all
    plan: Mapped[str | None] = mapped_column(DIGEST)  # of the list of tasks that its shards were cut from
    planned_by: Mapped[str | None] = mapped_column(HostileString(40))  # version that cut them
    lane: Mapped[str] = mapped_column(HostileString(12), default="interactive", server_default="interactive")
    priority: Mapped[int] = mapped_column(Integer, default=0, server_default=text("0"))  # higher goes first
    deadline_at: Mapped[datetime | None]
    admitted_at: Mapped[datetime | None]  # when its project had room for it and the engine was told
    epoch: Mapped[int] = mapped_column(
        Integer, default=0, server_default=text("0")
    )  # how often it was begun anew
    attempts: Mapped[int] = mapped_column(
        Integer, default=0, server_default=text("0")
    )  # that failed and may pass
    last_error: Mapped[Any] = mapped_column(
        Json, nullable=True
    )  # of the last of these: {"code", "detail", "at"}
    campaign_id: Mapped[str | None] = mapped_column(ID, ForeignKey("campaigns.id"))
    created_by: Mapped[str | None] = mapped_column(HostileString(200))
    created_at: Mapped[datetime]
    started_at: Mapped[datetime | None]
    finished_at: Mapped[datetime | None]


class JobContent(OfProject, Base):
    """Content that a job's request names, where an index finds it: what a collector must leave alone."""

    __tablename__ = "job_contents"
    project_id: Mapped[str] = mapped_column(ID, ForeignKey("projects.id"), primary_key=True)
    sha256: Mapped[str] = mapped_column(SHA256, primary_key=True)
    job_id: Mapped[str] = mapped_column(ID, ForeignKey("jobs.id"), primary_key=True)


class Shard(OfProject, Base):
    """One shard of a running job, and what it found out until that is merged; then `outcomes` is emptied."""

    __tablename__ = "shards"
    job_id: Mapped[str] = mapped_column(ID, ForeignKey("jobs.id"), primary_key=True)
    number: Mapped[int] = mapped_column(Integer, primary_key=True)
    first: Mapped[int]  # number of its first task
    stop: Mapped[int]  # number after its last task
    bytes: Mapped[int]
    bytes_done: Mapped[int] = mapped_column(default=0)
    objects: Mapped[int]  # its share by bytes: tasks know nothing of objects
    done: Mapped[bool] = mapped_column(default=False)
    outcomes: Mapped[str | None]  # JSON list, see ninfer_core.verify.outcomes
    segment: Mapped[Any] = mapped_column(Json, nullable=True)  # conversions: {"sha256", "bytes", "records"}
    produced: Mapped[Any] = mapped_column(Json, nullable=True)  # kernels and devices that made its outcomes
    attempts: Mapped[int] = mapped_column(
        Integer, default=0, server_default=text("0")
    )  # how often it was begun
    last_error: Mapped[Any] = mapped_column(Json, nullable=True)  # why the last of these came to nothing
    finished_at: Mapped[datetime | None]


class JobEvent(OfProject, Base):
    """What a client who listens hears; `key` makes a repeated step say it once."""

    __tablename__ = "job_events"
    __table_args__ = (UniqueConstraint("job_id", "key"),)
    job_id: Mapped[str] = mapped_column(ID, ForeignKey("jobs.id"), primary_key=True)
    seq: Mapped[int] = mapped_column(Integer, primary_key=True)  # 1, 2, ...
    key: Mapped[str] = mapped_column(HostileString(60))
    type: Mapped[str] = mapped_column(HostileString(20))  # state, progress
    data: Mapped[Any] = mapped_column(Json)
    at: Mapped[datetime]


class Campaign(OfProject, Base):
    """Artifacts that a query finds, verified again on the bulk lane, some at a time; `cursor` is how far that has come.

    Of one project, only one of a name is running.
    """

    __tablename__ = "campaigns"
    __table_args__ = (
        Index(None, "project_id", "id"),
        Index(
            "uq_campaigns_running",
            "project_id",
            "name",
            unique=True,
            sqlite_where=text("state = 'running'"),
            postgresql_where=text("state = 'running'"),
        ),
        Index(
            "ix_campaigns_open",
            "id",
            sqlite_where=text("state = 'running'"),
            postgresql_where=text("state = 'running'"),
        ),
        CheckConstraint("state IN ('running', 'done', 'cancelled')", "state"),
    )
    id: Mapped[str] = mapped_column(ID, primary_key=True)
    name: Mapped[str] = mapped_column(HostileString(100))
    request: Mapped[Any] = mapped_column(Json)  # {"query", "verify"}
    state: Mapped[str] = mapped_column(HostileString(20))
    cursor: Mapped[str | None] = mapped_column(ID)  # the last artifact that had its turn
    total: Mapped[int] = mapped_column(default=0, server_default=text("0"))  # found as it was started
    selected: Mapped[int] = mapped_column(default=0, server_default=text("0"))  # that got a job
    refused: Mapped[int] = mapped_column(default=0, server_default=text("0"))  # that could not have one
    last_refusal: Mapped[Any] = mapped_column(
        Json, nullable=True
    )  # {"artifact", "code", "detail"} of the last of these
    created_by: Mapped[str] = mapped_column(HostileString(200))
    created_at: Mapped[datetime]
    finished_at: Mapped[datetime | None]


class Import(OfProject, Base):
    """Content that a worker fetches from a place the service may read; `verdict` and `document` are set once."""

    __tablename__ = "imports"
    __table_args__ = (
        Index(None, "project_id", "id"),
        CheckConstraint("verdict IN ('stored')", "verdict"),
    )
    id: Mapped[str] = mapped_column(ID, primary_key=True)
    job_id: Mapped[str] = mapped_column(ID, ForeignKey("jobs.id"), unique=True)
    source: Mapped[str] = mapped_column(HostileText)  # a path under a root, or s3://bucket/key
    verdict: Mapped[str | None] = mapped_column(HostileString(20))
    document: Mapped[Any] = mapped_column(Json, nullable=True)  # {"files": [{"name", "digest", "bytes"}]}
    created_at: Mapped[datetime]
    finished_at: Mapped[datetime | None]


class Lease(Base):
    """Who alone does something for now; one that is not renewed ends by itself."""

    __tablename__ = "leases"
    name: Mapped[str] = mapped_column(HostileString(40), primary_key=True)
    holder: Mapped[str] = mapped_column(HostileString(64))
    until: Mapped[float]  # seconds since 1970 by the database's clock


class Worker(Base):
    """A live worker process: its heartbeat, and what is needed to tell whether it is really dead."""

    __tablename__ = "workers"
    executor_id: Mapped[str] = mapped_column(HostileString(64), primary_key=True)
    host: Mapped[str]  # for people
    machine: Mapped[str]  # boot id and process namespace: within one, process ids mean something
    pid: Mapped[int]
    started: Mapped[int]  # clock ticks between boot and start of the process
    beat_at: Mapped[float]  # seconds since 1970 by the database's clock
    version: Mapped[str | None] = mapped_column(HostileString(40))  # of ninfer-gate
    draining: Mapped[bool] = mapped_column(default=False, server_default=false())
