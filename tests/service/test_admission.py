"""Who goes into the engine's line, and when: order, room, fairness between projects, and many at once."""

from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from service import admission
from service.blobs import BlobStore
from service.parts import Parts
from service.records import jobs, lanes
from service.records.database import Database
from service.records.models import Job, Project
from service.records.types import now
from service.settings import Settings
from tests.service.api.world import Remembering
from tests.service.records.build import OTHER, P, at_once, job, other_project


@pytest.fixture
def parts(database: Database, database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Parts:
    """With a shorter line, for there to be fewer jobs."""
    monkeypatch.setattr(admission, "IN_LINE", 20)
    monkeypatch.setattr(admission, "_AT_ONCE", 5)
    return Parts(
        Settings(data=tmp_path, database_url=database_url), database, BlobStore(tmp_path), Remembering()
    )


def asked(parts: Parts, count: int = 1, **facts: Any) -> list[str]:
    """New jobs, as a request makes them: stored and admitted in one transaction; their ids."""
    found = []
    for _ in range(count):
        with parts.database.write() as session:
            stored = jobs.add(session, job(**facts))
            admitted = admission.admit(session, parts.settings, stored.project_id)
        admission.put_in_line(parts, admitted)
        found.append(stored.id)
    return found


def admitted(parts: Parts, ids: list[str]) -> list[str]:
    """Those of the ids that are in the engine's line, in the order in which it heard of them."""
    queue = parts.queue
    assert isinstance(queue, Remembering)
    return [id_ for id_ in queue.enqueued if id_ in ids]


def begin(parts: Parts, *ids: str) -> None:
    """The engine runs these."""
    for id_ in ids:
        with parts.database.write() as session:
            assert jobs.begin(session, id_)


def end(parts: Parts, *ids: str) -> None:
    """These are over, and their worker admits others."""
    for id_ in ids:
        with parts.database.write() as session:
            assert jobs.finish(session, id_, "passed")
    admission.admit_waiting(parts)


def bounded(parts: Parts, most: int | None, project_id: str = P) -> None:
    """Give a project a bound of its own."""
    with parts.database.write() as session:
        found = session.get(Project, project_id)
        assert found is not None
        found.max_running_jobs = most


def test_without_a_bound_a_line_has_an_end(parts: Parts) -> None:
    ids = asked(parts, admission.IN_LINE + 6)
    bulk = asked(parts, 2, lane="bulk")
    assert admitted(parts, ids) == ids[: admission.IN_LINE]
    assert admitted(parts, bulk) == bulk  # each lane has a line of its own
    first, *_ = asked(parts, priority=5)
    assert admitted(parts, [first]) == []
    begin(parts, *ids[:4])
    admission.admit_waiting(parts)
    assert len(admitted(parts, ids)) == admission.IN_LINE  # not worth a transaction yet
    begin(parts, ids[4])
    admission.admit_waiting(parts)
    assert admitted(parts, [*ids, first]) == [*ids[: admission.IN_LINE], first, *ids[admission.IN_LINE :][:4]]
    begin(parts, *ids[5:10])
    end(parts, ids[0])
    assert sorted(admitted(parts, ids)) == sorted(ids)


def test_a_projects_bound_is_kept_in_order_of_priority_then_age(parts: Parts) -> None:
    bounded(parts, 2)
    a, b, c = asked(parts, 3)
    (low,) = asked(parts, priority=-1)
    (high,) = asked(parts, priority=1)
    everything = [a, b, c, low, high]
    assert admitted(parts, everything) == [a, b]
    begin(parts, a)
    admission.admit_waiting(parts)
    assert admitted(parts, everything) == [a, b]  # one that runs has its place still
    end(parts, a)
    assert admitted(parts, everything) == [a, b, high]
    end(parts, b)
    end(parts, high)
    assert admitted(parts, everything) == [a, b, high, c, low]


def test_bulk_work_leaves_a_place_to_those_who_wait(parts: Parts) -> None:
    bounded(parts, 3)
    bulk = asked(parts, 4, lane="bulk", priority=100)
    (urgent,) = asked(parts)
    assert admitted(parts, [*bulk, urgent]) == [*bulk[:2], urgent]
    (other,) = asked(parts)
    end(parts, bulk[0])
    assert admitted(parts, [*bulk, other]) == [*bulk[:2], other]  # interactive work goes before
    bounded(parts, 1)
    end(parts, bulk[1], urgent)
    assert admitted(parts, bulk) == bulk[:2]
    end(parts, other)
    assert admitted(parts, bulk) == bulk[:3]  # a single place is for both


def test_the_settings_bound_projects_without_a_bound_of_their_own(parts: Parts) -> None:
    settings = parts.settings.model_copy(update={"max_running_jobs": 1})
    with parts.database.write() as session:
        # By age, which ids of one millisecond do not have: chance orders them.
        stored = sorted((jobs.add(session, job()) for _ in range(3)), key=lambda row: row.id)
        assert [found.id for found in admission.admit(session, settings, P)] == [stored[0].id]
        assert "1 may at a time" in admission.waits_for_room(session, settings, P)
    bounded(parts, 2)
    with parts.database.write() as session:
        assert [found.id for found in admission.admit(session, settings, P)] == [stored[1].id]


def test_another_project_does_not_wait_behind_all_of_the_first(parts: Parts) -> None:
    with parts.database.write() as session:
        other_project(session)
        for _ in range(admission.IN_LINE + 7):
            jobs.add(session, job())
        theirs = [jobs.add(session, job(project_id=OTHER)).id for _ in range(3)]
    admission.admit_waiting(parts)
    queue = parts.queue
    assert isinstance(queue, Remembering)
    heard = list(queue.enqueued)
    assert len(heard) == admission.IN_LINE + 3
    assert {heard.index(id_) // 2 for id_ in theirs} == {0, 1, 2}  # in turns


def test_nothing_of_a_deleted_project_is_admitted(parts: Parts) -> None:
    with parts.database.write() as session:
        other_project(session)
        stored = jobs.add(session, job(project_id=OTHER))
        found = session.get(Project, OTHER)
        assert found is not None
        found.deleted_at = now()
    admission.admit_waiting(parts)
    with parts.database.write() as session:
        assert admission.admit(session, parts.settings, OTHER) == []
    with parts.database.read() as session:
        assert [(depth.lane, depth.state, depth.jobs) for depth in lanes.depths(session)] == [
            ("interactive", "waiting", 1)
        ]
    assert admitted(parts, [stored.id]) == []


def test_what_the_engine_did_not_hear_is_admitted_all_the_same(parts: Parts) -> None:
    queue = parts.queue
    assert isinstance(queue, Remembering)
    queue.broken = True
    (lost,) = asked(parts)
    assert admitted(parts, [lost]) == []
    with parts.database.read() as session:
        row = jobs.get(session, lost)
    assert row is not None
    assert row.admitted_at is not None  # the sweep puts in line what is admitted and unknown


def add_some(parts: Parts, number: int) -> list[str]:
    """Ask for jobs over connections of its own."""
    with closing(Database(parts.settings.records_url)) as database:
        own = replace(parts, database=database)
        ids = asked(own, 4, priority=number)
        admission.admit_waiting(own)
        return ids


def test_many_at_once_never_go_over_the_bound(parts: Parts) -> None:
    bounded(parts, 3)
    found = at_once(*[partial(add_some, parts, number) for number in range(3)])
    ids = [id_ for added in found for id_ in added]
    for left in range(len(ids), 0, -1):
        with parts.database.read() as session:
            open_ = [row for row in map(session.get_one, [Job] * len(ids), ids) if row.state == "queued"]
        inside = [row for row in open_ if row.admitted_at is not None]
        assert len(open_) == left
        assert len(inside) == min(3, left)
        with parts.database.write() as session:
            jobs.finish(session, inside[0].id, "passed")
        at_once(*[lambda: admission.admit_waiting(parts)] * 4)
