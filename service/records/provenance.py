"""Queries over edges: what is known of where artifacts come from, and which artifacts come from something."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Literal

from sqlalchemy import ColumnElement, func, select
from sqlalchemy.orm import Session, aliased

from service.records.models import Artifact, Edge
from service.records.pages import Page, cut, decode, encode, fetched, identifier
from service.records.rows import insert_new
from service.records.types import name_key, now

Kind = Literal["encoder_profile", "recipe", "target", "checkpoint", "format", "tool_version"]
Basis = Literal["claimed", "converted", "verified"]

# In the order in which a person asks.
KINDS: Final[tuple[Kind, ...]] = (
    "recipe",
    "checkpoint",
    "target",
    "tool_version",
    "encoder_profile",
    "format",
)
BASES: Final[tuple[Basis, ...]] = ("claimed", "converted", "verified")
_LISTING: Final = "provenance"
_MANY: Final = 1_000  # edges from which on it no longer matters how many there are


@dataclass(frozen=True, slots=True)
class Fact:
    """One edge to be: `role` is that of a checkpoint in its recipe."""

    kind: Kind
    value: str
    role: str = ""


@dataclass(frozen=True, slots=True)
class Derived:
    """An artifact that fulfils every condition of a reverse query, and the edges that say so."""

    artifact: Artifact
    edges: list[Edge]


def save(session: Session, artifact: Artifact, basis: Basis, origin_id: str, facts: Iterable[Fact]) -> None:
    """Note facts; one that is known on this basis stands with who established it first."""
    shared = {
        "artifact_id": artifact.id,
        "project_id": artifact.project_id,
        "basis": basis,
        "origin_id": origin_id,
        "created_at": now(),
    }
    rows = (
        {**shared, "kind": fact.kind, "value": fact.value, "role": fact.role} for fact in dict.fromkeys(facts)
    )
    insert_new(session, Edge, rows)


def of_artifact(session: Session, artifact_id: str) -> list[Edge]:
    """Every edge of an artifact, by kind, basis, value and role."""
    query = select(Edge).where(Edge.artifact_id == artifact_id)
    found = session.scalars(query)
    return sorted(found, key=lambda edge: (edge.kind, edge.basis, edge.value, edge.role))


def is_known(session: Session, project_id: str, kind: Kind, value: str) -> bool:
    """Whether a project knows any fact of this kind and value."""
    query = select(Edge.artifact_id).where(
        Edge.project_id == project_id,
        Edge.kind == kind,
        Edge.value_key == name_key(value),
        Edge.value == value,
    )
    return session.scalars(query.limit(1)).first() is not None


def derived(
    session: Session,
    project_id: str,
    conditions: Mapping[Kind, str],
    *,
    basis: Basis | None = None,
    limit: int,
    cursor: str | None = None,
) -> Page[Derived]:
    """Artifacts for which all of these hold, newest first; `basis` leaves those of another one out.

    Raises: BadCursor, ValueError without a condition.
    """
    asked = [(kind, conditions[kind]) for kind in KINDS if kind in conditions]
    if not asked:
        raise ValueError("a reverse query needs a condition")

    def near(edge: type[Edge], kind: Kind, value: str) -> list[ColumnElement[bool]]:  # as indexes know it
        found = [edge.project_id == project_id, edge.kind == kind, edge.value_key == name_key(value)]
        return found if basis is None else [*found, edge.basis == basis]

    def holds(edge: type[Edge], kind: Kind, value: str) -> list[ColumnElement[bool]]:
        return [*near(edge, kind, value), edge.value == value]

    def few(condition: tuple[Kind, str]) -> int:
        some = select(Edge.artifact_id).where(*near(Edge, *condition)).limit(_MANY)
        return session.scalar(select(func.count()).select_from(some.subquery())) or 0

    if len(asked) > 1:
        asked.sort(
            key=few
        )  # the first drives the query: what few artifacts have, and then asks each for the others
    query = select(Edge.artifact_id).distinct().where(*holds(Edge, *asked[0]))
    for condition in asked[1:]:
        other = aliased(Edge)
        same = select(other.artifact_id).where(
            *holds(other, *condition), other.artifact_id == Edge.artifact_id
        )
        query = query.where(same.correlate(Edge).exists())
    after = decode(cursor, _LISTING, identifier)
    if after is not None:
        query = query.where(Edge.artifact_id < after[0])
    ids = session.scalars(query.order_by(Edge.artifact_id.desc()).limit(fetched(limit))).all()
    listed = cut(ids, limit, lambda id_: encode(_LISTING, id_))
    return Page(_whole(session, listed.items, dict(asked)), listed.next)


def _whole(session: Session, ids: list[str], conditions: Mapping[Kind, str]) -> list[Derived]:
    if not ids:
        return []
    artifacts = {row.id: row for row in session.scalars(select(Artifact).where(Artifact.id.in_(ids)))}
    keys = {name_key(value) for value in conditions.values()}
    query = select(Edge).where(Edge.artifact_id.in_(ids), Edge.value_key.in_(keys))
    edges: dict[str, list[Edge]] = {id_: [] for id_ in ids}
    for edge in session.scalars(query.order_by(Edge.kind, Edge.basis, Edge.key)):
        if conditions.get(edge.kind) == edge.value:  # type: ignore[call-overload]  # any text may be asked for
            edges[edge.artifact_id].append(edge)
    return [Derived(artifacts[id_], edges[id_]) for id_ in ids]
