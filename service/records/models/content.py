"""What is held: contents on their way in and stored, artifacts and their objects, sources, and where things come from."""

from datetime import datetime
from typing import Any

from sqlalchemy import (
    CheckConstraint,
    ForeignKey,
    Index,
    Integer,
    UniqueConstraint,
    text,
)
from sqlalchemy.engine.default import DefaultExecutionContext
from sqlalchemy.orm import Mapped, mapped_column

from service.records.models.base import DIGEST, ID, SHA256, Base, OfProject
from service.records.types import HostileString, HostileText, Json, name_key


class Blob(OfProject, Base):
    """Content that this project holds; the bytes lie in the blob store under their sha256."""

    __tablename__ = "blobs"
    __table_args__ = (Index(None, "sha256"),)
    project_id: Mapped[str] = mapped_column(ID, ForeignKey("projects.id"), primary_key=True)
    sha256: Mapped[str] = mapped_column(SHA256, primary_key=True)
    bytes: Mapped[int]
    created_at: Mapped[datetime]
    kept_at: Mapped[datetime | None]  # when it last came in again


class DoomedBlob(Base):
    """Content that no project held when it was looked at; its bytes go in a while, unless it comes in again before."""

    __tablename__ = "doomed_blobs"
    sha256: Mapped[str] = mapped_column(SHA256, primary_key=True)
    bytes: Mapped[int]
    at: Mapped[datetime]


class Upload(OfProject, Base):
    """Content on its way in, piece by piece; while it is `receiving`, what is here is the size of its file and no number."""

    __tablename__ = "uploads"
    __table_args__ = (
        Index(None, "project_id", "id"),
        Index(
            "ix_uploads_open",
            "project_id",
            "id",
            sqlite_where=text("state IN ('receiving', 'storing')"),
            postgresql_where=text("state IN ('receiving', 'storing')"),
        ),
        CheckConstraint("protocol IN ('tus', 'parts')", "protocol"),
        CheckConstraint("state IN ('receiving', 'storing', 'stored', 'failed')", "state"),
    )
    id: Mapped[str] = mapped_column(ID, primary_key=True)
    protocol: Mapped[str] = mapped_column(HostileString(10))
    name: Mapped[str | None] = mapped_column(HostileText)  # as the client says
    said: Mapped[str | None] = mapped_column(HostileText)  # `Upload-Metadata`, to be told again as it was
    bytes: Mapped[int]  # in all, as declared: they count against the quota from the beginning
    sha256: Mapped[str | None] = mapped_column(SHA256)  # as declared; once stored, what it is
    part_bytes: Mapped[int | None]  # of `parts`: of each but the last
    place: Mapped[str | None] = mapped_column(ID)  # of tus: id of the spool folder that holds its file
    state: Mapped[str] = mapped_column(HostileString(20))
    error: Mapped[Any] = mapped_column(Json, nullable=True)  # {"code", "detail"} when it `failed`
    created_by: Mapped[str] = mapped_column(HostileString(200))
    created_at: Mapped[datetime]
    expires_at: Mapped[datetime]
    finished_at: Mapped[datetime | None]


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
    __table_args__ = (Index(None, "project_id", "sha256"),)
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
    __table_args__ = (Index(None, "project_id", "id"),)
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
    __table_args__ = (Index(None, "project_id", "sha256"),)
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
