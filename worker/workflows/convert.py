"""A conversion: planned and cut into shards, each of which writes a segment; one step composes the artifact of them."""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from itertools import count
from typing import Any

from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session

from ninfer_core.containers.output import Output
from ninfer_core.convert import Conversion, Draft, refused_json
from ninfer_core.findings import Finding
from ninfer_core.recipes import Plan
from ninfer_core.verify.outcomes import Outcome
from ninfer_core.verify.report import finding_json
from service.queue import CONVERT_SHARD
from service.records import content, conversions, identities, jobs, provenance
from service.records import models as rows
from service.records.models import PENDING
from service.records.rows import batches
from service.records.types import new_id, now
from worker import facts
from worker.context import DONE, Answer, Context, Steps
from worker.errors import RowMissing
from worker.preparing import Drafted
from worker.produced import Told, merged
from worker.recording import circumstances_of, keep_record
from worker.watch import Cancelled
from worker.workflows import segments, shards
from worker.workflows.listing import list_if_possible


def convert(context: Context, steps: Steps, job_id: str, epoch: int = 0) -> None:
    """The job."""
    context = context.at(epoch)
    shards.follow(context, steps, job_id, CONVERT_SHARD, plan=_plan, last=("compose", _compose))
    _clear(context, job_id)


def convert_shard(context: Context, steps: Steps, job_id: str, number: int, epoch: int = 0) -> None:
    """One shard of it."""
    context = context.at(epoch)

    def work(job: rows.Job, first: int, stop: int) -> tuple[list[Outcome], dict[str, Any] | None]:
        with context.drafted(job) as drafted:
            _draft(context, job_id, drafted)
            return segments.write(context, job_id, drafted.tasks[first:stop])

    answer = steps.step(
        "run", lambda: context.answering(job_id, lambda: shards.run(context, job_id, number, work))
    )
    if answer["ended"]:
        _clear(context, job_id)  # the job may have cleared it before this shard made it anew


def _clear(context: Context, job_id: str) -> None:
    """Remove what the job left on its way, once it is over: in another epoch it may go on elsewhere."""
    with suppress(SQLAlchemyError):  # else tidying does it, some minutes later
        with context.database.read() as session:
            job = jobs.get(session, job_id)
        if job is None or job.state not in jobs.OPEN:
            context.store.blobs.clear_work(job_id)


def _plan(context: Context, job_id: str) -> Answer:
    job = context.job(job_id)
    if job.objects is not None:
        return DONE  # planned before
    with context.ticket(job_id), context.drafted(job) as drafted:
        draft = _draft(context, job_id, drafted)
        objects = draft.totals.objects
        composing = 2 * draft.blueprint.bytes  # hashed by object and by file
        parts = shards.cut(job, drafted.tasks, context.settings.shard_bytes, objects, composing)
        return shards.save_plan(context, job_id, objects, parts, drafted.plan)


def _draft(context: Context, job_id: str, drafted: Drafted) -> Draft:
    """What is to be written. Raises: Cancelled without a draft, once the job is refused: it has ended with that."""
    if drafted.draft is None:
        _refuse(context, job_id, drafted)
        raise Cancelled
    return drafted.draft


def _compose(context: Context, job_id: str) -> Answer:
    with context.database.read() as session:
        row = conversions.by_job(session, job_id)
        planned = jobs.shards(session, job_id)
    if row is None:
        raise RowMissing("conversion", job_id)
    folder = context.store.blobs.work(job_id)
    last = planned[-1].number
    with context.ticket(job_id, last) as ticket, context.drafted(context.job(job_id)) as drafted:
        draft = _draft(context, job_id, drafted)
        drafted.counting.ticket = ticket
        with Output(draft.blueprint, folder / row.output["name"]) as output:
            for shard in planned:
                if shard.first < shard.stop:
                    segments.put_in(context, shard, output, ticket)
            found = drafted.sources.compared(shards.outcomes(context, planned))
            conversion = draft.compose(shards.encoded(found), output)
            ticket.check()
            if conversion.written:
                whole = sum(digest.bytes for digest in conversion.files)
                for file, digest in zip(output.files, conversion.files, strict=True):
                    context.prepare(row.project_id, digest.sha256, digest.bytes, whole=whole)
                    context.store.blobs.adopt(file, digest.sha256)
        _save(context, row, conversion, draft.plan, last, merged(shard.produced for shard in planned))
    return DONE


