"""How much of the queue each worker takes: as much as it has places for, whatever the others have."""

import time
from pathlib import Path

import pytest
from sqlalchemy import text

from service.queue import shard_id
from service.records import jobs
from tests.worker.material import Material
from tests.worker.rig import Rig, Worker, rig, until

SMALL, LARGE = 1, 5
SHARD_BYTES = 200_000


def claimed(made: Rig, job_id: str) -> dict[int, list[str]]:
    """Shards that each worker has begun, by the number of its process."""
    return {row.pid: sorted(set(made.queue.begun(row.executor_id)) - {job_id}) for row in made.beats()}


@pytest.mark.parametrize("order", [(SMALL, LARGE), (LARGE, SMALL)], ids=["large last", "small last"])
def test_workers_of_different_size_take_what_they_have_places_for(
    postgresql_url: str, tmp_path: Path, material: Material, order: tuple[int, int]
) -> None:
    """On PostgreSQL, where a table can be kept shut without the rest: nothing is finished while we count.

    Each has a shard for every thread and one more, but the small one when its only thread is at one that could not be parted.
    """
    with rig(tmp_path / "data", postgresql_url, shard_bytes=SHARD_BYTES) as made:
        workers: dict[int, Worker] = {}
        for threads in order:
            workers[threads] = made.start(NINFER_GATE_THREADS=str(threads))
            until("it is ready", lambda: "worker.ready" in workers[threads].text())  # noqa: B023
        artifact = made.push(material.artifact)
        job_id = made.verify(artifact.digest)
        until("it is planned", lambda: made.row(job_id).objects is not None, pause=0.01)
        with made.parts.database.write() as session:
            # The server ends a transaction that is idle for 15 seconds, and on a busy machine the workers take longer.
            session.execute(text("SET LOCAL idle_in_transaction_session_timeout = 0"))
            session.execute(text("LOCK TABLE shards IN SHARE MODE"))
            shards = jobs.shards(session, job_id)
            long = {shard_id(job_id, shard.number) for shard in shards if shard.bytes > SHARD_BYTES}
            assert 0 < len(long) < LARGE

            def full() -> bool:
                taken = claimed(made, job_id)
                few = taken[workers[SMALL].pid]
                return len(taken[workers[LARGE].pid]) == LARGE + 1 and (
                    len(few) == SMALL + 1 or (len(few) == SMALL and set(few) <= long)
                )

            until("all places are taken", full)
            before = claimed(made, job_id)
            for _ in range(5):
                time.sleep(0.2)
                assert full()
                assert all(set(taken) >= set(before[pid]) for pid, taken in claimed(made, job_id).items())
        assert made.finished(job_id).state == "passed"
