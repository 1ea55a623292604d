"""Tokens, trusts, the log, and the project as those in it see it."""

from datetime import datetime
from typing import Annotated, Any, Literal, Self

from pydantic import Field, StringConstraints, TypeAdapter, model_validator

from service import trusts
from service.api.schemas.base import Answer, Id, Sent
from service.auth import Caller, Made
from service.oidc import MOST_CHARACTERS, Granted
from service.projects import View
from service.records.models import Audit, Token, Trust
from service.scopes import SCOPES, Scope

_PLAIN = r"^[^\x00-\x1f\x7f]+$"  # no control characters: rows and logs have these on one line
Name = Annotated[str, StringConstraints(min_length=1, max_length=100, pattern=_PLAIN)]
Words = Annotated[str, StringConstraints(min_length=1, max_length=500, pattern=_PLAIN)]
Claim = Words | bool | int
Scopes = Annotated[tuple[Scope, ...], Field(min_length=1, max_length=len(SCOPES), strict=False)]
# What signs in without a person makes no tokens and trusts nobody.
TrustScopes = Annotated[
    tuple[Literal["read", "submit", "gate"], ...], Field(min_length=1, max_length=len(SCOPES), strict=False)
]


class TokenSent(Sent):
    """A token to be made."""

    name: Name = Field(description="What it is for; the list and the log show it.")
    scopes: Scopes = Field(description="`submit`, `gate` and `admin` bring `read` along, `admin` brings all.")
    expires_in_days: int | None = Field(
        None, ge=1, le=3_650, description="None for a token that never expires."
    )


class TokenRead(Answer):
    """A token, an identity that was let in, or a browser's session, without its text."""

    id: Id
    kind: Literal["api", "oidc", "session"]
    name: str
    scopes: list[Scope]
    created_by: str
    created_at: datetime
    expires_at: datetime | None
    last_used_at: datetime | None = Field(description="To the minute.")

    @classmethod
    def of(cls, row: Token, **more: Any) -> Self:
        """A row, without its hash."""
        members = ("id", "kind", "name", "created_by", "created_at", "expires_at", "last_used_at")
        told = {name: getattr(row, name) for name in members}
        return cls.model_validate({**told, "scopes": row.scopes.split(), **more})


class TokenMade(TokenRead):
    """A new token; only this answer has its text."""

    token: str = Field(description="Send it as `Authorization: Bearer`. It is not kept and never told again.")

    @classmethod
    def of_made(cls, made: Made) -> Self:
        """With its secret."""
        return cls.of(made.row, token=made.secret)


class GithubSent(Sent):
    """Jobs of GitHub Actions of one repository and workflow."""

    type: Literal["github"]
    name: Name
    audience: Words = Field(
        description="What the workflow asks its identity for, such as this service's address."
    )
    repository: Annotated[
        str, StringConstraints(pattern=r"^[A-Za-z0-9._-]+/[A-Za-z0-9._-]+$", max_length=200)
    ]
    workflow_ref: Words | None = Field(
        None, description="`OWNER/NAME/.github/workflows/FILE@REF`; `@*` for any reference."
    )
    job_workflow_ref: Words | None = Field(
        None, description="The same of a reusable workflow that the job calls."
    )
    ref: Words | None = Field(None, description="`refs/heads/main`, `refs/tags/*`.")
    environment: Words | None = None
    scopes: TrustScopes

    @model_validator(mode="after")
    def _pinned(self) -> Self:
        # A repository alone would trust whatever anybody adds to it in a branch.
        if self.workflow_ref is None and self.job_workflow_ref is None:
            raise ValueError("name workflow_ref or job_workflow_ref")
        return self

    def terms(self) -> dict[str, Any]:
        """What is trusted."""
        names = ("repository", "workflow_ref", "job_workflow_ref", "ref", "environment")
        claims = {name: value for name in names if (value := getattr(self, name)) is not None}
        return {"issuer": trusts.GITHUB, "audience": self.audience, "claims": claims}


