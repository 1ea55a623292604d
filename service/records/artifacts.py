"""Queries over what a project holds: contents, artifacts and their files."""

from collections.abc import Iterable, Sequence

from sqlalchemy import delete, func, literal, or_, select, update
from sqlalchemy.orm import Session, undefer

from service.records.models import PENDING, Artifact, ArtifactFile, Blob, DoomedBlob
from service.records.pages import Page, cut, decode, encode, fetched, identifier
from service.records.rows import batches, insert_new, values
from service.records.types import HostileText, now

_LISTING = "artifacts"


def add_blob(session: Session, project_id: str, sha256: str, bytes: int) -> bool:  # noqa: A002  as the column
    """Note that the project holds this content, and that it came in just now; False when it did already."""
    moment = now()
    row = Blob(project_id=project_id, sha256=sha256, bytes=bytes, created_at=moment)
    held = update(Blob).where(Blob.project_id == project_id, Blob.sha256 == sha256).values(kept_at=moment)
    while insert_new(session, Blob, [values(row)]) == 0:
        # A collector may have dropped the row in between, and then it has to be added after all.
        if session.scalar(held.returning(Blob.sha256)) is not None:
            return False
    return True


def doomed(session: Session, sha256: str) -> bool:
    """Whether this content is about to go, since no project held it."""
    return session.get(DoomedBlob, sha256) is not None


def spare(session: Session, sha256: str) -> None:
    """Content that was about to go stays. Whoever is just removing it is waited for."""
    session.execute(delete(DoomedBlob).where(DoomedBlob.sha256 == sha256))


def find_blob(session: Session, project_id: str, sha256: str) -> Blob | None:
    """The content, when this project holds it."""
    return session.get(Blob, (project_id, sha256))


def find_blobs(
    session: Session, project_id: str, shas: Iterable[str], *, hold: bool = False
) -> dict[str, Blob]:
    """Those contents that this project holds, by their sha256.

    With `hold` they stay until the transaction ends, which has to write what refers to them.
    """
    found: dict[str, Blob] = {}
    for batch in batches(sorted(dict.fromkeys(shas))):
        query = select(Blob).where(Blob.project_id == project_id, Blob.sha256.in_(batch))
        if hold:
            query = query.order_by(Blob.sha256).with_for_update(key_share=True, read=True)
        found |= {blob.sha256: blob for blob in session.scalars(query)}
    return found


def add_artifact(
    session: Session, artifact: Artifact, files: Sequence[ArtifactFile]
) -> tuple[Artifact, bool]:
    """The stored artifact, and whether it is new: one with the same digest stands as it is, whoever was first.

    The files are numbered in the order given.
    """
    new = insert_new(session, Artifact, [values(artifact)]) == 1
    if new:
        rows = [
            {
                **values(file),
                "artifact_id": artifact.id,
                "project_id": artifact.project_id,
                "ordinal": ordinal,
            }
            for ordinal, file in enumerate(files)
        ]
        insert_new(session, ArtifactFile, rows)
    stored = find_artifact(session, artifact.project_id, artifact.digest)
    if stored is None:
        raise RuntimeError("the id of an artifact is taken")
    return stored, new


def find_artifact(session: Session, project_id: str, digest: str) -> Artifact | None:
    """The artifact with a digest, its claims included."""
    query = select(Artifact).where(Artifact.project_id == project_id, Artifact.digest == digest)
    return session.scalars(query.options(undefer(Artifact.claims))).one_or_none()


def artifact(session: Session, artifact_id: str) -> Artifact | None:
    """The artifact with an id, whichever project it belongs to: for rows that refer to it, and for workers."""
    return session.get(Artifact, artifact_id)


def files(session: Session, artifact_id: str) -> list[ArtifactFile]:
    """The files of an artifact, in order."""
    query = select(ArtifactFile).where(ArtifactFile.artifact_id == artifact_id).order_by(ArtifactFile.ordinal)
    return list(session.scalars(query))


def artifacts(
    session: Session,
    project_id: str,
    *,
    limit: int,
    cursor: str | None = None,
    kind: str | None = None,
    q: str | None = None,
) -> Page[Artifact]:
    """Artifacts, newest first; `q` is looked for in digest, names and ids, without regard to the case of ASCII letters.

    Raises: BadCursor.
    """
    query = select(Artifact).where(Artifact.project_id == project_id)
    if kind is not None:
        query = query.where(Artifact.kind == kind)
    if q:
        # Not LIKE: its pattern has a length limit on SQLite, and wildcards to escape.
        position = func.instr if session.get_bind().dialect.name == "sqlite" else func.strpos
        columns = (Artifact.digest, Artifact.entry, Artifact.model_id, Artifact.weights_id)
        wanted = func.lower(literal(q, HostileText()))
        query = query.where(or_(*(position(func.lower(column), wanted) > 0 for column in columns)))
    after = decode(cursor, _LISTING, identifier)
    if after is not None:
        query = query.where(Artifact.id < after[0])
    rows = session.scalars(query.order_by(Artifact.id.desc()).limit(fetched(limit))).all()
    return cut(rows, limit, lambda row: encode(_LISTING, row.id))


def unlisted(session: Session, limit: int, after: str = "") -> list[Artifact]:
    """Artifacts of every project whose directory was not read yet, oldest first; `after` is an id to begin behind."""
    pending = Artifact.listing == literal(
        PENDING, literal_execute=True
    )  # a literal, or SQLite ignores the index
    return list(
        session.scalars(
            select(Artifact).where(pending, Artifact.id > after).order_by(Artifact.id).limit(limit)
        )
    )
