"""The objects of an artifact, read out of its directory into rows, as any report of it lists them."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import structlog
from sqlalchemy.orm import Session

from ninfer_core.containers.directory import ArtifactObject, BrokenObject, ResourceObject, TensorObject
from ninfer_core.containers.ninfer import read_artifact
from ninfer_core.errors import NinferError
from ninfer_core.findings import Findings
from ninfer_core.layouts import RESOURCE_ENCODING
from ninfer_core.sources.checkpoint import INDEX_SUFFIX, Kind, open_checkpoint
from ninfer_core.sources.safetensors import SourceTensor
from ninfer_core.verify.report import ObjectResult, Report
from service.queue import LIST_OBJECTS, listing_id
from service.records import content, provenance
from service.records.models import LISTED, UNREADABLE, Artifact, Object, Run
from worker import facts
from worker.context import DONE, Answer, Context, Steps
from worker.errors import MayPass, RowMissing
from worker.patience import passing
from worker.preparing import Store
from worker.sources import StoredFiles

log = structlog.get_logger()

# Seconds before the attempts after the first; a day later the engine has forgotten them all, and the sweep begins anew.
_AGAIN = (2.0, 8.0, 32.0, 128.0, 512.0, 2048.0, 8192.0)


@dataclass(frozen=True, slots=True)
class Listing:
    """What a directory says: `state` is what `Artifact.listing` becomes."""

    state: str
    rows: Iterable[Object]
    revision: int | None = None
    model_id: str | None = None
    weights_id: str | None = None
    claims: Any = None


def list_objects(context: Context, steps: Steps, artifact_id: str, attempt: int = 0) -> None:
    """The workflow of an artifact that was pushed."""
    steps.step("list", lambda: _list(context, artifact_id, attempt))


def _list(context: Context, artifact_id: str, attempt: int) -> Answer:
    try:
        listed = list_if_possible(context.store, artifact_id)
    except Exception as error:
        if passing(error):
            raise
        log.exception("artifact.listing_broke", artifact=artifact_id)
        listed = False
    if not listed and attempt < len(_AGAIN):
        again = attempt + 1
        context.queue.enqueue(
            LIST_OBJECTS, listing_id(artifact_id, again), artifact_id, again, delay_seconds=_AGAIN[attempt]
        )
    return DONE


def list_if_possible(store: Store, artifact_id: str) -> bool:
    """List the artifact's objects, unless that is done; False when its files cannot be read just now.

    Whether they ever can is for a verification to say, and until then nothing is said of the directory.
    Raises: Draining, Cancelled.
    """
    with store.database.read() as session:
        artifact = content.artifact(session, artifact_id)
        if artifact is None or artifact.listing == LISTED:
            return True
        digests = {row.name: row.sha256 for row in content.files(session, artifact_id)}
    files = StoredFiles(store.blobs, digests, store.watch)
    try:
        listing = _read(artifact, files)
        with store.database.write() as session:
            _save(session, artifact, listing)
    except (NinferError, MayPass) as error:
        log.warning("artifact.unread", artifact=artifact_id, error=str(error))
        return False
    finally:
        files.close()
    return True


def list_reported(context: Context, run: Run, report: Report) -> None:
    """Let every object of a report have its row, out of the report itself where its directory was not listed.

    Raises: Cancelled, Draining.
    """
    artifact = _artifact(context, run)
    if artifact.listing != LISTED and report.objects:
        context.write(run.job_id, _save_reported, artifact, report)
        artifact = _artifact(context, run)  # somebody may have been quicker
    if len(report.objects) > (artifact.object_count or 0):
        # The directory on the disk is not the one that was listed; the report says that a file has changed.
        rows = (_reported(artifact, item) for item in report.objects)
        context.write_rows(
            run.job_id, rows, lambda session, batch: content.add_objects(session, artifact.id, batch)
        )


def _artifact(context: Context, run: Run) -> Artifact:
    with context.database.read() as session:
        artifact = content.artifact(session, run.artifact_id)
    if artifact is None:
        raise RowMissing("artifact", run.artifact_id)
    return artifact


def _save_reported(session: Session, artifact: Artifact, report: Report) -> None:
    rows = (_reported(artifact, item) for item in report.objects)
    listing = Listing(LISTED, rows, report.revision, report.model_id, report.weights_id)
    _save(session, artifact, listing)


def _save(session: Session, artifact: Artifact, listing: Listing) -> None:
    formats: set[str] = set()
    stored = content.list_objects(
        session,
        artifact.id,
        rows=_noting(listing.rows, formats),
        listing=listing.state,
        revision=listing.revision,
        model_id=listing.model_id,
        weights_id=listing.weights_id,
        claims=listing.claims,
    )
    if stored:
        claimed = facts.claimed(listing.claims, listing.model_id, listing.weights_id, formats)
        provenance.save(session, artifact, "claimed", artifact.id, claimed)


def _noting(rows: Iterable[Object], formats: set[str]) -> Iterator[Object]:
    for row in rows:
        if row.format is not None:
            formats.add(row.format)
        yield row


def _read(artifact: Artifact, files: StoredFiles) -> Listing:
    if artifact.kind == "safetensors":
        kind = Kind.INDEX if artifact.entry.endswith(INDEX_SUFFIX) else Kind.FILE
        checkpoint = open_checkpoint(files, kind, artifact.entry, Findings())
        if checkpoint is None:
            return Listing(UNREADABLE, [])
        said = next((header.metadata for header in checkpoint.headers.values() if header.metadata), None)
        claims = facts.claims({"metadata": said and dict(said)})
        return Listing(LISTED, _tensors(artifact, checkpoint.tensors.values()), claims=claims)
    directory = read_artifact(files, artifact.entry, Findings())
    if directory is None or not directory.listed:
        return Listing(UNREADABLE, [])
    rows = (_row(artifact, item) for item in directory.objects)
    claims = facts.claims(directory.sections)
    return Listing(LISTED, rows, directory.revision, directory.model_id, directory.weights_id, claims)


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


def _reported(artifact: Artifact, item: ObjectResult) -> Object:
    encoding = RESOURCE_ENCODING if item.kind == "resource" else None
    entry = _entry(encoding, item.shape, item.offset, item.bytes)
    return _object(artifact, item.ordinal, item.name, item.kind, item.format, item.layout, entry)


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
