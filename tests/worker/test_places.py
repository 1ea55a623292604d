"""How much of the queue each worker takes: as much as it has places for, whatever the others have."""

import time
from pathlib import Path

import pytest
from sqlalchemy import text

from tests.worker.material import Material
from tests.worker.rig import Rig, Worker, rig, until

SMALL, LARGE = 1, 5


def claimed(made: Rig, job_id: str) -> dict[int, int]:
    """Shards that each worker has begun, by the number of its process."""
    return {row.pid: sum(id_ != job_id for id_ in made.queue.begun(row.executor_id)) for row in made.beats()}


@pytest.mark.parametrize("order", [(SMALL, LARGE), (LARGE, SMALL)], ids=["large last", "small last"])
def test_workers_of_different_size_take_what_they_have_places_for(
    postgresql_url: str, tmp_path: Path, material: Material, order: tuple[int, int]
) -> None:
    """On PostgreSQL, where a table can be kept shut without the rest: nothing is finished while we count."""
    with rig(tmp_path / "data", postgresql_url, shard_bytes=200_000) as made:
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
            expected = {workers[threads].pid: threads + 1 for threads in order}
            until("all places are taken", lambda: claimed(made, job_id) == expected)
            for _ in range(5):
                time.sleep(0.2)
                assert claimed(made, job_id) == expected
        assert made.finished(job_id).state == "passed"
