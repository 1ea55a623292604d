"""Artifacts: made of content that the project holds, known by their digest, listed by a worker afterwards."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import structlog

from ninfer_core.errors import Usage
from ninfer_core.identity import artifact_digest
from ninfer_core.opening import ENTRY_SUFFIX, ArtifactKind
from ninfer_core.sources.checkpoint import INDEX_SUFFIX, SUFFIX, detect
from service.blobs import BlobFiles
from service.contents import NamedDigest, Stored, look, named_files
from service.errors import ArtifactKindConflict, ArtifactNotFound, EntryUnclear, Fault
from service.lanes import INTERACTIVE
from service.parts import Parts
from service.queue import LIST_OBJECTS, listing_id
from service.records import content
from service.records.models import PENDING, Artifact, ArtifactFile, Object
from service.records.pages import Page
from service.records.types import new_id, now

log = structlog.get_logger()

_ENQUEUE_SECONDS = 2.0  # the engine's database may be locked for longer than a client should wait
_ENQUEUEING = ThreadPoolExecutor(4, thread_name_prefix="enqueue")


def push(
    parts: Parts, project_id: str, kind: ArtifactKind, files: Sequence[NamedDigest]
) -> tuple[Artifact, bool]:
    """The artifact of these files, and whether it is new.

    Raises: TooManyFiles, InvalidRequest, BlobsMissing, EntryUnclear, ArtifactKindConflict.
    """
    lost = look(parts, project_id, files)
    with parts.database.write() as session:
        found = named_files(session, project_id, files, lost)
        entry = entry_of(parts, kind, {file.name: file.sha256 for file in found})
        row = Artifact(
            id=new_id(),
            project_id=project_id,
            digest=artifact_digest(kind, found),
            kind=kind,
            entry=entry,
            bytes=sum(file.bytes for file in found),
            origin="pushed",
            listing=PENDING,
            created_at=now(),
        )
        rows = [
            ArtifactFile(
                artifact_id=row.id,
                project_id=project_id,
                ordinal=ordinal,
                name=file.name,
                sha256=file.sha256,
                bytes=file.bytes,
            )
            for ordinal, file in enumerate(sorted(found, key=lambda file: file.name))
        ]
        artifact, new = content.add_artifact(session, row, rows)
    if artifact.kind != kind:
        raise ArtifactKindConflict(
            f"{artifact.digest} is an artifact of kind {artifact.kind} already.",
            Fault("body", "$.kind", f"the artifact is of kind {artifact.kind}"),
        )
    if artifact.listing == PENDING:
        start(parts, LIST_OBJECTS, listing_id(artifact.id), artifact.id)
    return artifact, new


def push_one(
    parts: Parts, project_id: str, kind: ArtifactKind, name: str, stored: Stored
) -> tuple[Artifact, bool]:
    """`push` of one file whose content has just come in."""
    return push(parts, project_id, kind, [NamedDigest(name, stored.digest)])


def start(
    parts: Parts, workflow: str, id_: str, *args: str | int, lane: str = INTERACTIVE, priority: int = 0
) -> None:
    """Enqueue what is committed already; when that fails or takes long, the workers' sweep does it later."""
    try:
        line = partial(parts.queue.enqueue, workflow, id_, *args, lane=lane, priority=priority)
        _ENQUEUEING.submit(line).result(_ENQUEUE_SECONDS)
    except TimeoutError:
        log.warning("queue.enqueue_slow", workflow=workflow, id=id_)
    except Exception as error:  # noqa: BLE001  the engine's own failures are many, and none is the client's
        log.warning("queue.enqueue_failed", workflow=workflow, id=id_, error=str(error))


def entry_of(parts: Parts, kind: ArtifactKind, files: dict[str, str]) -> str:
    """The file to begin with, chosen as for a folder on the command line. Raises: EntryUnclear."""
    names = list(files)
    if kind == "safetensors":
        try:
            return detect(BlobFiles(parts.blobs, files)).name
        except Usage as error:
            raise _unclear(str(error)) from error
    entries = [name for name in names if name.endswith(ENTRY_SUFFIX)]
    if len(entries) == 1:
        return entries[0]
    if len(names) == 1 and not names[0].endswith((SUFFIX, INDEX_SUFFIX)):
        return names[0]
    if entries:
        listed = ", ".join(entries[:8])
        raise _unclear(f"more than one file ends in {ENTRY_SUFFIX}: {listed}")
    raise _unclear(f"none of {len(names):,} files ends in {ENTRY_SUFFIX}")


def find(parts: Parts, project_id: str, digest: str) -> Artifact:
    """Raises: ArtifactNotFound."""
    with parts.database.read() as session:
        artifact = content.find_artifact(session, project_id, digest)
    if artifact is None:
        raise ArtifactNotFound(f"This project holds no artifact {digest}.")
    return artifact


def files_of(parts: Parts, artifact: Artifact) -> Sequence[ArtifactFile]:
    """The files in the order of their names."""
    with parts.database.read() as session:
        return content.files(session, artifact.id)


def page(
    parts: Parts, project_id: str, *, limit: int, cursor: str | None, kind: str | None, q: str | None
) -> Page[Artifact]:
    """Newest first. Raises: BadCursor."""
    with parts.database.read() as session:
        return content.artifacts(session, project_id, limit=limit, cursor=cursor, kind=kind, q=q)


def objects(
    parts: Parts, project_id: str, digest: str, *, limit: int, cursor: str | None, **filters: str | None
) -> Page[Object]:
    """By ordinal; `filters` are kind, format, layout, name, prefix. Raises: ArtifactNotFound, BadCursor."""
    artifact = find(parts, project_id, digest)
    with parts.database.read() as session:
        return content.objects(session, artifact.id, limit=limit, cursor=cursor, **filters)


def _unclear(why: str) -> EntryUnclear:
    return EntryUnclear(f"{why[0].upper()}{why[1:]}.", Fault("body", "$.files", why))
