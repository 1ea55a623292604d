"""The tables. Every query over them lives in this package.

Every table of a tenant's data carries `project_id`; what belongs to no tenant (projects themselves, the registry of
encoder profiles, live workers) does not. Digests are spelled `sha256:<hex>`, columns called `sha256` are bare hex.
Every text is a `HostileText` or `HostileString`: names out of files and whatever a client asks for may hold anything.
Sizes out of files beyond a signed 64-bit integer stay inside `Json`.
"""

from datetime import datetime
from typing import Any, ClassVar

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Float,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    UniqueConstraint,
    false,
    text,
)
from sqlalchemy.engine.default import DefaultExecutionContext
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from service.records.types import HostileString, HostileText, Json, Utc, name_key

NAMING: dict[str, str] = {
    "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "ck": "ck_%(table_name)s_%(constraint_name)s",
    "fk": "fk_%(table_name)s_%(column_0_N_name)s_%(referred_table_name)s",
    "pk": "pk_%(table_name)s",
}
DEFAULT_PROJECT = "default"
# `Artifact.listing`: what became of reading its directory.
PENDING, LISTED, UNREADABLE = "pending", "listed", "unreadable"
ID = HostileString(32)
DIGEST = HostileString(71)
SHA256 = HostileString(64)


class Base(DeclarativeBase):
    """The metadata with every constraint named."""

    metadata = MetaData(naming_convention=NAMING)
    type_annotation_map: ClassVar[dict[Any, Any]] = {
        str: HostileText,
        int: BigInteger,
        float: Float(53),
        bool: Boolean,
        datetime: Utc,
    }


class Project(Base):
    """A tenant; one called `default` until tenants come."""

    __tablename__ = "projects"
    id: Mapped[str] = mapped_column(ID, primary_key=True)
    name: Mapped[str] = mapped_column(HostileString(100), unique=True)
    created_at: Mapped[datetime]


class OfProject:
    """A table of a tenant's data."""

    project_id: Mapped[str] = mapped_column(ID, ForeignKey("projects.id"))


class Token(OfProject, Base):
    """An API token or a browser session, known by the sha256 of its text."""

    __tablename__ = "tokens"
    sha256: Mapped[str] = mapped_column(SHA256, primary_key=True)
    kind: Mapped[str] = mapped_column(HostileString(10))  # api, session
    created_at: Mapped[datetime]
    expires_at: Mapped[datetime | None]


class Blob(OfProject, Base):
    """Content that this project holds; the bytes lie in the blob store under their sha256."""

    __tablename__ = "blobs"
    project_id: Mapped[str] = mapped_column(ID, ForeignKey("projects.id"), primary_key=True)
    sha256: Mapped[str] = mapped_column(SHA256, primary_key=True)
    bytes: Mapped[int]
    created_at: Mapped[datetime]


class Artifact(OfProject, Base):
    """An immutable file or set of files, known by its digest."""

    __tablename__ = "artifacts"
    __table_args__ = (
        UniqueConstraint("project_id", "digest"),
        Index(None, "project_id", "id"),
        Index(
            "ix_artifacts_unlisted",
            "id",
            sqlite_where=text("listing = 'pending'"),
            postgresql_where=text("listing = 'pending'"),
        ),
    )
    id: Mapped[str] = mapped_column(ID, primary_key=True)
    digest: Mapped[str] = mapped_column(DIGEST)
    kind: Mapped[str] = mapped_column(HostileString(20))  # ninfer, safetensors
    entry: Mapped[str]  # name of the file to begin with
    bytes: Mapped[int]
    origin: Mapped[str] = mapped_column(HostileString(10))  # pushed, converted
    listing: Mapped[str] = mapped_column(HostileString(10))
    revision: Mapped[int | None]
    model_id: Mapped[str | None] = mapped_column(HostileText)
    weights_id: Mapped[str | None] = mapped_column(HostileText)
    object_count: Mapped[int | None]
    # What it says of its own origin, never believed; a megabyte perhaps, so lists do without.
    claims: Mapped[Any] = mapped_column(Json, nullable=True, deferred=True)
    created_at: Mapped[datetime]


