"""The provenance record of a conversion: made of what was planned, read and written, and kept as content."""

from ninfer_core.convert import Conversion
from ninfer_core.identity import DIGEST_PREFIX, FileDigest
from ninfer_core.provenance import Circumstances, Claim, Read, canonical, provenance_record
from ninfer_core.recipes import Plan
from service import circumstances
from service.records import content
from service.records import models as rows
from service.records.types import now
from worker.context import Context
from worker.errors import RowMissing
from worker.sources import StoredFile


def circumstances_of(context: Context, row: rows.Conversion, plan: Plan) -> Circumstances:
    """How and on what this conversion runs, up to this moment."""
    job = context.job(row.job_id)
    seconds = (now() - (job.started_at or row.created_at)).total_seconds()
    command = circumstances.command(plan, row.output)
    return Circumstances(command, circumstances.environment(), circumstances.host_class(), max(0.0, seconds))


def keep_record(
    context: Context, row: rows.Conversion, conversion: Conversion, plan: Plan, how: Circumstances
) -> str:
    """The digest of the record, which the store and the project hold then. Raises: QuotaExceeded, CannotWrite, Cancelled, Draining."""
    record = provenance_record(plan, conversion, _read(plan), how, _claims(context, row))
    with context.store.blobs.writer() as writer:
        writer.write(canonical(record))
        context.prepare(row.project_id, writer.sha256, writer.bytes)
        sha256, size = writer.commit()
    context.write(row.job_id, context.hold, row.project_id, sha256, size)
    return DIGEST_PREFIX + sha256


def _read(plan: Plan) -> Read:
    sources = {
        role: [
            FileDigest(file.name, file.size, file.sha256)
            for file in opened.values()
            if isinstance(file, StoredFile)
        ]
        for role, opened in plan.read.items()
    }
    inputs = {
        name: FileDigest(file.name, file.size, file.sha256)
        for name, file in plan.inputs.items()
        if isinstance(file, StoredFile)
    }
    return Read(sources, inputs)


def _claims(context: Context, row: rows.Conversion) -> dict[str, Claim]:
    found = {}
    with context.database.read() as session:
        for role, id_ in row.checkpoints.items():
            stored = content.checkpoint(session, row.project_id, id_)
            if stored is None:
                raise RowMissing("checkpoint", id_)
            found[role] = Claim(stored.repository, stored.revision, stored.license)
    return found
