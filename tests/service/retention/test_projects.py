"""A project is deleted on purpose, at once for who asks and bit by bit for what it held; nothing else goes with it."""

from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import timedelta

import pytest
from sqlalchemy import select, text, update

from service import auth, retention
from service.errors import InvalidRequest, ProjectProtected, RouteNotFound, Unauthorized
from service.records import audit, erasure, jobs, tokens
from service.records.database import Database
from service.records.models import DEFAULT_PROJECT, Audit, Blob, DoomedBlob, Job, Project, Upload
from service.records.types import new_id, now
from tests.service.records.build import job, planned
from tests.service.retention.rows import counts, fill, of_project

GONE, STAYS = "a" * 32, "b" * 32


def on() -> None:
    """Nothing ends the work."""


def delete(database: Database) -> None:
    """By its administrator."""
    retention.delete_project(
        database, GONE, confirm=f"project {GONE}", actor="token t", request_id="request-1"
    )


@pytest.fixture
def filled(database: Database) -> Database:
    """Two projects with rows in every table; one content is held by both."""
    with database.write() as session:
        for project_id in (GONE, STAYS):
            fill(session, project_id, times=2)
            session.add(Blob(project_id=project_id, sha256="f" * 64, bytes=1, created_at=now()))
        session.execute(update(Job).values(state="passed"))
        session.execute(update(Upload).values(state="stored"))
    return database


def test_a_slip_deletes_nothing(sqlite_url: str) -> None:
    with closing(Database(sqlite_url)) as database:
        with database.write() as session:
            session.add(Project(id=GONE, name=f"project {GONE}", created_at=now()))
        cases: list[tuple[str, str, type[Exception]]] = [
            ("c" * 32, "c", RouteNotFound),
            (DEFAULT_PROJECT, "default", ProjectProtected),
            (GONE, "", InvalidRequest),
            (GONE, f"project {STAYS}", InvalidRequest),
            (GONE, GONE, InvalidRequest),
        ]
        for project_id, confirm, error in cases:
            with pytest.raises(error):
                retention.delete_project(database, project_id, confirm=confirm, actor="a")
        with database.read() as session:
            assert erasure.deleted(session) == []
            assert session.scalars(select(Audit).where(Audit.action == "project.deleted")).all() == []


def test_a_deleted_project_is_shut_at_once(database: Database) -> None:
    secret = "ng_" + "s" * 40
    with database.write() as session:
        session.add(Project(id=GONE, name=f"project {GONE}", created_at=now()))
        session.flush()
        tokens.add(session, GONE, auth.hashed(secret), "api", name="t", scopes="admin", created_by="c")
        waiting = jobs.add(session, job(project_id=GONE))
        running = planned(session, project_id=GONE)
        other = planned(session)
    auth.authenticate(database, secret)
    delete(database)
    with pytest.raises(Unauthorized):
        auth.authenticate(database, secret)
    with database.read() as session:
        found = [session.get_one(Job, made.id) for made in (waiting, running, other)]
        assert [(made.state, made.cancel_requested) for made in found] == [
            ("cancelled", False),
            ("running", True),
            ("running", False),
        ]
        told = audit.entries(session, GONE, limit=9).items
    assert [(row.actor, row.action, row.subject, row.request_id) for row in told] == [
        ("token t", "project.deleted", f"project {GONE}", "request-1")
    ]
    delete(database)  # once more changes nothing
    with database.read() as session:
        assert len(audit.entries(session, GONE, limit=9).items) == 1
    # Its rows wait for the job that runs, for some time.
    assert retention.erase_deleted(database, on) == []
    with database.read() as session:
        assert counts(session, GONE)["jobs"] == 2
    with database.write() as session:
        long_ago = now() - timedelta(hours=2)
        session.execute(update(Project).where(Project.id == GONE).values(deleted_at=long_ago))
    assert retention.erase_deleted(database, on) == [GONE]


def test_everything_of_a_deleted_project_goes_and_nothing_else(filled: Database) -> None:
    tables = {table.name for table in of_project()}
    with filled.read() as session:
        before = counts(session, STAYS)
        assert set(before) == set(counts(session, GONE)) == tables
        own = set(session.scalars(select(Blob.sha256).where(Blob.project_id == GONE)))
    delete(filled)
    assert retention.erase_deleted(filled, on) == [GONE]
    with filled.read() as session:
        assert counts(session, GONE) == {}
        assert counts(session, STAYS) == before
        assert [row.id for row in session.scalars(select(Project).order_by(Project.id))] == [
            STAYS,
            DEFAULT_PROJECT,
        ]
        assert set(session.scalars(select(DoomedBlob.sha256))) == own
        done = [row.action for row in audit.entries(session, GONE, limit=9).items]
    assert done == ["project.erased", "project.deleted"]
    removed: list[str] = []

    class Bytes:
        def remove(self, sha256: str) -> None:
            removed.append(sha256)

    gone = retention.purge(filled, Bytes(), now() + timedelta(days=1), on)  # type: ignore[arg-type]  # only removes
    assert set(removed) == own - {"f" * 64}  # which the other project holds too
    assert gone == len(removed)


class Killed(BaseException):
    """The process is gone."""


def test_erasing_goes_on_after_a_kill_at_any_point(filled: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retention, "_ROWS", 1)
    delete(filled)
    kills = 0

    def killer(after: int) -> Callable[[], None]:
        left: Iterator[int] = iter(range(after))

        def check() -> None:
            if next(left, None) is None:
                raise Killed

        return check

    while True:
        try:
            erased = retention.erase_deleted(filled, killer(8 * (kills + 1)))
        except Killed:
            kills += 1
            with filled.read() as session:
                assert session.get(Project, GONE) is not None
            continue
        break
    assert kills > 2
    assert erased == [GONE]
    with filled.read() as session:
        assert counts(session, GONE) == {}


def test_a_row_that_came_late_is_taken_the_next_time(
    filled: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A request that was let in before the project was deleted commits when all its tables are empty."""
    delete(filled)
    forget = retention._forget

    def late(database: Database, project: Project) -> bool:
        with database.write() as session:
            jobs.add(session, job(id=new_id(), project_id=GONE))
        return forget(database, project)

    with monkeypatch.context() as patch:
        patch.setattr(retention, "_forget", late)
        assert retention.erase_deleted(filled, on) == []
    with filled.read() as session:
        assert erasure.deleted(session) != []
    assert retention.erase_deleted(filled, on) == [GONE]


def test_an_index_finds_the_rows_of_a_project_in_every_table(sqlite_url: str) -> None:
    with closing(Database(sqlite_url)) as database, database.read() as session:
        for table in erasure.tables():
            query = select(*table.primary_key.columns).where(erasure.owned(table, GONE)).limit(1)
            spelled = str(query.compile(database.engine, compile_kwargs={"literal_binds": True}))
            plan = "; ".join(row[3] for row in session.execute(text(f"EXPLAIN QUERY PLAN {spelled}")))
            assert "SCAN" not in plan, (table.name, plan)