class ArtifactFile(OfProject, Base):
    """One file of an artifact."""

    __tablename__ = "artifact_files"
    artifact_id: Mapped[str] = mapped_column(ID, ForeignKey("artifacts.id"), primary_key=True)
    ordinal: Mapped[int] = mapped_column(Integer, primary_key=True)
    name: Mapped[str]
    sha256: Mapped[str] = mapped_column(SHA256)
    bytes: Mapped[int]


def _name_key(context: DefaultExecutionContext) -> str:
    row: dict[str, Any] = context.get_current_parameters()  # type: ignore[no-untyped-call]  # the library's
    return name_key(row["name"])


class Object(OfProject, Base):
    """A tensor or resource as the directory lists it; `entry` holds `encoding`, `shape`, `offset`, `bytes` of the report."""

    __tablename__ = "objects"
    __table_args__ = (Index(None, "artifact_id", "name_key"),)
    artifact_id: Mapped[str] = mapped_column(ID, ForeignKey("artifacts.id"), primary_key=True)
    ordinal: Mapped[int] = mapped_column(Integer, primary_key=True)
    name: Mapped[str] = mapped_column(HostileText)
    name_key: Mapped[str] = mapped_column(
        HostileString(32), default=_name_key
    )  # of the name, which has any length
    kind: Mapped[str | None] = mapped_column(HostileText)
    format: Mapped[str | None] = mapped_column(HostileText)
    layout: Mapped[str | None] = mapped_column(HostileText)
    entry: Mapped[Any] = mapped_column(Json)


class Checkpoint(OfProject, Base):
    """Source weights: files with digests, plus what the client claims of their origin."""

    __tablename__ = "checkpoints"
    id: Mapped[str] = mapped_column(ID, primary_key=True)
    digest: Mapped[str] = mapped_column(DIGEST, index=True)
    bytes: Mapped[int]
    repository: Mapped[str | None] = mapped_column(HostileText)
    revision: Mapped[str | None] = mapped_column(HostileText)
    license: Mapped[str | None] = mapped_column(HostileText)
    created_at: Mapped[datetime]


class CheckpointFile(OfProject, Base):
    """One file of a checkpoint."""

    __tablename__ = "checkpoint_files"
    checkpoint_id: Mapped[str] = mapped_column(ID, ForeignKey("checkpoints.id"), primary_key=True)
    ordinal: Mapped[int] = mapped_column(Integer, primary_key=True)
    name: Mapped[str]
    sha256: Mapped[str] = mapped_column(SHA256)
    bytes: Mapped[int]


class Recipe(OfProject, Base):
    """A recipe by the digest of its whole canonical document, with the digest of its target once there is one."""

    __tablename__ = "recipes"
    __table_args__ = (Index(None, "project_id", "created_at", "digest"),)
    project_id: Mapped[str] = mapped_column(ID, ForeignKey("projects.id"), primary_key=True)
    digest: Mapped[str] = mapped_column(DIGEST, primary_key=True)
    target_digest: Mapped[str | None] = mapped_column(DIGEST)
    recipe_id: Mapped[str] = mapped_column(HostileText)
    model_id: Mapped[str] = mapped_column(HostileText)
    weights_id: Mapped[str] = mapped_column(HostileText)
    document: Mapped[str] = mapped_column(HostileText)  # its text as it was sent
    created_at: Mapped[datetime]


