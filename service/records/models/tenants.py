"""Who there is: projects, what opens them, and what was done in their name."""

from datetime import datetime
from typing import Any

from sqlalchemy import (
    Index,
    Integer,
    UniqueConstraint,
)
from sqlalchemy.orm import Mapped, mapped_column

from service.records.models.base import ID, SHA256, Base, OfProject
from service.records.types import ChanceId, HostileString, HostileText, Json


class Project(Base):
    """A tenant. The first one is called `default`; a deleted one is there until everything of it is gone."""

    __tablename__ = "projects"
    id: Mapped[str] = mapped_column(ID, primary_key=True)
    name: Mapped[str] = mapped_column(HostileString(100), unique=True)
    quota_bytes: Mapped[int | None]  # of stored content and open uploads; null for no bound
    max_running_jobs: Mapped[int | None] = mapped_column(Integer)  # null for no bound
    created_at: Mapped[datetime]
    deleted_at: Mapped[datetime | None]


EARLIER = "earlier release"  # who made tokens that say nothing of that


class Token(OfProject, Base):
    """An API token or a browser session, known by the sha256 of its text."""

    __tablename__ = "tokens"
    __table_args__ = (Index(None, "project_id", "id"), Index(None, "expires_at"), UniqueConstraint("id"))
    sha256: Mapped[str] = mapped_column(SHA256, primary_key=True)
    # What has a default here is not known to an API of the release before, which may still make sessions.
    id: Mapped[str] = mapped_column(ID, server_default=ChanceId())  # its name; says nothing of its text
    kind: Mapped[str] = mapped_column(HostileString(10))  # api, session, oidc
    name: Mapped[str] = mapped_column(HostileString(100), server_default=EARLIER)
    scopes: Mapped[str] = mapped_column(HostileString(40), server_default="admin")  # words with spaces
    parent_id: Mapped[str | None] = mapped_column(ID)  # of a session: the token that opened it
    created_by: Mapped[str] = mapped_column(HostileString(200), server_default=EARLIER)
    created_at: Mapped[datetime]
    expires_at: Mapped[datetime | None]
    last_used_at: Mapped[datetime | None]


class Trust(OfProject, Base):
    """Whose signed identities open a project: an OpenID Connect issuer, an audience, and claims that must be just so."""

    __tablename__ = "trusts"
    __table_args__ = (Index(None, "project_id", "id"), Index(None, "issuer"))
    id: Mapped[str] = mapped_column(ID, primary_key=True)
    name: Mapped[str] = mapped_column(HostileString(100))
    issuer: Mapped[str] = mapped_column(HostileString(500))
    audience: Mapped[str] = mapped_column(HostileString(500))
    claims: Mapped[Any] = mapped_column(Json)  # {claim: value}, at least one
    scopes: Mapped[str] = mapped_column(HostileString(40))
    created_by: Mapped[str] = mapped_column(HostileString(200))
    created_at: Mapped[datetime]


class Audit(Base):
    """One thing that was done, by whom. Rows are only ever added: triggers refuse the rest, and no project takes them along."""

    __tablename__ = "audit"
    __table_args__ = (Index(None, "project_id", "id"),)
    id: Mapped[str] = mapped_column(ID, primary_key=True)
    project_id: Mapped[str | None] = mapped_column(ID)  # of one that may be gone
    actor: Mapped[str] = mapped_column(HostileString(200))  # never a secret
    action: Mapped[str] = mapped_column(HostileString(60))  # token.created, project.deleted, ...
    subject: Mapped[str | None] = mapped_column(HostileText)  # id or digest of what it was done to
    detail: Mapped[Any] = mapped_column(Json, nullable=True)
    request_id: Mapped[str | None] = mapped_column(HostileString(64))
    at: Mapped[datetime]
