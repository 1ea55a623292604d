"""A conversion: planned and cut into shards, each of which writes a segment; one step composes the artifact of them."""

import hashlib
import os
import secrets
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ninfer_core.containers.output import Output
from ninfer_core.containers.segment import SegmentWriter, replay
from ninfer_core.convert import SCHEMA, Conversion, Draft
from ninfer_core.errors import CannotWrite
from ninfer_core.findings import Finding
from ninfer_core.io import Buffer, DiskFile
from ninfer_core.verify.outcomes import Outcome
from ninfer_core.verify.report import finding_json, versions
from service.blobs import sync_folder
from service.queue import CONVERT_SHARD
from service.records import content, conversions, jobs
from service.records import models as rows
from service.records.types import new_id, now
from worker.context import DONE, ENDED, Answer, Context, Steps
from worker.errors import RowMissing, SegmentDamaged
from worker.preparing import Drafted
from worker.watch import Ticket
from worker.workflows import shards
from worker.workflows.listing import PENDING, ensure_listed

_ROWS = 2_000


def convert(context: Context, steps: Steps, job_id: str) -> None:
    """The job."""
    work = (
        ("begin", lambda: shards.begin(context, job_id)),
        ("plan", lambda: context.answering(job_id, lambda: _plan(context, job_id))),
        ("put in line", lambda: shards.put_in_line(context, CONVERT_SHARD, job_id)),
        ("wait", lambda: context.answering(job_id, lambda: shards.wait(context, job_id))),
        ("compose", lambda: context.answering(job_id, lambda: _compose(context, job_id))),
    )
    for name, step in work:
        if steps.step(name, step)["ended"]:
            break
    context.forget(job_id)
    context.store.blobs.clear_work(job_id)


def convert_shard(context: Context, steps: Steps, job_id: str, number: int) -> None:
    """One shard of it."""

    def work(first: int, stop: int) -> tuple[list[Outcome], dict[str, Any] | None]:
        with context.drafted(job_id) as drafted:
            return _encode(context, job_id, _draft(drafted, job_id), first, stop)

    steps.step("run", lambda: context.answering(job_id, lambda: shards.run(context, job_id, number, work)))


def _plan(context: Context, job_id: str) -> Answer:
    job = context.job(job_id)
    if job.objects is not None:
        return DONE  # planned before
    with context.watch.ticket(job_id), context.drafted(job_id) as drafted:
        draft = drafted.draft
        if draft is None:
            return _refuse(context, job_id, drafted)
        objects = draft.totals.objects
        composing = 2 * draft.blueprint.bytes  # hashed by object and by file
        parts = shards.cut(job, draft.tasks, context.settings.shard_bytes, objects, composing)
    return shards.save_plan(context, job_id, objects, parts)


def _draft(drafted: Drafted, job_id: str) -> Draft:
    if drafted.draft is None:
        # It was bound when the job was planned; now a source is not what it was.
        raise RowMissing("plan of the conversion", job_id)
    return drafted.draft


def _encode(
    context: Context, job_id: str, draft: Draft, first: int, stop: int
) -> tuple[list[Outcome], dict[str, Any]]:
    """Run tasks into a new segment, which is then named by its content: two who do it at once make the same file."""
    folder = context.store.blobs.work(job_id)
    path = folder / f"{secrets.token_hex(16)}.partial"
    try:
        with SegmentWriter(path) as writer:
            found: list[Outcome] = [task.run(writer) for task in draft.tasks[first:stop]]
        os.replace(path, folder / writer.sha256)
        sync_folder(folder)
    except OSError as error:
        raise CannotWrite(f"cannot write in {folder}: {error.strerror}") from error
    finally:
        path.unlink(missing_ok=True)
    return found, {"sha256": writer.sha256, "bytes": writer.bytes, "records": writer.records}


def _compose(context: Context, job_id: str) -> Answer:
    with context.database.read() as session:
        row = conversions.by_job(session, job_id)
        planned = jobs.shards(session, job_id)
    if row is None:
        raise RowMissing("conversion", job_id)
    folder = context.store.blobs.work(job_id)
    with context.watch.ticket(job_id, planned[-1].number) as ticket, context.drafted(job_id) as drafted:
        draft = _draft(drafted, job_id)
        drafted.counting.ticket = ticket
        with Output(draft.blueprint, folder / row.output["name"]) as output:
            for shard in planned:
                if shard.segment is not None:
                    _replay(shard, folder, output, ticket)
            found = shards.outcomes(context, planned)
            conversion = draft.compose(shards.encoded(found), output)
            ticket.check()
            if conversion.written:
                for file, digest in zip(output.files, conversion.files, strict=True):
                    context.store.blobs.adopt(file, digest.sha256)
        _save(context, row, conversion, planned[-1].number)
    return DONE