class OidcSent(Sent):
    """Whatever an issuer signs with these claims."""

    type: Literal["oidc"]
    name: Name
    issuer: Words = Field(description="As identities name it in `iss`; its keys are found from there.")
    audience: Words
    claims: dict[str, Claim | Annotated[list[Claim], Field(min_length=1, max_length=20)]] = Field(
        min_length=1,
        max_length=20,
        description="Each has to be just so, or one of a list. A text that ends in `@*`, `/*` or `:*` leaves the rest open.",
    )
    scopes: TrustScopes

    def terms(self) -> dict[str, Any]:
        """What is trusted."""
        return {"issuer": self.issuer, "audience": self.audience, "claims": self.claims}


AnyTrustSent = Annotated[GithubSent | OidcSent, Field(discriminator="type")]
TOKEN: TypeAdapter[TokenSent] = TypeAdapter(TokenSent)
TRUST: TypeAdapter[GithubSent | OidcSent] = TypeAdapter(AnyTrustSent)


class TrustRead(Answer):
    """A trust."""

    id: Id
    name: str
    issuer: str
    audience: str
    claims: dict[str, Any]
    scopes: list[Scope]
    created_by: str
    created_at: datetime

    @classmethod
    def of(cls, row: Trust) -> Self:
        """A row."""
        members = ("id", "name", "issuer", "audience", "claims", "created_by", "created_at")
        told = {name: getattr(row, name) for name in members}
        return cls.model_validate({**told, "scopes": row.scopes.split()})


class IdentitySent(Sent):
    """A signed identity to be exchanged."""

    token: Annotated[str, StringConstraints(min_length=1, max_length=MOST_CHARACTERS)] = Field(
        description="A JWT of an issuer that a project trusts."
    )
    project: Name | None = Field(
        None, description="Which project is meant, where several trust the identity."
    )


IDENTITY: TypeAdapter[IdentitySent] = TypeAdapter(IdentitySent)


class Granting(Answer):
    """A token for an identity."""

    token: str = Field(description="Send it as `Authorization: Bearer`. It is not told again.")
    project: str
    scopes: list[Scope]
    expires_at: datetime

    @classmethod
    def of(cls, granted: Granted) -> Self:
        """What was granted."""
        return cls.model_validate(
            {
                "token": granted.secret,
                "project": granted.project,
                "scopes": granted.scopes,
                "expires_at": granted.expires_at,
            }
        )


class AuditRead(Answer):
    """One thing that was done."""

    id: Id
    at: datetime
    actor: str
    action: str
    subject: str | None
    detail: dict[str, Any] | None
    request_id: str | None

    @classmethod
    def of(cls, row: Audit) -> Self:
        """A row."""
        return cls.model_validate({name: getattr(row, name) for name in cls.model_fields})


class You(Answer):
    """Who asks."""

    actor: str
    scopes: list[Scope]
    expires_at: datetime | None


class ProjectRead(Answer):
    """The project of the caller: what it holds, and what it may."""

    name: str
    created_at: datetime
    held_bytes: int = Field(description="Content that it holds.")
    open_bytes: int = Field(description="What open uploads have asked room for.")
    quota_bytes: int | None = Field(description="Bound of both together; null for none.")
    max_running_jobs: int | None = Field(description="Jobs that run at a time; null for no bound.")
    jobs: dict[str, int] = Field(description="Jobs that are not final, by state.")
    you: You

    @classmethod
    def of(cls, view: View, caller: Caller) -> Self:
        """For this caller."""
        you = {
            "actor": caller.actor,
            "scopes": [scope for scope in SCOPES if caller.may(scope)],
            "expires_at": caller.expires_at,
        }
        return cls.model_validate(
            {
                "name": view.project.name,
                "created_at": view.project.created_at,
                "held_bytes": view.room.held_bytes,
                "open_bytes": view.room.open_bytes,
                "quota_bytes": view.room.quota_bytes,
                "max_running_jobs": view.max_running_jobs,
                "jobs": view.jobs,
                "you": you,
            }
        )
