"""Segments: what the shards of a conversion write, each a file named by its content, until the artifact is composed."""

import hashlib
import secrets
from collections.abc import Sequence
from typing import Any

from ninfer_core.containers.output import Output, Sink
from ninfer_core.containers.segment import SegmentWriter, replay
from ninfer_core.errors import CannotWrite
from ninfer_core.io import Buffer
from ninfer_core.verify.outcomes import Outcome
from ninfer_core.verify.task import Task
from service.blobs import OpenBlob
from service.records import jobs
from service.records.models import Shard
from worker.context import Context
from worker.errors import SegmentDamaged, SegmentMissing
from worker.watch import Ticket


def write(
    context: Context, job_id: str, tasks: Sequence[Task[[Sink], Outcome]]
) -> tuple[list[Outcome], dict[str, Any]]:
    """Run tasks into a new segment, which is then named by its content: two who do it at once make the same file.

    Their outcomes, and `Shard.segment`. Raises: CannotWrite.
    """
    folder = context.store.blobs.work(job_id)
    path = folder / f"{secrets.token_hex(16)}.partial"
    try:
        with SegmentWriter(path) as writer:
            found = [task.run(writer) for task in tasks]
        context.store.blobs.keep_segment(job_id, path, writer.sha256)
    except OSError as error:
        raise CannotWrite(f"cannot write in {folder}: {error.strerror}") from error
    finally:
        path.unlink(missing_ok=True)
    return found, {"sha256": writer.sha256, "bytes": writer.bytes, "records": writer.records}


def put_in(context: Context, shard: Shard, output: Output, ticket: Ticket) -> None:
    """Copy what a shard wrote to its places in the artifact. Raises: SegmentMissing, SegmentDamaged, CannotRead."""
    with context.database.read() as session:
        segment = jobs.segment(session, shard.job_id, shard.number)
    if segment is None:
        raise SegmentMissing(shard.number)  # without its bytes the artifact would have a hole
    wanted = segment["sha256"]
    file = context.store.blobs.segment(shard.job_id, wanted)
    try:
        source = _Hashed(file)
        records = [(offset, length) for offset, length in segment["records"]]
        replay(source, records, output, lambda _: ticket.check())
    finally:
        file.close()
    if source.digest.hexdigest() != wanted:
        raise SegmentDamaged(shard.number, wanted, source.digest.hexdigest())


class _Hashed:
    """A file that is read once from its beginning to its end, and digested on the way (a `ByteSource`)."""

    def __init__(self, file: OpenBlob) -> None:
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
