"""Ends in order: cancelling, draining, and the sweep that finds what fell between two chairs."""

import os
import signal
import time

from sqlalchemy import delete

from service.artifacts import listing_id
from service.queue import CONVERT_SHARD, job_workflow_id, shard_id
from service.records import content, jobs, models
from tests.worker.inside import inside
from tests.worker.material import Material
from tests.worker.rig import PROJECT, Rig, new_id, until
from worker.tidy import tidy


def long_job(rig: Rig, material: Material) -> str:
    """A conversion that takes seconds."""
    return rig.convert(rig.checkpoint(material.folder), material.document)


def test_a_running_job_is_cancelled_within_two_seconds(alone: Rig, material: Material) -> None:
    alone.started()
    job_id = long_job(alone, material)
    until("it has begun", lambda: alone.shards_done(job_id) >= 1)
    begin = time.monotonic()
    with alone.parts.database.write() as session:
        jobs.request_cancel(session, PROJECT, job_id)
    job = alone.finished(job_id)
    assert job.state == "cancelled"
    assert time.monotonic() - begin < 2.5
    until("its folder is gone", lambda: not (alone.settings.data / "work" / job_id).exists())
    rows = alone.rows(job_id)
    assert rows["conversions"][0]["verdict"] is None
    assert rows["artifacts"] == []
    # The worker is none the worse for it.
    assert alone.finished(long_job(alone, material)).state == "passed"


def test_a_queued_job_is_cancelled_at_once(alone: Rig, material: Material) -> None:
    job_id = long_job(alone, material)
    with alone.parts.database.write() as session:
        jobs.request_cancel(session, PROJECT, job_id)
    assert alone.row(job_id).state == "cancelled"
    alone.started()
    until("the engine has heard of it", lambda: status(alone, job_id) == "SUCCESS")
    assert alone.row(job_id).state == "cancelled"


def test_a_signal_drains(alone: Rig, material: Material) -> None:
    worker = alone.started()
    job_id = long_job(alone, material)
    until("it has begun", lambda: alone.shards_done(job_id) >= 2)
    begin = time.monotonic()
    worker.send(signal.SIGTERM)
    assert worker.wait() == 0, worker.text()
    assert time.monotonic() - begin < 11
    assert alone.beats() == []
    assert alone.queue.executors() == frozenset()  # all is back in line
    assert alone.row(job_id).state == "running"
    again = alone.started()
    assert alone.finished(job_id).state == "passed"
    again.send(signal.SIGINT)
    assert again.wait() == 0


def test_a_worker_ends_when_nobody_listens_to_its_beats_any_more(alone: Rig) -> None:
    import subprocess
    import sys

    reader, writer = os.pipe()
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", "worker", "--beat-fd", str(writer)],
        env={**os.environ, **alone.settings.environment()},
        pass_fds=(writer,),
        stderr=subprocess.DEVNULL,
    )
    os.close(writer)
    try:
        assert os.read(reader, 1) == b"."
        os.close(reader)
        assert process.wait(20) == 0
    finally:
        process.kill()
        process.wait()


def test_a_worker_without_tables_says_what_to_do(alone: Rig) -> None:
    worker = alone.start(NINFER_GATE_DATABASE_URL=f"sqlite:///{alone.settings.data / 'empty.sqlite'}")
    assert worker.wait() == 2
    assert "ninfer-gate migrate" in worker.text()


def status(rig: Rig, id_: str) -> str | None:
    """What the engine says."""
    return rig.queue.status([id_])[id_]


class Silent:
    """A queue that takes everything and does nothing: the crash between the commit and the enqueue."""

    def enqueue(self, workflow: str, id: str, *args: str | int, **line: object) -> None:  # noqa: A002  as the port
        """See `service.parts.Enqueues`."""


def test_the_sweep_puts_in_line_what_the_engine_never_heard_of(alone: Rig, material: Material) -> None:
    from dataclasses import replace

    whole = alone.parts
    alone.parts = replace(whole, queue=Silent())
    job_id = long_job(alone, material)
    artifact = alone.push(material.artifact)
    alone.parts = whole
    assert status(alone, job_id) is None
    assert status(alone, listing_id(artifact.id)) is None
    alone.started()
    assert alone.finished(job_id).state == "passed"

    def listed() -> bool:
        with alone.parts.database.read() as session:
            found = content.artifact(session, artifact.id)
            return found is not None and found.listing == "listed"

    until("it is listed", listed)


