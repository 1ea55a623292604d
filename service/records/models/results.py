"""What was found out: runs, conversions, comparisons, self-checks and checks of schemes, each with its rows."""

from datetime import datetime
from typing import Any

from sqlalchemy import (
    CheckConstraint,
    ForeignKey,
    Index,
    Integer,
    false,
    text,
)
from sqlalchemy.orm import Mapped, mapped_column

from service.records.models.base import DIGEST, ID, SHA256, Base, OfProject
from service.records.types import HostileString, HostileText, Json


class Noted:
    """A finding: its document as the report lists it, and what is asked for."""

    seq: Mapped[int] = mapped_column(Integer, primary_key=True)
    code: Mapped[str] = mapped_column(HostileString(100))
    severity: Mapped[str] = mapped_column(HostileString(20))
    check: Mapped[str] = mapped_column(HostileString(20))
    object: Mapped[str | None] = mapped_column(HostileText)
    document: Mapped[Any] = mapped_column(Json)


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


class Finding(OfProject, Noted, Base):
    """A finding of a run."""

    __tablename__ = "findings"
    run_id: Mapped[str] = mapped_column(ID, ForeignKey("runs.id"), primary_key=True)


class Conversion(OfProject, Base):
    """One conversion; `verdict` and `document` are set once, when it is final."""

    __tablename__ = "conversions"
    __table_args__ = (Index(None, "artifact_id"), Index(None, "project_id", "record"))
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
