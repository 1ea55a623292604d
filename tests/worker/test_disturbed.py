"""Workers that are killed and stopped: the job ends with the rows and bytes of one that nobody disturbed."""

import json
import random
import signal
import time
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text, update

from service.comparisons import Compare
from service.queue import prepare
from service.records.jobs import OPEN
from service.records.models import Worker as Row
from tests.worker.material import Material
from tests.worker.nursery import VERSION
from tests.worker.rig import Rig, Worker, rig, until
from worker.heartbeat import EXIT_LOST

WORK = ("verify", "convert", "compare")
OLDER, NEWER = "0.0.9", "0.0.10"  # which are no neighbours as text


def ask(rig: Rig, material: Material, what: str) -> str:
    """A new job; its id."""
    if what == "compare":
        return rig.job(Compare(rig.push(material.artifact).digest, rig.push(material.damaged).digest))
    checkpoint = rig.checkpoint(material.folder)
    if what == "convert":
        return rig.convert(checkpoint, material.document)
    return rig.verify(rig.push(material.artifact).digest, checkpoint, material.document)


def rows(rig: Rig, job_id: str) -> dict[str, Any]:
    """What a job leaves behind, without what is drawn by chance or by the clock."""
    found = rig.rows(job_id)
    for row in found["artifacts"]:
        del row["origin"]  # one may be pushed before it is made
    whole = json.dumps(found)
    names = {row["id"]: "<artifact>" for row in found["artifacts"]}
    names |= {row["a_artifact_id"]: "<a>" for row in found["comparisons"]}
    names |= {row["b_artifact_id"]: "<b>" for row in found["comparisons"]}
    for table in ("runs", "conversions"):
        names |= {one: "<checkpoint>" for row in found[table] for one in row["checkpoints"].values()}
    for name, stands_for in names.items():
        whole = whole.replace(name, stands_for)
    return json.loads(whole)  # type: ignore[no-any-return]