class Target(OfProject, Base):
    """A target that a client stored, by the digest of its whole canonical document; registered ones are never rows."""

    __tablename__ = "targets"
    __table_args__ = (Index(None, "project_id", "created_at", "digest"),)
    project_id: Mapped[str] = mapped_column(ID, ForeignKey("projects.id"), primary_key=True)
    digest: Mapped[str] = mapped_column(DIGEST, primary_key=True)
    model_id: Mapped[str] = mapped_column(HostileText)
    weights_id: Mapped[str] = mapped_column(HostileText)
    key: Mapped[str | None] = mapped_column(HostileText)
    inventory_sha256: Mapped[str] = mapped_column(SHA256)
    object_count: Mapped[int]
    document: Mapped[str] = mapped_column(HostileText)  # in its RFC 8785 form, which `digest` is of
    created_at: Mapped[datetime]


class EncoderProfile(Base):
    """An encoder profile that an implementation here has held, with digests of its specification text and vectors."""

    __tablename__ = "encoder_profiles"
    name: Mapped[str] = mapped_column(HostileString(100), primary_key=True)
    version: Mapped[int] = mapped_column(Integer, primary_key=True)
    specification: Mapped[str]
    specification_digest: Mapped[str] = mapped_column(DIGEST)
    vectors_digest: Mapped[str] = mapped_column(DIGEST)
    semantic_digest: Mapped[str | None] = mapped_column(DIGEST)  # as the registry lock has it
    implementation_digest: Mapped[str | None] = mapped_column(DIGEST)  # of the source text that last made it
    first_seen_at: Mapped[datetime]


class Job(OfProject, Base):
    """What a client asked for, committed before the durable engine hears of it; `id` is the engine's workflow id too."""

    __tablename__ = "jobs"
    __table_args__ = (
        UniqueConstraint("project_id", "idempotency_key"),
        Index(None, "project_id", "id"),
        Index(
            "ix_jobs_open",
            "id",
            sqlite_where=text("state IN ('queued', 'running')"),
            postgresql_where=text("state IN ('queued', 'running')"),
        ),
        CheckConstraint(
            "state IN ('queued', 'running', 'passed', 'failed', 'incomplete', 'error', 'cancelled')", "state"
        ),
    )
    id: Mapped[str] = mapped_column(ID, primary_key=True)
    type: Mapped[str] = mapped_column(HostileString(20))  # verify, convert, compare, selfcheck, scheme
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
    created_at: Mapped[datetime]
    started_at: Mapped[datetime | None]
    finished_at: Mapped[datetime | None]


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


class Run(OfProject, Base):
    """One verification of one artifact; `verdict` and `report` are set once, when it is final."""

    __tablename__ = "runs"
    __table_args__ = (
        Index(None, "artifact_id", "id"),
        Index(None, "project_id", "id"),
        Index(None, "project_id", "source_key", "id"),
    )
    id: Mapped[str] = mapped_column(ID, primary_key=True)
    job_id: Mapped[str] = mapped_column(ID, ForeignKey("jobs.id"), unique=True)
    artifact_id: Mapped[str] = mapped_column(ID, ForeignKey("artifacts.id"))
    checks: Mapped[Any] = mapped_column(Json)  # names asked
    recipe_digest: Mapped[str | None] = mapped_column(DIGEST)
    checkpoints: Mapped[Any] = mapped_column(Json, nullable=True)  # role -> checkpoint id
    target: Mapped[str | None] = mapped_column(HostileText)  # as asked: auto, or a digest
    target_digest: Mapped[str | None] = mapped_column(DIGEST)  # of the one that it was held against
    canonical: Mapped[bool] = mapped_column(default=False, server_default=false())
    sample: Mapped[Any] = mapped_column(Json, nullable=True)  # {"fraction", "seed"}
    full: Mapped[bool] = mapped_column(default=False, server_default=false())  # nothing may be reused
    max_age_seconds: Mapped[int | None]  # of what may be reused
    reuse: Mapped[Any] = mapped_column(
        Json, nullable=True
    )  # what is, decided once; see service.records.reuse
    source_key: Mapped[str | None] = mapped_column(DIGEST)  # of sources in which nothing was found
    verdict: Mapped[str | None] = mapped_column(HostileString(20))
    report: Mapped[Any] = mapped_column(
        Json, nullable=True
    )  # the report's members but `objects` and `findings`
    produced: Mapped[Any] = mapped_column(Json, nullable=True)  # [{"device", "kernels": {name: key}}]
    errors: Mapped[int | None]  # error findings, listed or not
    advisories: Mapped[int | None]
    created_at: Mapped[datetime]
    finished_at: Mapped[datetime | None]


