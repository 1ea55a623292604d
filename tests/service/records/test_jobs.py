"""Jobs: asked for once, begun once, ended once."""

from typing import Any

import pytest
from sqlalchemy import update
from sqlalchemy.orm import Session

from service.records import conversions, jobs, runs
from service.records.database import Database
from service.records.models import Job
from service.records.types import now
from tests.service.records.build import OTHER, P, conversion, digest, job, listed, other_project, planned, run


def states(session: Any, stored: Job) -> list[str]:
    """The states that listeners hear of."""
    return [event.data["state"] for event in jobs.events(session, stored.id, 0, 999) if event.type == "state"]


def test_the_same_key_is_the_same_job(database: Database) -> None:
    with database.write() as session:
        other_project(session)
        first = jobs.add(session, job(idempotency_key="k\0"))
    with database.write() as session:
        again = jobs.add(session, job(idempotency_key="k\0", request_digest=digest("other")))
        assert again.id == first.id
        assert again.request_digest == first.request_digest
        assert jobs.add(session, job(idempotency_key="k")).id != first.id
        assert jobs.add(session, job(idempotency_key="k\0", project_id=OTHER)).id != first.id
        unkeyed = {jobs.add(session, job()).id for _ in range(3)}
        assert len(unkeyed) == 3
    with database.read() as session:
        assert jobs.by_key(session, P, "k\0").id == first.id
        assert jobs.by_key(session, "nobody", "k\0") is None
        assert states(session, first) == ["queued"]


def test_found_within_the_project(database: Database) -> None:
    with database.write() as session:
        other_project(session)
        stored = jobs.add(session, job(request={"n": 10**30, "t": "\0"}))
    with database.read() as session:
        assert jobs.job(session, P, stored.id).request == {"n": 10**30, "t": "\0"}
        assert jobs.job(session, OTHER, stored.id) is None
        assert jobs.job(session, P, "\0") is None
        assert jobs.get(session, stored.id).cancel_requested is False
        assert jobs.get(session, "0" * 32) is None


def test_begun_once(database: Database) -> None:
    with database.write() as session:
        stored = jobs.add(session, job())
        assert jobs.begin(session, stored.id)
        started = jobs.get(session, stored.id).started_at
    with database.write() as session:
        assert jobs.begin(session, stored.id)
        assert jobs.get(session, stored.id).started_at == started
        assert states(session, stored) == ["queued", "running"]
        assert jobs.finish(session, stored.id, "passed")
        assert not jobs.begin(session, stored.id)
        assert not jobs.begin(session, "0" * 32)


def test_lists(database: Database) -> None:
    with database.write() as session:
        other_project(session)
        jobs.add(session, job(project_id=OTHER))
        ids = [jobs.add(session, job(type="convert" if n % 2 else "verify")).id for n in range(6)]
        jobs.begin(session, ids[0])
        for number in (1, 2):
            jobs.begin(session, ids[number])
            jobs.finish(session, ids[number], "failed")
    newest = sorted(ids, reverse=True)
    with database.read() as session:
        page = jobs.jobs(session, P, limit=4)
        rest = jobs.jobs(session, P, limit=4, cursor=page.next)
        assert [row.id for row in page.items + rest.items] == newest
        assert rest.next is None

        def found(**wanted: str) -> set[str]:
            return {row.id for row in jobs.jobs(session, P, limit=9, **wanted).items}

        assert found(state="failed") == {ids[1], ids[2]}
        assert found(type="convert") == {ids[1], ids[3], ids[5]}
        assert found(type="convert", state="failed") == {ids[1]}
        assert found(state="\0") == set()
        assert jobs.open_jobs(session, 99) == []  # none of them has room yet
    with database.write() as session:
        session.execute(update(Job).values(admitted_at=now()))
    with database.read() as session:
        waiting = [row.id for row in jobs.open_jobs(session, 99)]
        assert waiting == sorted(waiting)
        assert len(waiting) == 5  # of both projects
        assert set(waiting) & set(ids) == {ids[0], *ids[3:]}
        assert [row.id for row in jobs.open_jobs(session, 2)] == waiting[:2]
        assert [row.id for row in jobs.open_jobs(session, 2, waiting[1])] == waiting[2:4]


