"""`checks` of a recipe: hashes and counts that its author states, for a reader to test its own expansion with."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from ninfer_core.documents.fields import Fields
from ninfer_core.strict_json import Members

_MEMBERS: Final = ("expanded_rules", "recipe_sha256", "source_requirements", "encodes")


@dataclass(frozen=True, slots=True)
class Requirement:
    """The source tensors that rules read of one role; `sha256` is bare hex of their sorted lines."""

    tensors: int
    dtypes: Mapping[str, int]
    sha256: str


@dataclass(frozen=True, slots=True)
class Checks:
    """What is stated; None or empty where it is not. `encodes` counts objects by encoder."""

    expanded_rules: int | None = None
    recipe_sha256: str | None = None
    source_requirements: Mapping[str, Requirement] = field(default_factory=dict)
    encodes: Mapping[str, int] = field(default_factory=dict)


def read_checks(fields: Fields) -> Checks:
    """The member `checks`."""
    if "checks" not in fields:
        return Checks()
    reader = Fields(fields.faults, fields.raw("checks"), fields.path("checks"), (), _MEMBERS)
    expanded, digest = reader.integer("expanded_rules"), reader.sha256("recipe_sha256")
    requirements = {role: _requirement(reader, role) for role in (reader.object("source_requirements") or {})}
    known = {role: one for role, one in requirements.items() if one is not None}
    return Checks(expanded, digest, MappingProxyType(known), MappingProxyType(_counts(reader, "encodes")))


def _requirement(reader: Fields, role: str) -> Requirement | None:
    at = (*reader.path("source_requirements"), role)
    members = reader.object("source_requirements") or Members()
    fields = Fields(reader.faults, members[role], at, ("tensors", "dtypes", "sha256"))
    tensors, digest = fields.integer("tensors"), fields.sha256("sha256")
    dtypes = _counts(fields, "dtypes")
    if tensors is None or digest is None:
        return None
    return Requirement(tensors, MappingProxyType(dtypes), digest)


def _counts(fields: Fields, member: str) -> dict[str, int]:
    members = fields.object(member) or Members()
    reader = Fields(fields.faults, members, fields.path(member), (), tuple(members))
    counts = {name: reader.integer(name) for name in members}
    return {name: count for name, count in counts.items() if count is not None}