def _refuse(context: Context, job_id: str, drafted: Drafted) -> None:
    """The recipe and its sources do not fit together: that is the answer, and nothing is made."""
    document = refused_json(())
    del document["objects"], document["findings"]  # these are rows
    with context.database.read() as session:
        row = conversions.by_job(session, job_id)
    if row is None:
        raise RowMissing("conversion", job_id)
    _save_findings(context, row, drafted.findings.items)

    def conclude(session: Session) -> None:
        conversions.save(session, row.id, verdict="refused", document=document)
        jobs.finish(session, job_id, "failed")

    context.write(job_id, conclude)


def _save(
    context: Context, row: rows.Conversion, conversion: Conversion, plan: Plan, last: int, produced: Told
) -> None:
    """Store what was made and end the job with it. Raises: Cancelled, as soon as the job is over."""
    artifact = _publish(context, row, conversion) if conversion.written else None
    how = circumstances_of(context, row, plan)
    record = None
    if artifact is not None:
        record = keep_record(context, row, conversion, plan, how)
        _identify(context, row, conversion, artifact)
    context.write_rows(
        row.job_id,
        _objects(row, conversion),
        lambda session, made: conversions.save_objects(session, row.id, made),
    )
    _save_findings(context, row, conversion.findings)
    document = replace(conversion, objects=(), findings=()).as_json()
    del document["objects"], document["findings"]

    def conclude(session: Session) -> None:
        artifact_id = None if artifact is None else artifact.id
        conversions.save(
            session,
            row.id,
            verdict=document["verdict"],
            document=document,
            artifact_id=artifact_id,
            target_digest=None if plan.target is None else plan.target.digest,
            command=how.command,
            environment=how.environment,
            host=how.host,
            record=record,
            produced=produced,
        )
        if artifact is not None:
            done = facts.converted(session, row.project_id, plan, row.checkpoints)
            provenance.save(session, artifact, "converted", row.id, done)
        jobs.finish_shard(session, row.job_id, last, "[]")
        state = "passed" if conversion.written else "failed"
        jobs.finish(session, row.job_id, state, artifact_id=artifact_id)

    context.write(row.job_id, conclude)


def _objects(row: rows.Conversion, conversion: Conversion) -> Iterator[rows.ConversionObject]:
    """How each object was made; the documents of some at a time are in memory."""
    ordinals = count()
    for batch in batches(conversion.objects):
        for document in replace(conversion, objects=tuple(batch), findings=()).as_json()["objects"]:
            yield rows.ConversionObject(
                conversion_id=row.id, project_id=row.project_id, ordinal=next(ordinals), document=document
            )


def _identify(
    context: Context, row: rows.Conversion, conversion: Conversion, artifact: rows.Artifact
) -> None:
    """Note what its objects are; they were digested out of the very bytes that were stored."""
    found = ((place, item.identity) for place, item in enumerate(conversion.objects))
    known = ((place, identity) for place, identity in found if identity is not None)
    for batch in batches(known):
        context.write(row.job_id, identities.save, artifact, batch)


def _publish(context: Context, row: rows.Conversion, conversion: Conversion) -> rows.Artifact:
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

    def publish(session: Session) -> rows.Artifact:
        for file in files:
            context.hold(session, row.project_id, file.sha256, file.bytes)
        return content.add_artifact(session, artifact, parts)[0]

    stored = context.write(row.job_id, publish)
    list_if_possible(context.store, stored.id)
    return stored


def _save_findings(context: Context, row: rows.Conversion, findings: Iterable[Finding]) -> None:
    notes = (
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
    )
    context.write_rows(
        row.job_id, notes, lambda session, batch: conversions.save_findings(session, row.id, batch)
    )
