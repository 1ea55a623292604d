"""The client side of the durable engine: work is put in line here by name, whoever runs it.

With `worker.runtime` the only module that knows which engine it is. A workflow's id is ours: what `job_workflow_id`, `shard_id`
and, for reading an artifact's directory, `listing_id` say; putting an id in line twice does nothing.
"""

import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from dbos import DBOS, DBOSClient, DBOSPortableJSONSerializer, EnqueueOptions
from sqlalchemy import Engine, event

from service.lanes import BULK, HIGHEST_PRIORITY, INTERACTIVE

APPLICATION: Final = "ninfer-gate"
# Never changed lightly: the engine hands work only to workers of the version that it was put in line with.
APPLICATION_VERSION: Final = "1"

QUEUE_JOBS: Final = "jobs"
QUEUE_SHARDS: Final = "shards"
QUEUE_LISTINGS: Final = "listings"
QUEUE_TRANSFERS: Final = "transfers"  # what moves whole files: nothing else waits for a place behind it

VERIFY: Final = "verify"
CONVERT: Final = "convert"
COMPARE: Final = "compare"
SELFCHECK: Final = "selfcheck"
SCHEME: Final = "scheme"
IMPORT: Final = "import"
LIST_OBJECTS: Final = "list_objects"
VERIFY_SHARD: Final = "verify_shard"
CONVERT_SHARD: Final = "convert_shard"
COMPARE_SHARD: Final = "compare_shard"
QUEUES: Final = {
    VERIFY: QUEUE_JOBS,
    CONVERT: QUEUE_JOBS,
    COMPARE: QUEUE_JOBS,
    SELFCHECK: QUEUE_JOBS,
    SCHEME: QUEUE_JOBS,
    IMPORT: QUEUE_TRANSFERS,
    LIST_OBJECTS: QUEUE_LISTINGS,
    # Not the queue of their parents: these wait for them, and would hold every place.
    VERIFY_SHARD: QUEUE_SHARDS,
    CONVERT_SHARD: QUEUE_SHARDS,
    COMPARE_SHARD: QUEUE_SHARDS,
}
# Each has a second one for bulk work; the engine's own order inside a queue is by priority, then age.
_IN_LANES: Final = frozenset((QUEUE_JOBS, QUEUE_SHARDS))
_BULK_SUFFIX: Final = "_bulk"

# What the engine says of a workflow; any other word means that it will go on.
SUCCESS: Final = "SUCCESS"
GAVE_UP: Final = "MAX_RECOVERY_ATTEMPTS_EXCEEDED"
ENDED: Final = frozenset((SUCCESS, GAVE_UP, "ERROR", "CANCELLED"))
_PENDING: Final = "PENDING"
_BATCH: Final = 500
_AFTER_ALL: Final = HIGHEST_PRIORITY + 1  # the engine's own priorities begin with 1, which goes first
_SHARD: Final = re.compile(r"(?P<job>[0-9a-z]{1,32})(\.(?P<epoch>[0-9]{1,9}))?-(?P<number>[0-9]{1,9})")


def queue_of(workflow: str, lane: str = INTERACTIVE) -> str:
    """The queue that a workflow goes into."""
    queue = QUEUES[workflow]
    return queue + _BULK_SUFFIX if lane == BULK and queue in _IN_LANES else queue


def lane_queues(queue: str) -> tuple[str, str]:
    """The queues of both lanes."""
    return queue, queue + _BULK_SUFFIX


def listing_id(artifact_id: str, attempt: int = 0) -> str:
    """Id of the workflow that lists an artifact's objects; attempts after the first have ids of their own."""
    return f"list-{artifact_id}-{attempt}" if attempt else f"list-{artifact_id}"


def job_workflow_id(job_id: str, epoch: int = 0) -> str:
    """Id of a job's workflow; each epoch after the first has one of its own, since an ended workflow stays ended."""
    return f"{job_id}.{epoch}" if epoch else job_id


def shard_id(job_id: str, number: int, epoch: int = 0) -> str:
    """Id of the workflow of one shard of a job."""
    return f"{job_workflow_id(job_id, epoch)}-{number}"


def shard_of(workflow_id: str) -> tuple[str, int, int] | None:
    """(job, number, epoch) of a shard's workflow; None for what is no shard."""
    found = _SHARD.fullmatch(workflow_id)
    return None if found is None else (found["job"], int(found["number"]), int(found["epoch"] or 0))