class _Hashed:
    """A file that is read once from its beginning to its end, and digested on the way (a `ByteSource`)."""

    def __init__(self, file: DiskFile) -> None:
        self.name, self.size = file.name, file.size
        self.digest = hashlib.sha256()
        self._file = file

    def read_into(self, buffer: Buffer, offset: int) -> None:
        """See `ByteSource.read_into`."""
        self._file.read_into(buffer, offset)
        self.digest.update(buffer)

    def changed(self) -> str | None:
        """See `ByteSource.changed`."""
        return self._file.changed()


def _replay(shard: rows.Shard, folder: Path, output: Output, ticket: Ticket) -> None:
    wanted = shard.segment["sha256"]
    file = DiskFile(folder / wanted, follow=False)
    try:
        source = _Hashed(file)
        records = [(offset, length) for offset, length in shard.segment["records"]]
        replay(source, records, output, lambda _: ticket.check())
    finally:
        file.close()
    if source.digest.hexdigest() != wanted:
        raise SegmentDamaged(shard.number, wanted, source.digest.hexdigest())


def _refuse(context: Context, job_id: str, drafted: Drafted) -> Answer:
    """The recipe and its sources do not fit together: that is the answer, and nothing is made."""
    document = {
        "schema": SCHEMA,
        "verdict": "refused",
        "artifact": None,
        "recipe": None,
        "unused_sources": {},
        "versions": versions(),
    }
    with context.database.read() as session:
        row = conversions.by_job(session, job_id)
    if row is None:
        raise RowMissing("conversion", job_id)
    _save_findings(context, row, drafted.findings.items)
    with context.database.write() as session:
        conversions.save(session, row.id, verdict="refused", document=document)
        jobs.finish(session, job_id, "failed")
    return ENDED


def _save(context: Context, row: rows.Conversion, conversion: Conversion, last: int) -> None:
    artifact_id = _publish(context, row, conversion) if conversion.written else None
    for start in range(0, len(conversion.objects), _ROWS):
        part = replace(conversion, objects=conversion.objects[start : start + _ROWS], findings=())
        made = [
            rows.ConversionObject(
                conversion_id=row.id, project_id=row.project_id, ordinal=ordinal, document=document
            )
            for ordinal, document in enumerate(part.as_json()["objects"], start)
        ]
        with context.database.write() as session:
            conversions.save_objects(session, row.id, made)
    _save_findings(context, row, conversion.findings)
    document = replace(conversion, objects=(), findings=()).as_json()
    del document["objects"], document["findings"]
    with context.database.write() as session:
        conversions.save(
            session, row.id, verdict=document["verdict"], document=document, artifact_id=artifact_id
        )
        jobs.finish_shard(session, row.job_id, last, "[]")
        state = "passed" if conversion.written else "failed"
        jobs.finish(session, row.job_id, state, artifact_id=artifact_id)


def _publish(context: Context, row: rows.Conversion, conversion: Conversion) -> str:
    """The artifact's rows; its bytes are in the store already. The same content made before is the same artifact."""
    files = conversion.files
    artifact = rows.Artifact(
        id=new_id(),
        project_id=row.project_id,
        digest=conversion.digest,
        kind="ninfer",
        entry=files[0].name,
        bytes=sum(file.bytes for file in files),
        origin="converted",
        listing=PENDING,
        created_at=now(),
    )
    parts = [rows.ArtifactFile(name=file.name, sha256=file.sha256, bytes=file.bytes) for file in files]
    with context.database.write() as session:
        for file in files:
            content.add_blob(session, row.project_id, file.sha256, file.bytes)
        artifact_id = content.add_artifact(session, artifact, parts)[0].id
    ensure_listed(context.store, artifact_id)
    return artifact_id


def _save_findings(context: Context, row: rows.Conversion, findings: Sequence[Finding]) -> None:
    notes = [
        rows.ConversionFinding(
            conversion_id=row.id,
            project_id=row.project_id,
            seq=number,
            code=item.code,
            severity=item.severity,
            check=item.check,
            object=item.object,
            document=finding_json(item),
        )
        for number, item in enumerate(findings, 1)
    ]
    for start in range(0, len(notes), _ROWS):
        with context.database.write() as session:
            conversions.save_findings(session, row.id, notes[start : start + _ROWS])