class Result(OfProject, Base):
    """What one run found of one object; with the object's row it is its entry in the report."""

    __tablename__ = "results"
    __table_args__ = (
        Index(
            "ix_results_not_passed",
            "run_id",
            "ordinal",
            sqlite_where=text("outcome <> 'passed'"),
            postgresql_where=text("outcome <> 'passed'"),
        ),
        Index("ix_results_worst", "run_id", text("nmse DESC"), "ordinal"),
        Index(
            "ix_results_reusable",
            "project_id",
            "reuse_key",
            sqlite_where=text("reuse_key IS NOT NULL"),
            postgresql_where=text("reuse_key IS NOT NULL"),
        ),
    )
    run_id: Mapped[str] = mapped_column(ID, ForeignKey("runs.id"), primary_key=True)
    ordinal: Mapped[int] = mapped_column(Integer, primary_key=True)
    outcome: Mapped[str] = mapped_column(HostileString(20))
    evidence: Mapped[str | None] = mapped_column(HostileString(20))
    sha256: Mapped[str | None] = mapped_column(SHA256)
    identity: Mapped[str | None] = mapped_column(DIGEST)
    metrics: Mapped[Any] = mapped_column(Json)
    nmse: Mapped[float | None]  # out of the metrics, for the worst first
    coverage: Mapped[str | None] = mapped_column(HostileString(20))  # full, sampled, reused, none
    reuse_key: Mapped[str | None] = mapped_column(DIGEST)  # of what was measured here and may be reused
    reused_run_id: Mapped[str | None] = mapped_column(ID)  # the run that measured it, if it was not this one


class Noted:
    """A finding: its document as the report lists it, and what is asked for."""

    seq: Mapped[int] = mapped_column(Integer, primary_key=True)
    code: Mapped[str] = mapped_column(HostileString(100))
    severity: Mapped[str] = mapped_column(HostileString(20))
    check: Mapped[str] = mapped_column(HostileString(20))
    object: Mapped[str | None] = mapped_column(HostileText)
    document: Mapped[Any] = mapped_column(Json)


class Finding(OfProject, Noted, Base):
    """A finding of a run."""

    __tablename__ = "findings"
    run_id: Mapped[str] = mapped_column(ID, ForeignKey("runs.id"), primary_key=True)


class Conversion(OfProject, Base):
    """One conversion; `verdict` and `document` are set once, when it is final."""

    __tablename__ = "conversions"
    __table_args__ = (Index(None, "artifact_id"),)
    id: Mapped[str] = mapped_column(ID, primary_key=True)
    job_id: Mapped[str] = mapped_column(ID, ForeignKey("jobs.id"), unique=True)
    recipe_digest: Mapped[str] = mapped_column(DIGEST)
    checkpoints: Mapped[Any] = mapped_column(Json)  # role -> checkpoint id
    inputs: Mapped[Any] = mapped_column(Json)  # name -> digest
    output: Mapped[Any] = mapped_column(Json)  # {"revision", "max_file_bytes", "name"}
    verdict: Mapped[str | None] = mapped_column(HostileString(20))  # written, refused
    artifact_id: Mapped[str | None] = mapped_column(ID, ForeignKey("artifacts.id"))
    document: Mapped[Any] = mapped_column(
        Json, nullable=True
    )  # `ninfer-gate/conversion/1` but `objects` and `findings`
    target_digest: Mapped[str | None] = mapped_column(DIGEST)
    command: Mapped[str | None] = mapped_column(HostileText)  # what would do the same on the command line
    environment: Mapped[Any] = mapped_column(Json, nullable=True)  # versions of what it ran on
    host: Mapped[Any] = mapped_column(Json, nullable=True)  # class of machine: {"cpu", "cores"}, never a name
    record: Mapped[str | None] = mapped_column(DIGEST)  # of its provenance record, which is a blob
    produced: Mapped[Any] = mapped_column(Json, nullable=True)  # [{"device", "kernels": {name: key}}]
    created_at: Mapped[datetime]
    finished_at: Mapped[datetime | None]


