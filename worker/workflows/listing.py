"""The objects of an artifact, read out of its directory into rows, as any report of it lists them."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import structlog

from ninfer_core.containers.directory import ArtifactObject, BrokenObject, ResourceObject, TensorObject
from ninfer_core.containers.ninfer import read_artifact
from ninfer_core.errors import NinferError
from ninfer_core.findings import Findings
from ninfer_core.layouts import RESOURCE_ENCODING
from ninfer_core.sources.checkpoint import INDEX_SUFFIX, Kind, open_checkpoint
from ninfer_core.sources.safetensors import SourceTensor
from service.records import content
from service.records.models import Artifact, Object
from worker.context import DONE, Answer, Context, Steps
from worker.preparing import Store
from worker.sources import StoredFiles

log = structlog.get_logger()

PENDING, LISTED, UNREADABLE = "pending", "listed", "unreadable"


@dataclass(frozen=True, slots=True)
class Listing:
    """What a directory says: `state` is what `Artifact.listing` becomes."""

    state: str
    rows: list[Object]
    revision: int | None = None
    model_id: str | None = None
    weights_id: str | None = None


def list_objects(context: Context, steps: Steps, artifact_id: str) -> None:
    """The workflow of an artifact that was pushed."""
    steps.step("list", lambda: _list(context, artifact_id))


def _list(context: Context, artifact_id: str) -> Answer:
    try:
        ensure_listed(context.store, artifact_id)
    except NinferError as error:
        # Nothing that a person waits for: a verification of it will say what is wrong.
        log.warning("artifact.unreadable", artifact=artifact_id, error=str(error))
        mark_unreadable(context.store, artifact_id)
    return DONE


def mark_unreadable(store: Store, artifact_id: str) -> None:
    """Nobody will list it any more."""
    _save(store, artifact_id, Listing(UNREADABLE, []))


def ensure_listed(store: Store, artifact_id: str) -> None:
    """List the artifact's objects, unless that is done. Raises: CannotRead, Draining, Cancelled."""
    with store.database.read() as session:
        artifact = content.artifact(session, artifact_id)
        if artifact is None or artifact.listing != PENDING:
            return
        digests = {row.name: row.sha256 for row in content.files(session, artifact_id)}
    files = StoredFiles(store.blobs, digests, store.watch)
    try:
        _save(store, artifact_id, _read(artifact, files))
    finally:
        files.close()


def _save(store: Store, artifact_id: str, listing: Listing) -> None:
    with store.database.write() as session:
        content.list_objects(
            session,
            artifact_id,
            rows=listing.rows,
            listing=listing.state,
            revision=listing.revision,
            model_id=listing.model_id,
            weights_id=listing.weights_id,
        )


def _read(artifact: Artifact, files: StoredFiles) -> Listing:
    if artifact.kind == "safetensors":
        kind = Kind.INDEX if artifact.entry.endswith(INDEX_SUFFIX) else Kind.FILE
        checkpoint = open_checkpoint(files, kind, artifact.entry, Findings())
        if checkpoint is None:
            return Listing(UNREADABLE, [])
        return Listing(LISTED, list(_tensors(artifact, checkpoint.tensors.values())))
    directory = read_artifact(files, artifact.entry, Findings())
    if directory is None or not directory.listed:
        return Listing(UNREADABLE, [])
    rows = [_row(artifact, item) for item in directory.objects]
    return Listing(LISTED, rows, directory.revision, directory.model_id, directory.weights_id)


def _tensors(artifact: Artifact, tensors: Iterable[SourceTensor]) -> Iterator[Object]:
    for ordinal, item in enumerate(tensors):
        entry = _entry(None, item.shape, item.offset, item.bytes)
        yield _object(artifact, ordinal, item.name, "tensor", item.dtype, None, entry)


def _row(artifact: Artifact, item: ArtifactObject) -> Object:
    match item:
        case TensorObject():
            entry = _entry(None, item.shape, item.offset, item.bytes)
            names = (item.format.name, item.layout.name)
            return _object(artifact, item.ordinal, item.name, "tensor", *names, entry)
        case ResourceObject():
            entry = _entry(RESOURCE_ENCODING, None, item.offset, item.bytes)
            return _object(artifact, item.ordinal, item.name, "resource", None, None, entry)
        case BrokenObject():
            encoding = RESOURCE_ENCODING if item.kind == "resource" else None
            entry = _entry(encoding, item.shape, item.offset, item.bytes)
            return _object(artifact, item.ordinal, item.label, item.kind, item.format, item.layout, entry)


def _entry(
    encoding: str | None, shape: tuple[int, ...] | None, offset: int | None, size: int | None
) -> dict[str, object]:
    return {
        "encoding": encoding,
        "shape": None if shape is None else list(shape),
        "offset": offset,
        "bytes": size,
    }


def _object(
    artifact: Artifact,
    ordinal: int,
    name: str,
    kind: str | None,
    format_name: str | None,
    layout: str | None,
    entry: dict[str, object],
) -> Object:
    return Object(
        artifact_id=artifact.id,
        project_id=artifact.project_id,
        ordinal=ordinal,
        name=name,
        kind=kind,
        format=format_name,
        layout=layout,
        entry=entry,
    )
