"""Checkpoints: source weights by their files, with what the client claims of where they come from."""

from collections.abc import Sequence

from ninfer_core.identity import artifact_digest
from service.contents import NamedDigest, look, named_files
from service.errors import CheckpointNotFound
from service.parts import Parts
from service.records import content
from service.records.models import Checkpoint, CheckpointFile
from service.records.pages import Page
from service.records.types import new_id, now

KIND = "checkpoint"  # of the listing whose digest a set of files gets


def push(
    parts: Parts,
    project_id: str,
    files: Sequence[NamedDigest],
    *,
    repository: str | None,
    revision: str | None,
    license: str | None = None,  # noqa: A002  as the column
) -> tuple[Checkpoint, bool]:
    """The checkpoint of these files and claims, and whether it is new; the same content with other claims is another one.

    What a recipe reads of it is decided when a job binds the two: any files may lie beside the weights.
    Raises: TooManyFiles, InvalidRequest, BlobsMissing.
    """
    lost = look(parts, project_id, files)
    with parts.database.write() as session:
        found = sorted(named_files(session, project_id, files, lost), key=lambda file: file.name)
        row = Checkpoint(
            id=new_id(),
            project_id=project_id,
            digest=artifact_digest(KIND, found),
            bytes=sum(file.bytes for file in found),
            repository=repository,
            revision=revision,
            license=license,
            created_at=now(),
        )
        rows = [
            CheckpointFile(
                checkpoint_id=row.id,
                project_id=project_id,
                ordinal=ordinal,
                name=file.name,
                sha256=file.sha256,
                bytes=file.bytes,
            )
            for ordinal, file in enumerate(found)
        ]
        return content.add_checkpoint(session, row, rows)


def find(parts: Parts, project_id: str, checkpoint_id: str) -> tuple[Checkpoint, Sequence[CheckpointFile]]:
    """The checkpoint and its files. Raises: CheckpointNotFound."""
    with parts.database.read() as session:
        checkpoint = content.checkpoint(session, project_id, checkpoint_id)
        if checkpoint is None:
            raise CheckpointNotFound(f"This project holds no checkpoint {checkpoint_id}.")
        return checkpoint, content.checkpoint_files(session, checkpoint.id)


def page(parts: Parts, project_id: str, *, limit: int, cursor: str | None) -> Page[Checkpoint]:
    """Newest first. Raises: BadCursor."""
    with parts.database.read() as session:
        return content.checkpoints(session, project_id, limit=limit, cursor=cursor)