class ConversionObject(OfProject, Base):
    """How one object was made: its sources, encoder, rescued groups and clamped lanes."""

    __tablename__ = "conversion_objects"
    conversion_id: Mapped[str] = mapped_column(ID, ForeignKey("conversions.id"), primary_key=True)
    ordinal: Mapped[int] = mapped_column(Integer, primary_key=True)
    document: Mapped[Any] = mapped_column(Json)


class ConversionFinding(OfProject, Noted, Base):
    """A finding of a conversion."""

    __tablename__ = "conversion_findings"
    conversion_id: Mapped[str] = mapped_column(ID, ForeignKey("conversions.id"), primary_key=True)


class ObjectIdentity(OfProject, Base):
    """What an object of an artifact is, wherever else it lies: measured once, since an artifact never changes."""

    __tablename__ = "object_identities"
    __table_args__ = (Index(None, "project_id", "identity", "artifact_id", "ordinal"),)
    artifact_id: Mapped[str] = mapped_column(ID, ForeignKey("artifacts.id"), primary_key=True)
    ordinal: Mapped[int] = mapped_column(Integer, primary_key=True)
    identity: Mapped[str] = mapped_column(DIGEST)


def _edge_key(context: DefaultExecutionContext) -> str:
    row: dict[str, Any] = context.get_current_parameters()  # type: ignore[no-untyped-call]  # the library's
    return name_key(f"{name_key(row['value'])}{row['role']}")


def _value_key(context: DefaultExecutionContext) -> str:
    row: dict[str, Any] = context.get_current_parameters()  # type: ignore[no-untyped-call]  # the library's
    return name_key(row["value"])


class Edge(OfProject, Base):
    """One fact of where an artifact comes from, once for each basis; `origin_id` is who established it first.

    `basis` is `claimed` (the artifact says so: then `origin_id` is its own), `converted` (a conversion here made it so)
    or `verified` (a run here compared every byte).
    """

    __tablename__ = "edges"
    __table_args__ = (
        Index(None, "project_id", "kind", "value_key", "artifact_id"),
        Index("ix_edges_basis", "project_id", "kind", "value_key", "basis", "artifact_id"),
        CheckConstraint(
            "kind IN ('encoder_profile', 'recipe', 'target', 'checkpoint', 'format', 'tool_version')", "kind"
        ),
        CheckConstraint("basis IN ('claimed', 'converted', 'verified')", "basis"),
    )
    artifact_id: Mapped[str] = mapped_column(ID, ForeignKey("artifacts.id"), primary_key=True)
    kind: Mapped[str] = mapped_column(HostileString(20), primary_key=True)
    basis: Mapped[str] = mapped_column(HostileString(10), primary_key=True)
    key: Mapped[str] = mapped_column(
        HostileString(32), primary_key=True, default=_edge_key
    )  # of value and role
    value: Mapped[str] = mapped_column(HostileText)
    value_key: Mapped[str] = mapped_column(HostileString(32), default=_value_key)  # a value has any length
    role: Mapped[str] = mapped_column(HostileText, default="")  # of a checkpoint in the recipe
    origin_id: Mapped[str] = mapped_column(ID)  # of a run, a conversion, or the artifact itself
    created_at: Mapped[datetime]


