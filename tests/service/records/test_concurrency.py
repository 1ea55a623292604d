"""Many at once: nothing is lost, nothing is doubled, and nobody is turned away."""

import random
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import closing, contextmanager
from itertools import count

import pytest
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from service.records import content, jobs, runs, workers
from service.records.database import Database
from service.records.models import Artifact, Blob, Checkpoint, Job, Run, Worker
from service.records.types import new_id, now
from tests.service.records.build import (
    P,
    artifact,
    at_once,
    checkpoint,
    checkpoint_files,
    files,
    in_processes,
    job,
    planned,
    sha,
    shard_rows,
)

TRANSACTIONS = 25


def add_one(url: str, number: int) -> int:
    """Read a counter and write it back, plus one, many times; in a process of its own. Errors are raised there."""
    with closing(Database(url)) as database:
        for step in range(TRANSACTIONS):
            with database.write() as session:
                query = select(Worker).where(Worker.executor_id == "counter")
                counter = session.scalars(query.with_for_update()).one()  # means nothing to SQLite
                counter.started += 1
                content.add_blob(session, P, sha((number, step)), step)
            with database.read() as session:
                session.scalar(select(func.count()).select_from(Blob))
    return number


def test_four_processes_read_then_write(database: Database, database_url: str) -> None:
    with database.write() as session:
        workers.enter(session, "counter", host="h", machine="m", pid=1, started=0)
    assert in_processes(add_one, [database_url] * 4, range(4)) == [0, 1, 2, 3]
    with database.read() as session:
        assert workers.all(session)[0].started == 4 * TRANSACTIONS
        assert session.scalar(select(func.count()).select_from(Blob)) == 4 * TRANSACTIONS


@contextmanager
def held(database: Database, work: Callable[[Session], object]) -> Iterator[Session]:
    """A transaction that has done `work` and is not committed yet."""
    with database.write() as session:
        work(session)
        session.flush()
        yield session


@pytest.mark.parametrize("what", ["artifact", "checkpoint", "job", "run"])
def test_the_second_waits_and_finds_the_first(database: Database, what: str) -> None:
    with database.write() as session:
        other = planned(session)
        verified, _ = content.add_artifact(session, artifact("verified"), [])

    def add(session: Session) -> str:
        match what:
            case "artifact":
                return content.add_artifact(session, artifact(), files("a"))[0].id
            case "checkpoint":
                return content.add_checkpoint(session, checkpoint(repository="r"), checkpoint_files("a"))[
                    0
                ].id
            case "job":
                return jobs.add(session, job(idempotency_key="k")).id
        facts = {"job_id": other.id, "artifact_id": verified.id, "checks": [], "created_at": now()}
        return runs.add(session, Run(project_id=P, id=new_id(), **facts)).id

    def second() -> str:
        with database.write() as session:
            return add(session)

    first: list[str] = []
    with ThreadPoolExecutor(1) as pool:
        with held(database, lambda session: first.append(add(session))):
            waiting = pool.submit(second)
            assert not wait([waiting], timeout=0.3).done
        assert waiting.result(30) == first[0]


def test_races_leave_one_row(database: Database) -> None:
    def add() -> tuple[str, str, str]:
        with database.write() as session:
            stored, _ = content.add_artifact(session, artifact(), files("a", "b"))
            source, _ = content.add_checkpoint(session, checkpoint(), checkpoint_files("a"))
            asked = jobs.add(session, job(idempotency_key="k"))
            return stored.id, source.id, asked.id

    assert len(set(at_once(*[add] * 6))) == 1
    with database.read() as session:
        found = session.scalars(select(Artifact)).one()
        assert len(content.files(session, found.id)) == 2
        source = session.scalars(select(Checkpoint)).one()
        assert len(content.checkpoint_files(session, source.id)) == 1
        asked = session.scalars(select(Job)).one()
        assert [event.seq for event in jobs.events(session, asked.id, 0, 9)] == [1]


