"""Shards: planned once, forwards only, each done once."""

import pytest
from sqlalchemy.exc import InvalidRequestError

from service.records import attempts, jobs
from service.records.database import Database
from service.records.errors import NoOutcomes
from service.records.jobs import Progress
from service.records.models import Shard
from tests.service.records.build import HUGE, P, digest, job, planned, shard_rows


def test_the_first_plan_stands(database: Database) -> None:
    with database.write() as session:
        stored = jobs.add(session, job())
        assert jobs.progress(session, stored.id) == Progress(0, None, 0, None)
        jobs.begin(session, stored.id)
        first = jobs.plan(session, stored.id, 20, 200, shard_rows(2))
        assert [(s.number, s.first, s.stop, s.done, s.bytes_done) for s in first] == [
            (0, 0, 1, False, 0),
            (1, 1, 2, False, 0),
        ]
    with database.write() as session:
        again = jobs.plan(session, stored.id, 30, 300, shard_rows(3))
        assert [s.number for s in again] == [0, 1]
        assert jobs.progress(session, stored.id) == Progress(0, 20, 0, 200)
        assert jobs.plan(session, "0" * 32, 1, 1, shard_rows(1)) == []


def test_a_plan_of_nothing_is_a_plan(database: Database) -> None:
    with database.write() as session:
        stored = jobs.add(session, job())
        assert jobs.plan(session, stored.id, 0, 0, []) == []
        assert jobs.plan(session, stored.id, 10, 100, shard_rows(1)) == []
        assert jobs.progress(session, stored.id) == Progress(0, 0, 0, 0)


def test_forwards_only(database: Database) -> None:
    with database.write() as session:
        stored = planned(session)

        def done(bytes_done: int) -> int:
            jobs.advance(session, stored.id, 0, bytes_done)
            return jobs.progress(session, stored.id).bytes_done

        assert [done(n) for n in (10, 5, 60, 1 << 60, 70, -1)] == [10, 10, 60, 100, 100, 100]
        jobs.finish_shard(session, stored.id, 1, "[]")
        jobs.advance(session, stored.id, 1, 5)
        jobs.advance(session, stored.id, 9, 5)
        assert jobs.progress(session, stored.id) == Progress(10, 20, 200, 200)


def test_each_is_done_once(database: Database) -> None:
    with database.write() as session:
        stored = planned(session)
        assert jobs.finish_shard(session, stored.id, 1, '["first"]', {"sha256": "x", "bytes": HUGE})
    with database.write() as session:
        assert not jobs.finish_shard(session, stored.id, 1, '["second"]', {"sha256": "y"})
        assert not jobs.finish_shard(session, stored.id, 2, "[]")
        assert not jobs.finish_shard(session, "0" * 32, 0, "[]")
        assert jobs.outcomes(session, stored.id, 1) == '["first"]'
        found = jobs.shard(session, stored.id, 1)
        assert (found.done, found.bytes_done) == (True, 100)
        assert jobs.segment(session, stored.id, 1) == {"sha256": "x", "bytes": HUGE}
        assert jobs.segment(session, stored.id, 0) is jobs.segment(session, stored.id, 2) is None
        assert jobs.shard(session, stored.id, 2) is None
        assert [s.done for s in jobs.shards(session, stored.id)] == [False, True]
        with pytest.raises(NoOutcomes):
            jobs.outcomes(session, stored.id, 0)
        heard = [e for e in jobs.events(session, stored.id, 0, 99) if e.type == "progress"]
        assert [(e.key, e.data) for e in heard] == [
            ("shard:1", {"objects_done": 10, "objects": 20, "bytes_done": 100, "bytes": 200})
        ]


def test_an_ended_job_keeps_no_outcomes(database: Database) -> None:
    with database.write() as session:
        stored = planned(session)
        jobs.finish_shard(session, stored.id, 0, "[]" * 1_000_000)
        jobs.finish(session, stored.id, "cancelled")
    with database.write() as session:
        assert not jobs.finish_shard(session, stored.id, 1, "[]")  # a worker that woke up late
        for number in (0, 1):
            with pytest.raises(NoOutcomes):
                jobs.outcomes(session, stored.id, number)
        assert jobs.progress(session, stored.id) == Progress(10, 20, 100, 200)
        assert jobs.events(session, stored.id, 0, 99)[-1].type == "state"


def test_progress_of_many(database: Database) -> None:
    with database.write() as session:
        first, second = planned(session), planned(session, 3)
        third = jobs.add(session, job())
        jobs.finish_shard(session, first.id, 0, "[]")
        jobs.advance(session, second.id, 2, 50)
    with database.read() as session:
        assert jobs.progress_of(session, [first.id, second.id, third.id, "0" * 32, "\0"]) == {
            first.id: Progress(10, 20, 100, 200),
            second.id: Progress(0, 30, 50, 300),
            third.id: Progress(0, None, 0, None),
        }
        assert jobs.progress_of(session, []) == {}
        assert jobs.job(session, P, first.id).objects == 20


def test_what_waits_is_asked_for_by_number(database: Database) -> None:
    with database.write() as session:
        stored = planned(session, 0)
        assert jobs.waiting(session, stored.id) == {}
        stored = jobs.add(session, job())
        rows = [*shard_rows(4), Shard(number=4, first=4, stop=4, bytes=9, objects=0)]
        jobs.plan(session, stored.id, 40, 409, rows, digest("tasks"))
        attempts.begin_shard(session, stored.id, 2)
        jobs.finish_shard(session, stored.id, 1, "[]", {"records": [[0, 1]]})
        waiting = jobs.waiting(session, stored.id)
        assert list(waiting.items()) == [(0, 0), (2, 1), (3, 0)]  # the last has no tasks
        assert jobs.get(session, stored.id).plan == digest("tasks")
        for found in (*jobs.shards(session, stored.id), jobs.shard(session, stored.id, 1)):
            for heavy in ("outcomes", "segment"):
                with pytest.raises(InvalidRequestError):
                    getattr(found, heavy)
