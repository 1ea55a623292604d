"""Queries over the objects that an artifact's directory lists."""

from collections.abc import Iterable
from typing import Any

from sqlalchemy import ColumnElement, Select, delete, func, literal, select
from sqlalchemy.orm import Session

from service.records.models import LISTED, Artifact, Object
from service.records.pages import Page, cut, decode, encode, fetched, ordinal
from service.records.rows import insert_new, values
from service.records.types import HostileText, name_key

_LISTING = "objects"


def list_objects(
    session: Session,
    artifact_id: str,
    *,
    rows: Iterable[Object],
    listing: str,
    revision: int | None,
    model_id: str | None,
    weights_id: str | None,
    claims: Any = None,
) -> bool:
    """Store what the directory says; False when that was done before. `listing` is `listed` or `unreadable`.

    A directory that could be read overrules an earlier attempt at which it could not, never the other way round.
    """
    artifact = session.get(Artifact, artifact_id, with_for_update={"key_share": True}, populate_existing=True)
    if artifact is None or artifact.listing in (LISTED, listing):
        return False
    session.execute(delete(Object).where(Object.artifact_id == artifact_id))
    owner = {"artifact_id": artifact_id, "project_id": artifact.project_id}
    artifact.object_count = insert_new(session, Object, ({**values(row), **owner} for row in rows))
    artifact.listing = listing
    artifact.revision = revision
    artifact.model_id = model_id
    artifact.weights_id = weights_id
    artifact.claims = claims
    session.flush()
    return True


def add_objects(session: Session, artifact_id: str, rows: Iterable[Object]) -> None:
    """Store objects of an artifact at places where none is known; what is there stands."""
    query = select(Artifact.project_id).where(Artifact.id == artifact_id)
    owner = {"artifact_id": artifact_id, "project_id": session.execute(query).scalar_one()}
    insert_new(session, Object, ({**values(row), **owner} for row in rows))


def ordinals(artifact_id: str, name: str) -> Select[int]:
    """The places of the objects of exactly this name; the index knows a digest of it."""
    return select(Object.ordinal).where(
        Object.artifact_id == artifact_id, Object.name_key == name_key(name), Object.name == name
    )


def objects(
    session: Session,
    artifact_id: str,
    *,
    limit: int,
    cursor: str | None = None,
    kind: str | None = None,
    format: str | None = None,  # noqa: A002  as the column
    layout: str | None = None,
    name: str | None = None,
    prefix: str | None = None,
) -> Page[Object]:
    """Objects in the order of the directory; `prefix` is what a name begins with, and case counts. Raises: BadCursor."""
    conditions: list[ColumnElement[bool]] = [Object.artifact_id == artifact_id]
    wanted: list[tuple[Any, str | None]] = [
        (Object.kind, kind),
        (Object.format, format),
        (Object.layout, layout),
    ]
    conditions += [column == value for column, value in wanted if value is not None]
    if name is not None:
        conditions.append(Object.ordinal.in_(ordinals(artifact_id, name)))
    if prefix:
        # Not LIKE: on SQLite it does not tell a from A. The length is that of the stored spelling.
        beginning = literal(prefix, HostileText())
        conditions.append(func.substr(Object.name, 1, func.length(beginning)) == beginning)
    after = decode(cursor, _LISTING, ordinal)
    if after is not None:
        conditions.append(Object.ordinal > after[0])
    query = select(Object).where(*conditions).order_by(Object.ordinal).limit(fetched(limit))
    return cut(session.scalars(query).all(), limit, lambda row: encode(_LISTING, row.ordinal))


def object_at(session: Session, artifact_id: str, ordinal: int) -> Object | None:
    """The object at a place of the directory."""
    return session.get(Object, (artifact_id, ordinal)) if 0 <= ordinal < 2**31 else None
