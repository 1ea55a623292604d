"""An import: files are fetched one after the other, each hashed on its way and then content of the project; or the parts of an upload become content.

A shard without tasks stands for each file: what is done of them is the job's progress, and what a later worker need not
fetch again.
"""

import functools
import json
from collections.abc import Sequence
from typing import Any, Final

from sqlalchemy.orm import Session

from ninfer_core.errors import CannotRead
from ninfer_core.identity import DIGEST_PREFIX
from ninfer_core.io import ByteSource
from service import artifacts, metrics, quotas
from service.blobs import WrongContent
from service.contents import NamedDigest
from service.errors import DigestMismatch
from service.imports import OF_UPLOAD
from service.outside import open_outside
from service.records import imports, jobs, uploads
from service.records.models import Job, Shard, Upload
from service.uploads.part_store import drop, store_of
from service.uploads.parts import expected
from worker.context import DONE, Answer, Context, Steps
from worker.errors import RowMissing
from worker.watch import Cancelled, Ticket
from worker.workflows import shards

_PIECE_BYTES: Final = 8 << 20

File = dict[str, Any]  # name, digest, bytes


def import_content(context: Context, steps: Steps, job_id: str, epoch: int = 0) -> None:
    """The job."""
    work = (("begin", shards.begin), ("fetch", _fetch_or_promote))
    shards.in_turn(context.at(epoch), steps, job_id, work)


def _fetch_or_promote(context: Context, job_id: str) -> Answer:
    job = context.job(job_id)
    source: str = job.request["source"]
    if source.startswith(OF_UPLOAD):
        return _promote(context, job, source.removeprefix(OF_UPLOAD))
    return _fetch(context, job, source)


def _fetch(context: Context, job: Job, source: str) -> Answer:
    with open_outside(context.settings, source, context.watch.check) as named:
        whole = sum(file.size for _, file in named)
        with context.database.read() as session:
            # Of each by itself: how much of it the project holds already is known when it is hashed.
            largest = max((file.size for _, file in named), default=0)
            quotas.require_possible(session, context.settings, job.project_id, largest)
        planned = [_shard(job, number, file.size) for number, (_, file) in enumerate(named)]
        stored = context.write(job.id, jobs.plan, job.id, len(named), whole, planned)
        _require_same(stored, named)
        files = [
            _one(context, job, shard, name, file) for shard, (name, file) in zip(stored, named, strict=True)
        ]
    artifact = None
    if job.request["kind"] is not None:
        given = [NamedDigest(file["name"], file["digest"]) for file in files]
        artifact, _ = artifacts.push(context.parts, job.project_id, job.request["kind"], given)
    document = {"files": files, "artifact": None if artifact is None else artifact.digest}

    def conclude(session: Session) -> None:
        _end(session, job, document)
        jobs.finish(session, job.id, "passed", artifact_id=None if artifact is None else artifact.id)

    context.write(job.id, conclude)
    return DONE


def _require_same(stored: Sequence[Shard], named: Sequence[tuple[str, ByteSource]]) -> None:
    """Raises: CannotRead when there are other files than when the job was planned."""
    if [shard.bytes for shard in stored] != [file.size for _, file in named]:
        raise CannotRead("other files lie there than when the import began")


def _one(context: Context, job: Job, shard: Shard, name: str, source: ByteSource) -> File:
    """What a file is, once it is content of the project. Raises: CannotRead, CannotWrite, QuotaExceeded."""
    if shard.done:
        with context.database.read() as session:
            known: File = json.loads(jobs.outcomes(session, job.id, shard.number))
        if known["name"] == name:
            return known
        raise CannotRead("other files lie there than when the import began")
    with context.ticket(job.id, shard.number) as ticket, context.store.blobs.writer() as writer:
        for piece in _pieces(source, ticket):
            writer.write(piece)
        changed = source.changed()
        if changed is not None:
            raise CannotRead(f"{name} was changed while it was fetched: {changed}")
        sha256, size = writer.sha256, writer.bytes
        context.prepare(job.project_id, sha256, size)
        writer.commit()
    file = {"name": name, "digest": DIGEST_PREFIX + sha256, "bytes": size}

    def keep(session: Session) -> None:
        context.hold(session, job.project_id, sha256, size)
        jobs.finish_shard(session, job.id, shard.number, json.dumps(file))

    context.write(job.id, keep)
    metrics.UPLOADED.labels("import").inc(size)
    return file