def test_what_the_engine_ended_without_a_result_is_begun_anew(alone: Rig, material: Material) -> None:
    said = ("MAX_RECOVERY_ATTEMPTS_EXCEEDED", "ERROR", "CANCELLED", "SUCCESS")
    ids = {word: long_job(alone, material) for word in said}
    for word, job_id in ids.items():
        tell_engine(alone, job_id, word)
    alone.started()
    for word, job_id in ids.items():
        job = alone.finished(job_id)
        assert (job.state, job.epoch) == ("passed", 1)
        [reason] = [data["reason"] for type_, data in alone.said(job_id) if type_ == "restarted"]
        assert word in reason


def test_a_shard_that_the_engine_ended_without_a_result_begins_its_job_anew(
    alone: Rig, material: Material
) -> None:
    job_id = long_job(alone, material)
    alone.queue.enqueue(CONVERT_SHARD, shard_id(job_id, 3), job_id, 3)
    tell_engine(alone, shard_id(job_id, 3), "ERROR")
    alone.started()
    job = alone.finished(job_id)
    assert (job.state, job.epoch) == ("passed", 1)


def test_a_job_whose_engine_ends_it_again_and_again_is_given_up(alone: Rig, material: Material) -> None:
    from worker.sweep import Sweep

    job_id = long_job(alone, material)
    with inside(alone) as context:
        sweep = Sweep(context, Nothing())
        for epoch in range(alone.settings.max_attempts):
            assert (alone.row(job_id).state, alone.row(job_id).epoch) == ("queued", epoch)
            sweep()  # puts it in line, where it is not yet
            tell_engine(alone, job_workflow_id(job_id, epoch), "ERROR")
            sweep()
    job = alone.row(job_id)
    assert job.state == "error"
    assert job.error is not None
    assert (job.error["code"], "ERROR" in job.error["detail"]) == ("internal", True)


class Nothing:
    """An engine that runs nothing."""

    executor_id = "nobody"

    def __init__(self) -> None:
        self.left: set[str] = set()

    def runs(self, id: str) -> bool:  # noqa: A002  as the port
        """Never."""
        return False

    def hand_back(self, executor_id: str) -> None:
        """Nothing is there."""


def test_what_nobody_will_ask_for_again_is_tidied_away(alone: Rig) -> None:
    from tests.worker.test_parts import a_job

    work, incoming = alone.settings.data / "work", alone.settings.data / "incoming"
    open_, over = a_job(alone).id, a_job(alone, "cancelled").id
    names = [open_, over, new_id(), "somebody's"]
    for name in names:
        (work / name).mkdir()
        (work / name / "segment").write_bytes(b"1")
    yesterday = time.time() - 25 * 3600
    for name in ("old.partial", "new.partial", "old"):
        (incoming / name).write_bytes(b"1")
        if name.startswith("old"):
            os.utime(incoming / name, (yesterday, yesterday))
    with inside(alone) as context:
        tidy(context)
    assert sorted(path.name for path in work.iterdir()) == sorted((open_, "somebody's"))
    assert sorted(path.name for path in incoming.iterdir()) == ["new.partial", "old"]


def tell_engine(rig: Rig, id_: str, said: str, executor_id: str | None = None) -> None:
    """Change what the engine says of a workflow, and of who has begun it."""
    import sqlite3

    engine = sqlite3.connect(rig.settings.data / "engine.sqlite", timeout=30)
    with engine:
        change = "UPDATE workflow_status SET status = ?, executor_id = ? WHERE workflow_uuid = ?"
        engine.execute(change, (said, executor_id, id_))
    engine.close()


def test_work_of_a_worker_that_nobody_remembers_is_handed_on(alone: Rig, material: Material) -> None:
    worker = alone.started()
    job_id = long_job(alone, material)
    until("it has begun", lambda: alone.shards_done(job_id) >= 1)
    worker.kill()
    with alone.parts.database.write() as session:
        session.execute(delete(models.Worker))
    alone.started()
    assert alone.finished(job_id).state == "passed"


def test_work_that_a_worker_claimed_and_never_began_is_begun_after_all(
    alone: Rig, material: Material
) -> None:
    job_id = long_job(alone, material)
    tell_engine(alone, job_id, "PENDING")
    worker = alone.started()
    [row] = alone.beats()
    tell_engine(alone, job_id, "PENDING", executor_id=row.executor_id)
    assert alone.finished(job_id).state == "passed"
    assert "workflow.stray" in worker.text()
