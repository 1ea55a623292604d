"""Answers to questions asked the other way round: which artifacts come from something, and where else a tensor lies."""

from typing import Any, Self

from pydantic import Field

from service.api.schemas.base import Answer, Digest
from service.api.schemas.content import Identity, ObjectRead
from service.provenance import fact
from service.records.identities import Occurrence
from service.records.provenance import Derived
from service.reports import object_json


class DerivedRead(Answer):
    """An artifact that fulfils every condition, and what says so."""

    artifact: Digest
    entry: str = Field(description="Name of the file to begin with.")
    identity: Identity
    facts: list[dict[str, Any]] = Field(
        description="The facts asked for, each with its basis: `claimed` by the artifact, `converted` by a conversion "
        "or `verified` by a run here."
    )
    links: dict[str, str]

    @classmethod
    def of(cls, found: Derived) -> Self:
        """An artifact with its edges."""
        row = found.artifact
        return cls(
            artifact=row.digest,
            entry=row.entry,
            identity=Identity(model_id=row.model_id, weights_id=row.weights_id),
            facts=[fact(edge) for edge in found.edges],
            links={
                "artifact": f"/v1/artifacts/{row.digest}",
                "provenance": f"/v1/provenance/artifacts/{row.digest}",
            },
        )


class OccurrenceRead(Answer):
    """One place at which a tensor lies."""

    artifact: Digest
    entry: str
    object: ObjectRead
    links: dict[str, str]

    @classmethod
    def of(cls, found: Occurrence) -> Self:
        """A place."""
        digest = found.artifact.digest
        return cls(
            artifact=digest,
            entry=found.artifact.entry,
            object=ObjectRead.model_validate(object_json(found.object)),
            links={
                "artifact": f"/v1/artifacts/{digest}",
                "provenance": f"/v1/provenance/artifacts/{digest}",
            },
        )
