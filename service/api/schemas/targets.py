"""Targets."""

from datetime import datetime
from typing import Self

from pydantic import Field

from service.api.schemas.base import Answer, Digest
from service.targets import Listed


class TargetRead(Answer):
    """A target; its document is what `links.self` gives."""

    digest: Digest = Field(description="sha256 of the whole document in its RFC 8785 form.")
    model_id: str
    weights_id: str
    key: str | None
    inventory_sha256: str = Field(description="Of its closed list; with the identity it names the target.")
    objects: int
    registered: bool = Field(
        description="Whether it came with the service; the others were stored in the project."
    )
    created_at: datetime | None = Field(description="When it was stored; null for a registered one.")
    links: dict[str, str]

    @classmethod
    def of(cls, target: Listed) -> Self:
        """A target."""
        return cls(
            digest=target.digest,
            model_id=target.model_id,
            weights_id=target.weights_id,
            key=target.key,
            inventory_sha256=target.inventory_sha256,
            objects=target.objects,
            registered=target.registered,
            created_at=target.created_at,
            links={
                "self": f"/v1/targets/{target.digest}",
                "artifacts": f"/v1/provenance?target={target.digest}",
            },
        )
