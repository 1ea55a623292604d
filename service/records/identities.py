"""What the objects of artifacts are, and where else the same tensor lies."""

from collections.abc import Iterable
from dataclasses import dataclass

from sqlalchemy import select, tuple_
from sqlalchemy.orm import Session

from service.records.models import Artifact, Object, ObjectIdentity
from service.records.pages import Page, cut, decode, encode, fetched, identifier, ordinal
from service.records.rows import insert_new

_OCCURRENCES = "occurrences"


@dataclass(frozen=True, slots=True)
class Occurrence:
    """One place at which a tensor lies."""

    artifact: Artifact
    object: Object


def save(session: Session, artifact: Artifact, identities: Iterable[tuple[int, str]]) -> None:
    """Note identities by ordinal; what is known of a place stands."""
    owner = {"artifact_id": artifact.id, "project_id": artifact.project_id}
    rows = ({**owner, "ordinal": place, "identity": identity} for place, identity in identities)
    insert_new(session, ObjectIdentity, rows)


def of_artifact(session: Session, artifact_id: str) -> dict[int, str]:
    """Identities by ordinal, as far as they are known."""
    query = select(ObjectIdentity.ordinal, ObjectIdentity.identity)
    return dict(session.execute(query.where(ObjectIdentity.artifact_id == artifact_id)).all())


def identity(session: Session, artifact_id: str, place: int) -> str | None:
    """The identity of one object."""
    found = session.get(ObjectIdentity, (artifact_id, place))
    return None if found is None else found.identity


def occurrences(
    session: Session, project_id: str, wanted: str, *, limit: int, cursor: str | None = None
) -> Page[Occurrence]:
    """Where a tensor lies, the oldest artifact first. Raises: BadCursor."""
    of_it = ObjectIdentity
    query = (
        select(Artifact, Object)
        .select_from(of_it)
        .join(Object, (Object.artifact_id == of_it.artifact_id) & (Object.ordinal == of_it.ordinal))
        .join(Artifact, Artifact.id == of_it.artifact_id)
        .where(of_it.project_id == project_id, of_it.identity == wanted)
    )
    after = decode(cursor, _OCCURRENCES, identifier, ordinal)
    if after is not None:
        query = query.where(tuple_(of_it.artifact_id, of_it.ordinal) > after)
    rows = session.execute(query.order_by(of_it.artifact_id, of_it.ordinal).limit(fetched(limit))).all()
    found = [Occurrence(artifact, item) for artifact, item in rows]
    return cut(found, limit, lambda one: encode(_OCCURRENCES, one.artifact.id, one.object.ordinal))