def _pieces(source: ByteSource, ticket: Ticket) -> Any:
    buffer = memoryview(bytearray(min(_PIECE_BYTES, max(1, source.size))))
    for offset in range(0, source.size, _PIECE_BYTES):
        piece = buffer[: min(_PIECE_BYTES, source.size - offset)]
        source.read_into(piece, offset)
        yield piece
        ticket.advance(len(piece))


def _promote(context: Context, job: Job, upload_id: str) -> Answer:
    with context.database.read() as session:
        upload = uploads.get(session, upload_id)
    store = store_of(context.store.blobs)
    if upload is None or upload.sha256 is None:
        raise RowMissing("upload", upload_id)
    if store is None:
        raise CannotRead("the store of this worker takes no parts; its settings are not those of the service")
    if upload.state == "failed":
        raise CannotRead(f"the upload failed: {upload.error['detail']}")
    size, sha256 = upload.bytes, upload.sha256
    context.write(job.id, jobs.plan, job.id, 1, size, [_shard(job, 0, size)])
    if upload.state != "stored":
        context.prepare(upload.project_id, sha256, size, has_room=True)
        try:
            with context.ticket(job.id, 0):
                store.promote(upload.id, expected(upload), sha256)
        except (WrongContent, CannotRead) as error:
            code = DigestMismatch.code if isinstance(error, WrongContent) else error.code
            context.write(job.id, functools.partial(_fail, upload_id=upload.id, code=code, detail=str(error)))
            drop(context.store.blobs, upload)
            raise
    file = {"name": upload.name or upload.id, "digest": DIGEST_PREFIX + sha256, "bytes": size}

    def conclude(session: Session) -> None:
        _store(session, context, upload)
        jobs.finish_shard(session, job.id, 0, json.dumps(file))
        _end(session, job, {"files": [file], "artifact": None})
        jobs.finish(session, job.id, "passed")

    context.write(job.id, conclude)
    drop(context.store.blobs, upload)
    metrics.UPLOADED.labels("parts").inc(size)
    return DONE


def _store(session: Session, context: Context, upload: Upload) -> None:
    found = uploads.locked(session, upload.id)
    if found is None or upload.sha256 is None or found.state == "failed":
        raise Cancelled  # given up meanwhile: nothing of it is the project's
    if found.state not in uploads.OPEN:
        return  # stored before, and asked for once more
    uploads.end(found, "stored", sha256=upload.sha256)
    session.flush()  # it takes no room as an upload any more when room for its content is looked for
    context.hold(session, upload.project_id, upload.sha256, upload.bytes)


def _fail(session: Session, *, upload_id: str, code: str, detail: str) -> None:
    found = uploads.locked(session, upload_id)
    if found is not None and found.state in uploads.OPEN:
        uploads.end(found, "failed", error={"code": code, "detail": f"{detail[0].upper()}{detail[1:]}."})


def _end(session: Session, job: Job, document: dict[str, Any]) -> None:
    row = imports.by_job(session, job.id)
    if row is None:
        raise RowMissing("import", job.id)
    imports.save(session, row.id, document)


def _shard(job: Job, number: int, size: int) -> Shard:
    return Shard(
        job_id=job.id,
        project_id=job.project_id,
        number=number,
        first=0,
        stop=0,
        bytes=size,
        bytes_done=0,
        objects=1,
        done=False,
    )
