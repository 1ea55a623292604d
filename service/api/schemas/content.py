"""Content, artifacts, objects, checkpoints and recipes."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any, Literal, Self

from pydantic import Field

from ninfer_core.identity import DIGEST_PREFIX
from service.api.schemas.base import Answer, Digest, Sent
from service.contents import NamedDigest, Stored
from service.records.models import Artifact, ArtifactFile, Checkpoint, CheckpointFile, Recipe

Kind = Literal["ninfer", "safetensors"]


class BlobRead(Answer):
    """Content that the project holds."""

    digest: Digest
    bytes: int

    @classmethod
    def of(cls, stored: Stored) -> Self:
        """What was stored."""
        return cls(digest=stored.digest, bytes=stored.bytes)


class FileSent(Sent):
    """A file, its content pushed before."""

    name: str = Field(description="A plain file name, different from the others.")
    digest: Digest


class ArtifactSent(Sent):
    """An artifact of files whose content the project holds."""

    kind: Kind
    files: list[FileSent] = Field(min_length=1)


class CheckpointSent(Sent):
    """A checkpoint of files whose content the project holds; all but the files are claims, never believed."""

    files: list[FileSent] = Field(min_length=1)
    repository: str | None = Field(None, max_length=1_000)
    revision: str | None = Field(None, max_length=1_000)
    license: str | None = Field(None, max_length=1_000)


def named(files: Iterable[FileSent]) -> list[NamedDigest]:
    """The files as the use cases take them."""
    return [NamedDigest(file.name, file.digest) for file in files]


class FileRead(Answer):
    """A file of an artifact or checkpoint."""

    name: str
    bytes: int
    digest: Digest

    @classmethod
    def of(cls, row: ArtifactFile | CheckpointFile) -> Self:
        """A row."""
        return cls(name=row.name, bytes=row.bytes, digest=DIGEST_PREFIX + row.sha256)


class Identity(Answer):
    """What an artifact or recipe says that it is."""

    model_id: str | None
    weights_id: str | None


class ArtifactRead(Answer):
    """An artifact; what its directory says is known once a worker has listed it."""

    digest: Digest
    kind: Kind
    entry: str = Field(description="Name of the file to begin with.")
    bytes: int
    origin: Literal["pushed", "converted"]
    listing: Literal["pending", "listed", "unreadable"]
    revision: int | None
    identity: Identity
    objects: int | None = Field(description="How many there are, once they are listed.")
    created_at: datetime
    links: dict[str, str]

    @classmethod
    def of(cls, row: Artifact, **more: Any) -> Self:
        """A row."""
        own = f"/v1/artifacts/{row.digest}"
        return cls.model_validate(
            {
                "digest": row.digest,
                "kind": row.kind,
                "entry": row.entry,
                "bytes": row.bytes,
                "origin": row.origin,
                "listing": row.listing,
                "revision": row.revision,
                "identity": Identity(model_id=row.model_id, weights_id=row.weights_id),
                "objects": row.object_count,
                "created_at": row.created_at,
                "links": {
                    "self": own,
                    "objects": f"{own}/objects",
                    "runs": f"{own}/runs",
                    "provenance": f"/v1/provenance/artifacts/{row.digest}",
                },
                **more,
            }
        )


class ArtifactWithFiles(ArtifactRead):
    """An artifact and its files, in the order of their names."""

    files: list[FileRead]


class ObjectRead(Answer):
    """A tensor or resource as the directory lists it."""

    ordinal: int
    name: str
    kind: str | None
    format: str | None
    layout: str | None
    encoding: str | None
    shape: list[int] | None
    offset: int | None
    bytes: int | None


class CheckpointRead(Answer):
    """A checkpoint."""

    id: str
    digest: Digest = Field(description="Of its files, without the claims.")
    bytes: int
    repository: str | None = Field(description="As claimed.")
    revision: str | None = Field(description="As claimed.")
    license: str | None = Field(description="As claimed.")
    created_at: datetime
    links: dict[str, str]

    @classmethod
    def of(cls, row: Checkpoint, **more: Any) -> Self:
        """A row."""
        return cls.model_validate(
            {
                "id": row.id,
                "digest": row.digest,
                "bytes": row.bytes,
                "repository": row.repository,
                "revision": row.revision,
                "license": row.license,
                "created_at": row.created_at,
                "links": {"self": f"/v1/checkpoints/{row.id}"},
                **more,
            }
        )


class CheckpointWithFiles(CheckpointRead):
    """A checkpoint and its files, in the order of their names."""

    files: list[FileRead]


class RecipeRead(Answer):
    """A recipe; its document is what `links.self` gives."""

    digest: Digest = Field(description="sha256 of the whole document in its RFC 8785 form.")
    target_digest: Digest | None
    recipe_id: str
    identity: Identity
    created_at: datetime
    links: dict[str, str]

    @classmethod
    def of(cls, row: Recipe) -> Self:
        """A row."""
        return cls(
            digest=row.digest,
            target_digest=row.target_digest,
            recipe_id=row.recipe_id,
            identity=Identity(model_id=row.model_id, weights_id=row.weights_id),
            created_at=row.created_at,
            links={"self": f"/v1/recipes/{row.digest}"},
        )
