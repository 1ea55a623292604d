"""Queries over the targets that clients stored; the registered ones are no rows."""

from collections.abc import Collection

from sqlalchemy import select, tuple_
from sqlalchemy.orm import Session

from service.records.models import Target
from service.records.pages import Page, cut, decode, encode, fetched, identifier, moment
from service.records.rows import insert_new, values

_TARGETS = "targets"


def add_target(session: Session, target: Target) -> bool:
    """Store a target; False when the project has it already."""
    return insert_new(session, Target, [values(target)]) == 1


def target(session: Session, project_id: str, digest: str) -> Target | None:
    """The stored target with a digest."""
    return session.get(Target, (project_id, digest))


def targets(session: Session, project_id: str, *, limit: int, cursor: str | None = None) -> Page[Target]:
    """Stored targets, newest first. Raises: BadCursor."""
    query = select(Target).where(Target.project_id == project_id)
    after = decode(cursor, _TARGETS, moment, identifier)
    if after is not None:
        query = query.where(tuple_(Target.created_at, Target.digest) < after)
    newest = query.order_by(Target.created_at.desc(), Target.digest.desc())
    rows = session.scalars(newest.limit(fetched(limit))).all()
    return cut(rows, limit, lambda row: encode(_TARGETS, row.created_at.isoformat(), row.digest))


def of_inventory(session: Session, project_id: str, inventory_sha256: str, limit: int) -> list[Target]:
    """Stored targets with an inventory, newest first."""
    query = select(Target).where(Target.project_id == project_id, Target.inventory_sha256 == inventory_sha256)
    return list(session.scalars(query.order_by(Target.created_at.desc(), Target.digest).limit(limit)))


def identities(session: Session, project_id: str, digests: Collection[str]) -> dict[str, str]:
    """`model_id/weights_id` of stored targets by digest."""
    if not digests:
        return {}
    query = select(Target.digest, Target.model_id, Target.weights_id).where(
        Target.project_id == project_id, Target.digest.in_(digests)
    )
    return {digest: f"{model_id}/{weights_id}" for digest, model_id, weights_id in session.execute(query)}


def of_identity(
    session: Session, project_id: str, model_id: str, weights_id: str, limit: int
) -> list[Target]:
    """Stored targets of an identity, newest first."""
    query = select(Target).where(
        Target.project_id == project_id, Target.model_id == model_id, Target.weights_id == weights_id
    )
    return list(session.scalars(query.order_by(Target.created_at.desc(), Target.digest).limit(limit)))
