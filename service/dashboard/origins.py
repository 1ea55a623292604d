"""Edges as tables show them: each thing once, with who says so: a claim stands apart from what was done and proved here."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from sqlalchemy.orm import Session

from service import targets
from service.dashboard.address import written
from service.records import chain, provenance
from service.records.models import Artifact, Edge
from service.records.provenance import KINDS

_LONGEST_CLAIM: Final = 20_000

WORDS: Final[Mapping[str, str]] = {
    "recipe": "Recipe",
    "checkpoint": "Checkpoint",
    "target": "Target",
    "encoder_profile": "Encoder profile",
    "format": "Format",
    "tool_version": "ninfer-gate",
}


@dataclass(slots=True)
class Origin:
    """One thing that an artifact comes from; `converted` and `verified` lead to who established it."""

    kind: str
    value: str
    role: str
    claimed: bool = False
    converted: str | None = None
    verified: str | None = None
    names: list[str] = field(default_factory=list)  # what it is called besides

    @property
    def word(self) -> str:
        """What kind of thing it is."""
        return f"{WORDS[self.kind]} {self.role}".strip()

    @property
    def is_digest(self) -> bool:
        """Whether it is shown short, to be copied."""
        return self.value.startswith("sha256:")

    @property
    def others(self) -> str:
        """Where all artifacts are listed that come from it."""
        return written("/provenance", {self.kind: self.value})


def origins(edges: Iterable[Edge], names: Mapping[str, str]) -> list[Origin]:
    """By kind, in the order in which a person asks; `names` are those of digests."""
    found: dict[tuple[str, str, str], Origin] = {}
    for edge in edges:
        key = (edge.kind, edge.role, edge.value)
        one = found.setdefault(key, Origin(edge.kind, edge.value, edge.role))
        match edge.basis:
            case "claimed":
                one.claimed = True
            case "converted":
                one.converted = f"/jobs/{edge.origin_id}"
            case _:
                one.verified = f"/runs/{edge.origin_id}"
        if edge.value in names and names[edge.value] not in one.names:
            one.names.append(names[edge.value])
    place: dict[str, int] = {kind: number for number, kind in enumerate(KINDS)}
    return sorted(found.values(), key=lambda one: (place[one.kind], one.role, one.value))


def chain_of(session: Session, project_id: str, artifact: Artifact) -> dict[str, Any]:
    """What the page of an artifact says of where it comes from."""
    edges = provenance.of_artifact(session, artifact.id)
    recipes = {edge.value for edge in edges if edge.kind == "recipe"}
    names = {row.digest: row.recipe_id for row in chain.recipes(session, project_id, recipes)}
    for edge in edges:
        if edge.kind == "target" and edge.value.startswith("sha256:"):
            target = targets.listed(session, project_id, edge.value)
            names |= {edge.value: target.identity} if target is not None else {}
    # Which version checked it says nothing of where it comes from.
    made = [edge for edge in edges if (edge.kind, edge.basis) != ("tool_version", "verified")]
    claims = None if artifact.claims is None else json.dumps(artifact.claims, indent=1)
    return {
        "origins": origins(made, names),
        "checked": [edge for edge in edges if edge not in made],
        "claims": None if claims is None else claims[:_LONGEST_CLAIM],
        "claims_cut": claims is not None and len(claims) > _LONGEST_CLAIM,
    }