def prepare(engine_url: str) -> None:
    """Make or update the engine's own tables; safe when several processes do it at once."""
    DBOS.migrate(engine_url)


def keep_journal(engine: Engine) -> None:
    """On SQLite, write over the journal of the transaction before instead of removing it: as safe, and the disk has less to do.

    Measured: 1.1 ms for a commit instead of 1.7, and on a busy disk 4 instead of 16 for the slowest tenth.
    """
    if engine.dialect.name != "sqlite":
        return

    def persist(connection: Any, _record: Any) -> None:
        connection.execute("PRAGMA journal_mode = PERSIST")

    event.listen(engine, "connect", persist)
    engine.dispose()  # what is open already


class Queue:
    """A connection to the engine's database; nothing is run here. Any thread may use it."""

    def __init__(self, engine_url: str) -> None:
        """Raises: whatever the database's driver does when it cannot be reached."""
        self._client = DBOSClient(
            system_database_url=engine_url,
            serializer=DBOSPortableJSONSerializer(),
            application_name=APPLICATION,
            retry_connection_errors=False,  # a request says at once that it could not; the sweep makes up for it
        )
        keep_journal(self._client._sys_db.engine)

    def enqueue(
        self,
        workflow: str,
        id: str,  # noqa: A002  the engine's own word
        *args: str | int,
        lane: str = INTERACTIVE,
        priority: int = 0,
        delay_seconds: float | None = None,
    ) -> None:
        """Put `workflow` in line under `id`, at once or later; an id that the engine knows is left as it is."""
        options = EnqueueOptions(
            workflow_name=workflow,
            queue_name=queue_of(workflow, lane),
            workflow_id=id,
            app_version=APPLICATION_VERSION,
            priority=_AFTER_ALL - priority,
        )
        if delay_seconds is not None:
            options["delay_seconds"] = delay_seconds
        self._client.enqueue(options, *args)

    def status(self, ids: Sequence[str]) -> dict[str, str | None]:
        """What the engine says of each id; None of one that it does not know."""
        found: dict[str, str | None] = dict.fromkeys(ids)
        for batch in _batches(ids):
            for item in self._client.list_workflows(workflow_ids=batch, load_input=False, load_output=False):
                found[item.workflow_id] = item.status
        return found

    def executors(self) -> frozenset[str]:
        """Ids of the workers that have begun something and not ended it, alive or not."""
        pending = self._client.list_workflows(status=_PENDING, load_input=False, load_output=False)
        return frozenset(item.executor_id for item in pending if item.executor_id is not None)

    def begun(self, executor_id: str) -> frozenset[str]:
        """Ids of the workflows that this worker has begun and not ended."""
        pending = self._client.list_workflows(
            status=_PENDING, executor_id=executor_id, load_input=False, load_output=False
        )
        return frozenset(item.workflow_id for item in pending)

    def again(self, id: str) -> None:  # noqa: A002  the engine's own word
        """Put a workflow that nobody runs any more back in line; an ended one stays ended."""
        workflow = self._client.retrieve_workflow(id).get_status()
        if workflow.status == _PENDING:
            self._client.resume_workflow(id, queue_name=workflow.queue_name or QUEUES.get(workflow.name))

    def forget(self, older_than_seconds: float) -> int:
        """Delete what ended that long ago, at most some hundreds; what came of it is in our own tables."""
        before = datetime.now(UTC) - timedelta(seconds=older_than_seconds)
        ended = self._client.list_workflows(
            status=sorted(ENDED),
            completed_before=before.isoformat(),
            limit=_BATCH,
            load_input=False,
            load_output=False,
        )
        if ended:
            self._client.delete_workflows([item.workflow_id for item in ended])
        return len(ended)

    def require_ready(self) -> None:
        """Ask for anything at all. Raises: whatever the database's driver does when it cannot be reached or has no tables."""
        self.knows_anything()

    def knows_anything(self) -> bool:
        """Whether any workflow is remembered, ended or not."""
        return bool(self._client.list_workflows(limit=1, load_input=False, load_output=False))

    def close(self) -> None:
        """Close the connections."""
        self._client.destroy()


def _batches(ids: Sequence[str]) -> Iterable[list[str]]:
    for start in range(0, len(ids), _BATCH):
        yield list(ids[start : start + _BATCH])
