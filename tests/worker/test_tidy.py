"""What a worker tidies, and that one of them does it at a time."""

from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import select, update

from service import retention
from service.records import jobs, leases
from service.records.models import Blob, DoomedBlob, Job, JobEvent, Lease, Project
from service.records.types import first_id, new_id, now
from tests.service.records.build import job, planned
from tests.worker.inside import inside
from tests.worker.rig import PROJECT, Rig
from worker import tidy as room
from worker.tidy import tidy


def store(rig: Rig, text: str) -> str:
    """The sha256 of new content."""
    path = rig.settings.data / "new"
    path.write_text(text)
    return rig.store(path).sha256


def tidied(rig: Rig) -> None:
    """Once."""
    with inside(rig) as context:
        tidy(context)


def test_content_goes_after_the_time_that_settings_say(alone: Rig) -> None:
    seconds = alone.settings.keep_unreferenced_seconds
    old, used, new = (store(alone, text) for text in ("old", "used", "new"))
    with alone.parts.database.write() as session:
        long_ago = now() - timedelta(seconds=seconds + 60)
        session.execute(update(Blob).where(Blob.sha256 != new).values(created_at=long_ago, kept_at=None))
        jobs.add(session, job(request={"type": "verify", "inputs": {"a": f"sha256:{used}"}}))
    tidied(alone)
    with alone.parts.database.read() as session:
        assert set(session.scalars(select(Blob.sha256))) == {used, new}
    assert alone.parts.blobs.holds(old, 3)
    with alone.parts.database.write() as session:
        session.execute(update(DoomedBlob).values(at=now() - retention.GRACE - timedelta(seconds=60)))
    tidied(alone)
    assert not alone.parts.blobs.holds(old, 3)
    assert alone.parts.blobs.holds(used, 4)
    assert alone.parts.blobs.holds(new, 3)


def test_events_of_jobs_that_ended_long_ago_go_but_for_their_end(alone: Rig) -> None:
    long_ago = now() - timedelta(seconds=alone.settings.keep_events_seconds + 60)
    ids = {name: first_id(long_ago) + new_id()[12:] for name in ("ended", "open", "ended lately")}
    with alone.parts.database.write() as session:
        for name, id_ in ids.items():
            planned(session, id=id_, created_at=long_ago)
            jobs.finish_shard(session, id_, 0, "[]")
            if name != "open":
                jobs.finish(session, id_, "passed")
        ended = session.get_one(Job, ids["ended"])
        ended.finished_at = long_ago
    tidied(alone)
    with alone.parts.database.read() as session:
        told: dict[str, Any] = {
            name: list(
                session.scalars(select(JobEvent.key).where(JobEvent.job_id == id_).order_by(JobEvent.seq))
            )
            for name, id_ in ids.items()
        }
    begun = ["state:queued", "state:running", "shard:0"]
    assert told == {"ended": ["state:final"], "open": begun, "ended lately": [*begun, "state:final"]}
    with alone.parts.database.write() as session:
        session.get_one(Job, ids["ended lately"]).finished_at = long_ago
    for passed in (False, True):  # once a day
        if passed:
            with alone.parts.database.write() as session:
                session.execute(update(Lease).where(Lease.name == "tidy events").values(until=0))
        tidied(alone)
        with alone.parts.database.read() as session:
            assert len(jobs.events(session, ids["ended lately"], 0, 9)) == (1 if passed else 4)


def test_a_deleted_project_is_gone_after_a_while(alone: Rig) -> None:
    with alone.parts.database.write() as session:
        session.add(Project(id="a" * 32, name="another", created_at=now()))
        session.flush()
        jobs.add(session, job(project_id="a" * 32))
    retention.delete_project(alone.parts.database, "a" * 32, confirm="another", actor="t")
    tidied(alone)
    with alone.parts.database.read() as session:
        assert list(session.scalars(select(Project.id))) == [PROJECT]


def test_one_worker_tidies_at_a_time(alone: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []
    monkeypatch.setattr(room, "_shared", lambda context, check: [("part", lambda: done.append("once"))])
    with alone.parts.database.write() as session:
        assert leases.take(session, "tidy", "another", 60)
    tidied(alone)
    assert done == []
    with alone.parts.database.write() as session:
        session.execute(update(Lease).values(until=0))
    tidied(alone)
    assert done == ["once"]
    tidied(alone)  # it was given back
    assert done == ["once", "once"]


def test_a_part_that_fails_keeps_no_other_from_being_done(
    alone: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []

    def fail() -> None:
        raise OSError("the disk is away")

    monkeypatch.setattr(
        room, "_shared", lambda context, check: [("first", fail), ("second", lambda: done.append("second"))]
    )
    tidied(alone)
    assert done == ["second"]


def test_who_lost_the_lease_stops(alone: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []

    def lose() -> None:  # as if this one had been frozen, and another one taken its turn
        with alone.parts.database.write() as session:
            session.execute(update(Lease).values(holder="another", until=Lease.until + 1_000))

    monkeypatch.setattr(room, "_LEASE_SECONDS", 0.0)  # it is asked for again at every step
    monkeypatch.setattr(
        room, "_shared", lambda context, check: [("first", lose), ("second", lambda: done.append("second"))]
    )
    tidied(alone)
    assert done == []