@pytest.mark.parametrize("state", jobs.FINAL)
def test_ended_once(database: Database, state: str) -> None:
    with database.write() as session:
        stored = planned(session)
        jobs.finish_shard(session, stored.id, 0, "[]")
        error = {"code": "internal", "detail": "x"} if state == "error" else None
        assert jobs.finish(session, stored.id, state, error=error)
    for later in jobs.FINAL:
        with database.write() as session:
            assert not jobs.finish(session, stored.id, later)
            assert jobs.request_cancel(session, P, stored.id).state == state
    with database.read() as session:
        found = jobs.get(session, stored.id)
        assert (found.state, found.error) == (state, error)
        assert found.finished_at >= found.started_at
        assert states(session, stored) == ["queued", "running", state]
        last = jobs.events(session, stored.id, 0, 99)[-1]
        assert last.data == {"state": state} | ({"error": error} if error else {})


@pytest.mark.parametrize("state", ["queued", "running", "nonsense", ""])
def test_other_states_are_no_end(database: Database, state: str) -> None:
    with database.write() as session:
        stored = planned(session)
        with pytest.raises(ValueError, match="not a final state"):
            jobs.finish(session, stored.id, state)
        assert not jobs.finish(session, "0" * 32, "passed")


def test_a_queued_job_is_cancelled_at_once(database: Database) -> None:
    with database.write() as session:
        other_project(session)
        stored = jobs.add(session, job())
        assert jobs.request_cancel(session, OTHER, stored.id) is None
        assert jobs.request_cancel(session, P, "0" * 32) is None
        assert jobs.request_cancel(session, P, stored.id).state == "cancelled"
        assert states(session, stored) == ["queued", "cancelled"]
        assert not jobs.begin(session, stored.id)


def asked_to_stop(session: Session, job_id: str) -> bool:
    """Whether somebody wants the job to end."""
    job = jobs.get(session, job_id)
    return job is not None and job.cancel_requested


def test_a_running_job_is_asked_to_stop(database: Database) -> None:
    with database.write() as session:
        stored = planned(session)
        assert not asked_to_stop(session, stored.id)
        asked = jobs.request_cancel(session, P, stored.id)
        assert (asked.state, asked.cancel_requested) == ("running", True)
    with database.write() as session:
        assert asked_to_stop(session, stored.id)
        assert jobs.finish(session, stored.id, "cancelled")


def test_the_end_tells_what_came_of_it(database: Database) -> None:
    with database.write() as session:
        verified = run(session)
        runs.save(session, verified.id, verdict="failed", report_head={}, errors=1, advisories=0)
        jobs.finish(session, verified.job_id, "failed")
        made = listed(session)
        converted = conversion(session)
        conversions.save(session, converted.id, verdict="written", document={}, artifact_id=made.id)
        jobs.finish(session, converted.job_id, "passed", artifact_id=made.id)
        ends = [jobs.events(session, one.job_id, 0, 99)[-1].data for one in (verified, converted)]
        of_run = jobs.get(session, verified.job_id).artifact_id
        assert jobs.get(session, converted.job_id).artifact_id == made.id
    assert of_run == verified.artifact_id
    assert ends[0].pop("artifact").startswith("sha256:")
    assert ends == [
        {"state": "failed", "run": verified.id, "verdict": "failed"},
        {"state": "passed", "conversion": converted.id, "verdict": "written", "artifact": made.digest},
    ]


def test_events_are_said_once(database: Database) -> None:
    with database.write() as session:
        stored = jobs.add(session, job())
        for _ in range(2):
            for key in "ab":
                jobs.add_event(session, stored, key, "progress", {"key": key})
    with database.read() as session:
        assert [(e.seq, e.key) for e in jobs.events(session, stored.id, 0, 99)] == [
            (1, "state:queued"),
            (2, "a"),
            (3, "b"),
        ]
        assert [e.seq for e in jobs.events(session, stored.id, 1, 1)] == [2]
        assert [e.seq for e in jobs.events(session, stored.id, -(10**30), 99)] == [1, 2, 3]
        assert jobs.events(session, stored.id, 3, 99) == []
        assert jobs.events(session, stored.id, 10**30, 99) == []