class Comparison(OfProject, Base):
    """One comparison of two artifacts; `verdict` and `document` are set once, when it is final."""

    __tablename__ = "comparisons"
    __table_args__ = (Index(None, "a_artifact_id", "id"), Index(None, "b_artifact_id", "id"))
    id: Mapped[str] = mapped_column(ID, primary_key=True)
    job_id: Mapped[str] = mapped_column(ID, ForeignKey("jobs.id"), unique=True)
    a_artifact_id: Mapped[str] = mapped_column(ID, ForeignKey("artifacts.id"))
    b_artifact_id: Mapped[str] = mapped_column(ID, ForeignKey("artifacts.id"))
    verdict: Mapped[str | None] = mapped_column(HostileString(20))  # identical, different, incomplete
    document: Mapped[Any] = mapped_column(
        Json, nullable=True
    )  # `ninfer-gate/comparison/1` but `objects` and `findings`
    summary: Mapped[str | None]  # whether it matters, in one sentence
    created_at: Mapped[datetime]
    finished_at: Mapped[datetime | None]


class ComparisonObject(OfProject, Base):
    """What became of one pair of objects: its entry in the document, and what is asked for."""

    __tablename__ = "comparison_objects"
    __table_args__ = (
        Index("ix_comparison_objects_worst", "comparison_id", "rank", text("weight DESC"), "ordinal"),
        Index(None, "comparison_id", "status", "ordinal"),
    )
    comparison_id: Mapped[str] = mapped_column(ID, ForeignKey("comparisons.id"), primary_key=True)
    ordinal: Mapped[int] = mapped_column(Integer, primary_key=True)
    status: Mapped[str] = mapped_column(HostileString(20))
    rank: Mapped[int] = mapped_column(Integer)  # the smallest is the worst
    weight: Mapped[float]  # orders objects of one rank, the largest first
    document: Mapped[Any] = mapped_column(Json)


class ComparisonFinding(OfProject, Noted, Base):
    """A finding about the structure of one of two compared artifacts; its document says of which."""

    __tablename__ = "comparison_findings"
    comparison_id: Mapped[str] = mapped_column(ID, ForeignKey("comparisons.id"), primary_key=True)


class SelfCheck(OfProject, Base):
    """One self-check of one device, stored with its results once it is done; nothing of it ever changes.

    `id` is that of its job; a check that a worker makes as it starts has no job.
    """

    __tablename__ = "self_checks"
    __table_args__ = (
        Index(None, "project_id", "id"),
        Index(None, "project_id", "device_key", "kernels_key", "level", "id"),
        CheckConstraint("level IN ('quick', 'full')", "level"),
        CheckConstraint("outcome IN ('passed', 'failed', 'incomplete')", "outcome"),
    )
    id: Mapped[str] = mapped_column(ID, primary_key=True)
    job_id: Mapped[str | None] = mapped_column(ID, ForeignKey("jobs.id"), unique=True)
    worker: Mapped[str] = mapped_column(HostileString(64))  # executor id of who did it
    machine: Mapped[str] = mapped_column(HostileString(32))  # tells machines apart without naming them
    level: Mapped[str] = mapped_column(HostileString(10))
    seed: Mapped[int]
    outcome: Mapped[str] = mapped_column(HostileString(20))
    device: Mapped[str] = mapped_column(HostileString(20))  # cpu, cuda:0: as the machine calls it
    device_class: Mapped[str] = mapped_column(HostileString(10))
    device_model: Mapped[str]
    capability: Mapped[str]
    driver: Mapped[str | None] = mapped_column(HostileText)
    runtime: Mapped[str | None] = mapped_column(HostileText)
    compiler: Mapped[str]
    simulated: Mapped[bool]
    device_key: Mapped[str] = mapped_column(HostileString(32))  # of all that says what the device is
    kernels_key: Mapped[str] = mapped_column(HostileString(32))  # of the digests of its kernels
    software: Mapped[Any] = mapped_column(Json)  # versions
    created_at: Mapped[datetime]