def test_one_final_state(database: Database) -> None:
    for seed in range(12):
        with database.write() as session:
            stored = planned(session)

        def finish(state: str, stored: Job = stored) -> bool:
            with database.write() as session:
                return jobs.finish(session, stored.id, state)

        def cancel(stored: Job = stored) -> bool:
            with database.write() as session:
                jobs.request_cancel(session, P, stored.id)
                return jobs.finish(session, stored.id, "cancelled")

        works = [lambda: finish("passed"), lambda: finish("failed"), cancel]
        random.Random(seed).shuffle(works)
        assert sorted(at_once(*works)) == [False, False, True]
        with database.read() as session:
            found = jobs.get(session, stored.id)
            ends = [event for event in jobs.events(session, stored.id, 0, 99) if event.key == "state:final"]
        assert [event.data["state"] for event in ends] == [found.state]


def test_a_cancel_of_a_queued_job_races_its_start(database: Database) -> None:
    for _ in range(12):
        with database.write() as session:
            stored = jobs.add(session, job())

        def begin(stored: Job = stored) -> bool:
            with database.write() as session:
                return jobs.begin(session, stored.id)

        def cancel(stored: Job = stored) -> bool:
            with database.write() as session:
                return jobs.request_cancel(session, P, stored.id).state == "cancelled"

        began, cancelled = at_once(begin, cancel)
        assert began != cancelled
        with database.read() as session:
            found = jobs.get(session, stored.id)
        assert (found.state, found.cancel_requested) == (("running", True) if began else ("cancelled", False))


def test_events_are_gapless(database: Database) -> None:
    shards, threads = 24, 4
    with database.write() as session:
        stored = planned(session, shards)
    numbers = iter(range(shards))
    lock = threading.Lock()
    stored_by = count()

    def finish_some() -> None:
        while True:
            with lock:
                number = next(numbers, None)
            if number is None:
                return
            for _ in range(2):  # said twice, as after a crash
                with database.write() as session:
                    jobs.advance(session, stored.id, number, 50)
                    if jobs.finish_shard(session, stored.id, number, f"[{number}]"):
                        next(stored_by)

    at_once(*[finish_some] * threads)
    assert next(stored_by) == shards
    with database.read() as session:
        heard = jobs.events(session, stored.id, 0, 999)
        assert [event.seq for event in heard] == list(range(1, shards + 3))
        progress = [event.data["objects_done"] for event in heard if event.type == "progress"]
        assert progress == [10 * (n + 1) for n in range(shards)]
        assert {event.key for event in heard} == {
            "state:queued",
            "state:running",
            *(f"shard:{n}" for n in range(shards)),
        }
        assert [jobs.outcomes(session, stored.id, n) for n in range(shards)] == [
            f"[{n}]" for n in range(shards)
        ]


def test_the_first_of_two_plans_stands_for_both(database: Database) -> None:
    with database.write() as session:
        stored = jobs.add(session, job())

    def plan(size: int) -> list[int]:
        with database.write() as session:
            rows = jobs.plan(session, stored.id, size, size, shard_rows(size))
            return [row.number for row in rows]

    plans = at_once(*(lambda n=n: plan(n) for n in (2, 3, 4)))
    assert plans[0] == plans[1] == plans[2]
    with database.read() as session:
        assert jobs.progress(session, stored.id).objects == len(plans[0])


def test_directories_are_listed_once(database: Database) -> None:
    with database.write() as session:
        stored, _ = content.add_artifact(session, artifact(), [])

    def list_(number: int) -> None:
        from tests.service.records.build import objects

        with database.write() as session:
            content.list_objects(
                session,
                stored.id,
                rows=objects(number),
                listing="listed",
                revision=number,
                model_id=None,
                weights_id=None,
            )

    at_once(*(lambda n=n: list_(n) for n in (10, 20, 30)))
    with database.read() as session:
        found = content.artifact(session, stored.id)
        assert (
            len(content.objects(session, stored.id, limit=99).items) == found.object_count == found.revision
        )
