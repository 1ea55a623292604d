"""What the models share."""

from typing import Annotated, Any, Generic, TypeVar

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from service.api.parameters import DIGEST, ID

Item = TypeVar("Item")
Digest = Annotated[str, StringConstraints(pattern=DIGEST)]
Id = Annotated[str, StringConstraints(pattern=ID)]


class Sent(BaseModel):
    """What a client sends: exact types, no unknown members."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class Answer(BaseModel):
    """What a client gets; later versions may add members."""

    model_config = ConfigDict(frozen=True)


class PageOf(Answer, Generic[Item]):
    """One page of a list."""

    items: list[Item]
    next: str | None = Field(None, description="`cursor` of the page after this one; null on the last.")


class Place(Answer):
    """Where in a request something is."""

    in_: str = Field(alias="in", description="`body`, `query`, `path` or `header`.")
    path: str


class FaultRead(Place):
    """One thing that is wrong with a request."""

    message: str


class Problem(Answer):
    """Why a request was refused (RFC 9457); `code` is stable, `detail` is for people."""

    type: str
    title: str
    status: int
    code: str
    detail: str
    where: Place | None = Field(None, description="The first place that is wrong.")
    help: str | None = None
    faults: list[FaultRead] | None = Field(None, description="Every place that is wrong.")
    findings: list[dict[str, Any]] | None = Field(None, description="Findings of a document that was sent.")
    expected: str | None = Field(None, description="The digest that was announced.")
    found: str | None = Field(None, description="The digest that the content has.")
    reasons: list[str] | None = Field(None, description="What the service lacks.")
    state: str | None = Field(None, description="The state of the job.")
    request_id: str | None = Field(None, description="What the log calls this request; `X-Request-Id` too.")