class SelfCheckResult(OfProject, Base):
    """What a self-check found of one kernel; `key` is of everything that could change its answers."""

    __tablename__ = "self_check_results"
    __table_args__ = (
        Index(None, "project_id", "key", "self_check_id"),
        Index(None, "project_id", "format", "operation", "self_check_id"),
        CheckConstraint("outcome IN ('passed', 'failed', 'error', 'not_checked')", "outcome"),
    )
    self_check_id: Mapped[str] = mapped_column(
        ID, ForeignKey("self_checks.id", ondelete="CASCADE"), primary_key=True
    )
    ordinal: Mapped[int] = mapped_column(Integer, primary_key=True)
    kernel: Mapped[str] = mapped_column(HostileString(100))
    operation: Mapped[str] = mapped_column(HostileString(20))
    format: Mapped[str] = mapped_column(HostileString(40))
    layout: Mapped[str] = mapped_column(HostileString(40))
    dtype: Mapped[str | None] = mapped_column(HostileString(10))
    regime: Mapped[str] = mapped_column(HostileString(40))
    compute_profile: Mapped[str] = mapped_column(HostileString(100))
    compute_profile_digest: Mapped[str] = mapped_column(DIGEST)
    kernel_digest: Mapped[str] = mapped_column(DIGEST)
    key: Mapped[str] = mapped_column(DIGEST)
    outcome: Mapped[str] = mapped_column(HostileString(20))
    reason: Mapped[str | None] = mapped_column(HostileText)
    cases: Mapped[int]
    values: Mapped[int]
    mismatches: Mapped[int]
    first_mismatch: Mapped[Any] = mapped_column(Json, nullable=True)  # case, where, expected, found, why
    runs: Mapped[int]
    equal_runs: Mapped[int]
    bytes_per_second: Mapped[float | None]
    copy_ratio: Mapped[float | None]


class SchemeCheck(OfProject, Base):
    """Stored arrays held against a scheme, or a payload against a struct type; `verdict` and `document` are set once."""

    __tablename__ = "scheme_checks"
    __table_args__ = (
        Index(None, "project_id", "id"),
        Index(None, "project_id", "form", "id"),
        CheckConstraint("subject IN ('parts', 'struct')", "subject"),
        CheckConstraint("verdict IN ('passed', 'failed', 'incomplete')", "verdict"),
    )
    id: Mapped[str] = mapped_column(ID, primary_key=True)
    job_id: Mapped[str] = mapped_column(ID, ForeignKey("jobs.id"), unique=True)
    subject: Mapped[str] = mapped_column(HostileString(10))
    form: Mapped[str | None] = mapped_column(HostileString(100))  # of the catalogue; null for a struct type
    verdict: Mapped[str | None] = mapped_column(HostileString(20))
    errors: Mapped[int | None]  # error findings
    advisories: Mapped[int | None]
    # `ninfer-gate/scheme-check/1` or `ninfer-gate/struct-check/1`, findings and all: lists do without.
    document: Mapped[Any] = mapped_column(Json, nullable=True, deferred=True)
    created_at: Mapped[datetime]
    finished_at: Mapped[datetime | None]


class Worker(Base):
    """A live worker process: its heartbeat, and what is needed to tell whether it is really dead."""

    __tablename__ = "workers"
    executor_id: Mapped[str] = mapped_column(HostileString(64), primary_key=True)
    host: Mapped[str]  # for people
    machine: Mapped[str]  # boot id and process namespace: within one, process ids mean something
    pid: Mapped[int]
    started: Mapped[int]  # clock ticks between boot and start of the process
    beat_at: Mapped[float]  # seconds since 1970 by the database's clock