@pytest.fixture(scope="module")
def undisturbed(material: Material, tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """The rows of both jobs when one worker does them in peace."""
    with rig(tmp_path_factory.mktemp("peace") / "data", shard_bytes=400_000) as made:
        made.started()
        ids = {what: ask(made, material, what) for what in WORK}
        for job_id in ids.values():
            assert made.finished(job_id).state == "passed"
        return {what: rows(made, job_id) for what, job_id in ids.items()}


def held_to(rig: Rig, material: Material, what: str, job_id: str, expected: dict[str, Any]) -> None:
    """The job ended as it would have in peace."""
    job = rig.finished(job_id)
    assert (job.state, job.error) == ("passed", None)
    found = rows(rig, job_id)
    assert found.keys() == expected.keys()
    for table in expected:
        assert found[table] == expected[table], table
    events = rig.events(job_id)
    assert [number for number, _, _ in events] == list(range(1, len(events) + 1))
    if what == "convert":
        [file] = found["artifact_files"]
        assert rig.parts.blobs.path(file["sha256"]).read_bytes() == material.artifact.read_bytes()
        until("the work folder is gone", lambda: not (rig.settings.data / "work" / job_id).exists())
    elif what == "verify":
        assert rig.report(job_id)["verdict"] == "passed"
    else:
        assert found["comparisons"][0]["verdict"] == "different"


def midway(rig: Rig, job_id: str, done: int) -> None:
    """Wait until so many shards are done, and then a moment that nobody chose."""
    until(f"{done} shards are done", lambda: rig.shards_done(job_id) >= done)
    time.sleep(random.uniform(0, 0.15))


def never_before(worker: Worker, rig: Rig, job_id: str) -> None:
    """The disturbance came in the middle: else nothing was tested."""
    assert rig.row(job_id).state in OPEN, worker.text()


@pytest.mark.parametrize("what", WORK)
def test_killed_and_started_again(
    disturbed: Rig, material: Material, undisturbed: dict[str, dict[str, Any]], what: str
) -> None:
    worker = disturbed.started()
    job_id = ask(disturbed, material, what)
    # Once while it plans or hardly has begun, once in the middle.
    for done in (random.randint(0, 2), random.randint(6, 14)):
        midway(disturbed, job_id, done)
        worker.kill()
        never_before(worker, disturbed, job_id)
        worker = disturbed.started()
    held_to(disturbed, material, what, job_id, undisturbed[what])


def test_killed_while_it_composes(
    tmp_path: Path, material: Material, undisturbed: dict[str, dict[str, Any]]
) -> None:
    with rig(tmp_path / "data", shard_bytes=400_000) as made:
        job_id = ask(made, material, "convert")
        total = len(undisturbed["convert"]["shards"]) - 1  # the last stands for the composing
        worker = made.start_anew()
        until("every shard is done", lambda: made.shards_done(job_id) >= total)
        worker.kill()
        made.started()
        held_to(made, material, "convert", job_id, undisturbed["convert"])


# Every kind of work with every end and on every database, and every end on every database.
SECOND = [
    ("sqlite", "verify", signal.SIGKILL),
    ("postgresql", "verify", signal.SIGSTOP),
    ("postgresql", "convert", signal.SIGKILL),
    ("sqlite", "convert", signal.SIGSTOP),
    ("sqlite", "compare", signal.SIGKILL),
    ("postgresql", "compare", signal.SIGSTOP),
]


@pytest.mark.parametrize(
    ("disturbed", "what", "end"),
    SECOND,
    indirect=["disturbed"],
    ids=[f"{database}-{what}-{end.name}" for database, what, end in SECOND],
)
def test_with_a_second_worker_alive(
    disturbed: Rig,
    material: Material,
    undisturbed: dict[str, dict[str, Any]],
    what: str,
    end: signal.Signals,
) -> None:
    first, second = disturbed.start(), disturbed.start()
    until("both beat", lambda: len(disturbed.beats()) == 2)
    job_id = ask(disturbed, material, what)
    midway(disturbed, job_id, random.randint(3, 10))
    owner = _begun(disturbed, first, second)
    owner.send(end)
    never_before(owner, disturbed, job_id)
    held_to(disturbed, material, what, job_id, undisturbed[what])
    # A stopped process was killed, and nobody remembers it.
    assert owner.wait(10) == -signal.SIGKILL
    until("one is forgotten", lambda: len(disturbed.beats()) == 1)
    other = second if owner is first else first
    assert other.process.poll() is None, other.text()


def _begun(rig: Rig, *candidates: Worker) -> Worker:
    """The worker that has begun the job itself: it waits there for its shards."""
    pids = {row.executor_id: row.pid for row in rig.beats()}

    def busy() -> list[Worker]:
        owners = [executor for executor in pids if rig.queue.begun(executor)]
        return [worker for worker in candidates for owner in owners if pids[owner] == worker.pid]

    found: list[Worker] = until("a worker has begun something", busy)
    return found[0]


def test_a_late_waker_changes_nothing(
    postgresql_url: str,
    tmp_path: Path,
    material: Material,
    undisturbed: dict[str, dict[str, Any]],
) -> None:
    """A worker whose work was handed on while it slept, as if on another machine, wakes and finds itself gone.

    On PostgreSQL only: no other machine has a SQLite database in common with this one.
    """
    with rig(tmp_path / "data", postgresql_url, shard_bytes=400_000) as made:
        first = made.started()
        job_id = ask(made, material, "verify")
        midway(made, job_id, 4)
        while True:
            first.send(signal.SIGSTOP)
            if writing(made) == 0:
                break
            first.send(signal.SIGCONT)  # it would keep its locks until the server ends its sessions
            time.sleep(0.05)
        never_before(first, made, job_id)
        [row] = made.beats()
        pretend_elsewhere(made, row.executor_id)
        second = made.started()
        held_to(made, material, "verify", job_id, undisturbed["verify"])
        first.send(signal.SIGCONT)
        assert first.wait(15) == EXIT_LOST, first.text()
        held_to(made, material, "verify", job_id, undisturbed["verify"])
        assert second.process.poll() is None


def test_workers_of_two_versions_take_no_job_from_each_other_in_turns(
    tmp_path: Path, material: Material, undisturbed: dict[str, dict[str, Any]]
) -> None:
    """With both alive a job that the older one planned ends, and was begun anew once: by the newer one."""
    with rig(tmp_path / "data", shard_bytes=30_000) as made:
        made.start(**{VERSION: OLDER})
        until("it beats", lambda: len(made.beats()) == 1)
        job_id = ask(made, material, "convert")
        midway(made, job_id, 2)
        assert made.row(job_id).planned_by == OLDER
        made.start(**{VERSION: NEWER})
        job = made.finished(job_id)
        assert {row.version for row in made.beats()} == {OLDER, NEWER}
        assert (job.state, job.planned_by, job.epoch) == ("passed", NEWER, 1), job.error
        [file] = rows(made, job_id)["artifact_files"]
        assert file["sha256"] == undisturbed["convert"]["artifact_files"][0]["sha256"]
        numbers = [number for number, _, _ in made.events(job_id)]
        assert numbers == list(range(1, len(numbers) + 1))


def test_a_job_goes_on_though_the_engine_has_lost_everything(
    tmp_path: Path, material: Material, undisturbed: dict[str, dict[str, Any]]
) -> None:
    """As after a restore of the records alone: what is done stays done."""
    with rig(tmp_path / "data", shard_bytes=400_000) as made:
        worker = made.started()
        job_id = ask(made, material, "verify")
        midway(made, job_id, 5)
        worker.kill()
        never_before(worker, made, job_id)
        done = made.shards_done(job_id)
        for path in made.settings.data.glob("engine.sqlite*"):
            path.unlink()
        prepare(made.settings.engine_url)
        assert made.shards_done(job_id) == done
        made.started()
        held_to(made, material, "verify", job_id, undisturbed["verify"])


def writing(rig: Rig) -> int:
    """How many sessions hold what others may wait for."""
    query = """
        SELECT count(DISTINCT pid) FROM pg_locks
        WHERE database = (SELECT oid FROM pg_database WHERE datname = current_database())
        AND mode IN ('RowShareLock', 'RowExclusiveLock') AND pid <> pg_backend_pid()
    """
    with rig.parts.database.read() as session:
        return int(session.execute(text(query)).scalar_one())


def pretend_elsewhere(rig: Rig, executor_id: str) -> None:
    """Let a worker's row say that it runs on another machine."""
    with rig.parts.database.write() as session:
        session.execute(update(Row).where(Row.executor_id == executor_id).values(machine="elsewhere"))
