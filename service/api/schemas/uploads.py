"""Uploads, as they are asked for and as they are told."""

from datetime import datetime
from typing import Self

from pydantic import Field

from ninfer_core.identity import DIGEST_PREFIX
from service.api.schemas.base import Answer, Digest, Id, Sent
from service.uploads.ledger import Announced, Protocol, Seen, State
from service.uploads.parts import Part


class PartsSent(Sent):
    """Content that goes straight to the S3 store in parts, with addresses that the service signs."""

    bytes: int = Field(ge=1, le=2**53, description="Of the whole content.")
    digest: Digest = Field(description="Of the whole content; it is compared before anything is stored.")
    name: str | None = Field(None, max_length=1_000, description="For people.")

    def announced(self) -> Announced:
        """As the use case takes it."""
        return Announced(self.bytes, self.name, self.digest.removeprefix(DIGEST_PREFIX))


class PartRead(Answer):
    """One part."""

    number: int
    bytes: int
    here: bool
    url: str | None = Field(description="Where to PUT it, for an hour; null once it is there.")

    @classmethod
    def of(cls, part: Part) -> Self:
        """A part, and its address."""
        return cls(number=part.number, bytes=part.bytes, here=part.address is None, url=part.address)


class UploadError(Answer):
    """Why an upload failed."""

    code: str
    detail: str


class UploadRead(Answer):
    """An upload."""

    id: Id
    protocol: Protocol
    state: State = Field(
        description="`storing` has all its bytes; `stored` is content of the project, under `digest`."
    )
    name: str | None
    bytes: int
    offset: int | None = Field(
        description="Bytes that are here; null for parts, and where they are not on this machine."
    )
    elsewhere: bool = Field(
        description="Its bytes come in at another machine of the service, and go on there."
    )
    digest: Digest | None = Field(description="As declared; of one that is stored, what it is.")
    part_bytes: int | None = Field(description="Of each part but the last, for parts.")
    error: UploadError | None = Field(description="Why it `failed`.")
    created_by: str
    created_at: datetime
    expires_at: datetime = Field(description="When it is given up, unless it goes on before.")
    finished_at: datetime | None
    links: dict[str, str]

    @classmethod
    def of(cls, seen: Seen) -> Self:
        """A row, and how far it is."""
        row = seen.upload
        own = f"/v1/uploads/{row.id}"
        links = {"self": own}
        if row.protocol == "parts":
            links |= {"parts": f"{own}/parts", "complete": f"{own}/complete"}
        if row.state == "stored":
            links["content"] = f"/v1/blobs/{DIGEST_PREFIX}{row.sha256}"
        return cls.model_validate(
            {
                "id": row.id,
                "protocol": row.protocol,
                "state": row.state,
                "name": row.name,
                "bytes": row.bytes,
                "offset": seen.offset,
                "elsewhere": seen.elsewhere,
                "digest": None if row.sha256 is None else DIGEST_PREFIX + row.sha256,
                "part_bytes": row.part_bytes,
                "error": row.error,
                "created_by": row.created_by,
                "created_at": row.created_at,
                "expires_at": row.expires_at,
                "finished_at": row.finished_at,
                "links": links,
            }
        )
