"""Content that nothing refers to goes, in two steps; what anything refers to stays, whatever happens at the same time."""

import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from datetime import timedelta
from functools import partial
from itertools import count, takewhile
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select, update
from sqlalchemy.orm import Session

from ninfer_core.errors import CannotWrite
from service import artifacts, contents, retention, scheme_checks
from service.blobs import BlobStore, BlobWriter, StoreAwayForWriting
from service.contents import Stored, keep
from service.errors import BlobsMissing
from service.parts import Parts
from service.records import content, jobs
from service.records import retention as rows
from service.records.database import Database
from service.records.models import ArtifactFile, Blob, DoomedBlob
from service.records.types import now
from service.scheme_checks import Archive, CheckScheme
from service.settings import Settings
from tests.service.api.world import Remembering
from tests.service.records.build import (
    OTHER,
    P,
    artifact,
    checkpoint,
    checkpoint_files,
    conversion,
    digest,
    files,
    job,
    other_project,
    sha,
)


@pytest.fixture
def both(database: Database, database_url: str, tmp_path: Path) -> Parts:
    """A service on each database, with real files."""
    settings = Settings(data=tmp_path, database_url=database_url)
    return Parts(settings, database, BlobStore(tmp_path), Remembering())


@pytest.fixture
def parts(sqlite_url: str, tmp_path: Path) -> Iterator[Parts]:
    """The same on SQLite."""
    with closing(Database(sqlite_url)) as database:
        settings = Settings(data=tmp_path, database_url=sqlite_url)
        yield Parts(settings, database, BlobStore(tmp_path), Remembering())


def put(parts: Parts, text: str, project_id: str = P) -> Stored:
    """Content that came in."""
    with parts.blobs.writer() as writer:
        writer.write(text.encode())
        return keep(parts, project_id, writer)


def later() -> Any:
    """So late that everything has been kept for long enough."""
    return now() + timedelta(days=1)


def on() -> None:
    """Nothing ends the work."""


def collect(parts: Parts) -> int:
    """All of it."""
    return retention.collect(parts.database, later(), on)


def purge(parts: Parts) -> int:
    """Of all that is doomed."""
    return retention.purge(parts.database, parts.blobs, later(), on)


def held(parts: Parts, project_id: str = P) -> set[str]:
    """What a project holds."""
    with parts.database.read() as session:
        return set(session.scalars(select(Blob.sha256).where(Blob.project_id == project_id)))


def stored(parts: Parts) -> set[str]:
    """What lies on the disk."""
    root = Path(parts.settings.data, "blobs")
    return {path.name for path in root.rglob("*") if path.is_file()}


def _of_artifact(session: Session, name: str) -> None:
    content.add_artifact(session, artifact(name), files(name))


def _of_checkpoint(session: Session, name: str) -> None:
    content.add_checkpoint(session, checkpoint(), checkpoint_files(name))


def _of_record(session: Session, name: str) -> None:
    conversion(session, record=digest(name))


def _input(name: str) -> dict[str, Any]:
    return {"inputs": {"ranking": digest(name)}}


def _of_job(state: str, request: Callable[[str], dict[str, Any]] = _input) -> Callable[[Session, str], None]:
    def add(session: Session, name: str) -> None:
        made = jobs.add(session, job(request={"type": "verify", **request(name)}))
        if state != "queued":
            jobs.begin(session, made.id)
        if state not in ("queued", "running"):
            jobs.finish(session, made.id, state)

    return add


KEPT: dict[str, Callable[[Session, str], None]] = {
    "a file of an artifact": _of_artifact,
    "a file of a checkpoint": _of_checkpoint,
    "a record": _of_record,
    "an input of a job that waits": _of_job("queued"),
    "an input of a job that runs": _of_job("running"),
    "an input of a run that passed": _of_job("passed"),
    "an input of a run that failed": _of_job("failed"),
    "an input of an incomplete run": _of_job("incomplete"),
    "an archive of a check": _of_job("passed", lambda name: {"archive": {"digest": digest(name)}}),
    "the reference of a check": _of_job("passed", lambda name: {"reference": digest(name)}),
    "part of a member that came later": _of_job("passed", lambda name: {"new": [{"deep": [digest(name)]}]}),
}
LOOSE: dict[str, Callable[[Session, str], None]] = {
    "nothing": lambda session, name: None,
    "an input of a job without an answer": _of_job("error"),
    "an input of a job that was cancelled": _of_job("cancelled"),
    "an artifact of the same digest": _of_job("passed", lambda name: {"artifact": digest(name)}),
}


def test_what_refers_to_content_keeps_it(both: Parts) -> None:
    parts = both
    for name, refer in (KEPT | LOOSE).items():
        put(parts, name)
        with parts.database.write() as session:
            refer(session, name)
    names = {sha(name): name for name in KEPT | LOOSE}
    assert collect(parts) == len(LOOSE)
    assert {names[sha256] for sha256 in held(parts)} == set(KEPT)
    assert stored(parts) == set(names)
    assert purge(parts) == len(LOOSE)
    assert {names[sha256] for sha256 in stored(parts)} == set(KEPT)


def test_every_content_that_a_check_names_is_noted(parts: Parts) -> None:
    names = ("archive", "reference", "source")
    given = {name: put(parts, name) for name in names}
    request = CheckScheme(
        form="gptq",
        archive=Archive(given["archive"].digest),
        shape=(8, 64),
        params={"bits": 4, "group_size": 64},
        reference=given["reference"].digest,
        source=given["source"].digest,
    )
    with parts.database.write() as session:
        whole = scheme_checks.settled(parts, session, P, request, frozenset())
    assert jobs.contents_of(whole) == {item.sha256 for item in given.values()}


def test_content_is_kept_for_as_long_as_is_said_since_it_last_came_in(parts: Parts) -> None:
    old, again, new = (put(parts, name).sha256 for name in ("old", "again", "new"))
    long_ago, limit = now() - timedelta(days=9), now() - timedelta(days=7)
    with parts.database.write() as session:
        session.execute(update(Blob).where(Blob.sha256.in_([old, again])).values(created_at=long_ago))
    put(parts, "again")
    assert retention.collect(parts.database, limit, on) == 1
    assert held(parts) == {again, new}
    # Its bytes have a time of their own, which has only begun.
    assert retention.purge(parts.database, parts.blobs, now() - retention.GRACE, on) == 0
    assert stored(parts) == {old, again, new}
    with parts.database.write() as session:
        session.execute(update(DoomedBlob).values(at=now() - retention.GRACE - timedelta(seconds=1)))
    assert retention.purge(parts.database, parts.blobs, now() - retention.GRACE, on) == 1
    assert stored(parts) == {again, new}


def test_bytes_stay_while_any_project_holds_them(both: Parts) -> None:
    parts = both
    with parts.database.write() as session:
        other_project(session)
    shared = put(parts, "x").sha256
    put(parts, "x", OTHER)
    with parts.database.write() as session:
        content.add_artifact(session, artifact(project_id=OTHER), files("x"))
    assert collect(parts) == 1
    assert (held(parts), held(parts, OTHER)) == (set(), {shared})
    assert purge(parts) == 0
    assert stored(parts) == {shared}
    with parts.database.read() as session:
        assert session.scalars(select(DoomedBlob)).all() == []  # and nobody looks at it again


def test_doomed_content_that_comes_in_again_stays(parts: Parts) -> None:
    sha256 = put(parts, "x").sha256
    collect(parts)
    put(parts, "x")
    assert purge(parts) == 0
    assert (held(parts), stored(parts)) == ({sha256}, {sha256})


def test_bytes_whose_row_was_never_written_go(parts: Parts, monkeypatch: pytest.MonkeyPatch) -> None:
    """Their process died in between: what was promised before they were put in place is kept."""

    def die(*_: Any, **__: Any) -> bool:
        raise SystemExit

    with monkeypatch.context() as patch:
        patch.setattr(contents, "hold", die)
        with pytest.raises(SystemExit):
            put(parts, "x")
    assert (held(parts), stored(parts)) == (set(), {sha("x")})
    assert retention.purge(parts.database, parts.blobs, now() - retention.GRACE, on) == 0
    assert purge(parts) == 1
    assert stored(parts) == set()


def test_content_that_travels_long_has_its_time(both: Parts) -> None:
    """A large file on its way to a store, or the first of several: no collector is there before its row is."""
    parts = both
    large = 40 << 30  # 11 hours at a MiB a second
    with parts.blobs.writer() as writer:
        writer.write(b"x")
        contents.prepare(parts.database, parts.settings, P, writer.sha256, 1, whole=large)
        sha256, _ = writer.commit()
    with parts.database.write() as session:  # meanwhile another project's row of it goes
        rows.promise(session, sha256, 1)
    for hours, gone in ((10, 0), (12, 1)):
        assert retention.purge(parts.database, parts.blobs, now() + timedelta(hours=hours), on) == gone
    assert stored(parts) == set()


def test_a_store_that_is_away_is_not_asked_for_everything(
    parts: Parts, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each try waits for it inside of a transaction, and there may be thousands."""
    for name in "abc":
        put(parts, name)
    collect(parts)
    tries: list[str] = []

    def away(self: BlobStore, sha256: str) -> None:
        tries.append(sha256)
        raise StoreAwayForWriting("the store did not remove")

    with monkeypatch.context() as patch:
        patch.setattr(BlobStore, "remove", away)
        assert purge(parts) == 0
    assert len(tries) == 1
    assert purge(parts) == 3


def test_who_is_about_to_refer_to_content_is_waited_for(both: Parts) -> None:
    """A collector that has seen that nothing refers to it takes nothing away that somebody has locked, or that is used by now."""
    parts = both
    sha256 = put(parts, "x").sha256
    with parts.database.read() as session:
        walked = rows.unreferenced(session, later(), rows.FIRST, 10)
    assert walked.found == [(P, sha256)]
    if parts.database.engine.dialect.name == "postgresql":
        with parts.database.write() as using:
            assert content.find_blobs(using, P, [sha256], hold=True)
            with parts.database.write() as session:
                assert rows.drop_unreferenced(session, walked.found, later()) == []
    artifacts.push_one(parts, P, "ninfer", "a.ninfer", Stored(digest("x"), 1, False))
    with parts.database.write() as session:
        assert rows.drop_unreferenced(session, walked.found, later()) == []
    assert held(parts) == {sha256}


def test_a_removal_that_failed_is_done_the_next_time(parts: Parts, monkeypatch: pytest.MonkeyPatch) -> None:
    first = min(put(parts, name).sha256 for name in ("a", "b"))
    collect(parts)

    def remove(sha256: str) -> None:
        if sha256 == first:
            raise CannotWrite("the store is away")
        BlobStore.remove(parts.blobs, sha256)  # type: ignore[arg-type]  # it is one

    with monkeypatch.context() as patch:
        patch.setattr(parts.blobs, "remove", remove)
        assert purge(parts) == 1
    assert stored(parts) == {first}
    assert purge(parts) == 1
    assert stored(parts) == set()


def test_a_walk_takes_several_steps(parts: Parts, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retention, "_ROWS", 3)
    for number in range(10):
        put(parts, str(number))
    with parts.database.write() as session:
        content.add_artifact(session, artifact(), files("4", "5"))
    assert collect(parts) == 8
    assert purge(parts) == 8
    assert stored(parts) == held(parts) == {sha("4"), sha("5")}


def test_collectors_race_with_pushes_and_nothing_is_lost(
    both: Parts, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without any grace, and slow in the places where it matters; a push that was too late says so, and is done again."""
    parts = both
    commit, entry_of = BlobWriter.commit, artifacts.entry_of

    def slow_commit(writer: BlobWriter) -> tuple[str, int]:
        done = commit(writer)  # the bytes are there, and their row is not
        time.sleep(0.01)
        return done

    def slow_entry(*given: Any) -> str:
        time.sleep(0.01)  # content was found to be held, and nothing refers to it yet
        return entry_of(*given)

    monkeypatch.setattr(BlobWriter, "commit", slow_commit)
    monkeypatch.setattr(artifacts, "entry_of", slow_entry)
    stop = threading.Event()
    made: list[str] = []
    faults: list[Exception] = []

    def guarded(work: Callable[[], None]) -> Callable[[], None]:
        def run() -> None:
            try:
                work()
            except Exception as error:  # noqa: BLE001  whatever it is, the test tells it
                faults.append(error)
                stop.set()

        return run

    def push(seed: int) -> None:
        choice = random.Random(seed)
        for number in takewhile(lambda number: number < 10 or (not made and number < 500), count()):
            text = f"content {seed} {choice.randrange(3)}" if number % 3 else f"content {number}"
            with suppress(CannotWrite, BlobsMissing):
                it = put(parts, text)
                with parts.database.write() as session:  # a row never promises what is not there
                    if content.find_blobs(session, P, [it.sha256], hold=True):
                        assert parts.blobs.holds(it.sha256, it.bytes)
                if number % 2:
                    artifacts.push_one(parts, P, "ninfer", "a.ninfer", it)
                    made.append(it.sha256)

    def tidy() -> None:
        while not stop.is_set():
            collect(parts)
            purge(parts)

    pushers = [threading.Thread(target=guarded(partial(push, seed))) for seed in range(3)]
    tidiers = [threading.Thread(target=guarded(tidy)) for _ in range(2)]
    for thread in (*tidiers, *pushers):
        thread.start()
    for thread in pushers:
        thread.join(60)
    stop.set()
    for thread in tidiers:
        thread.join(60)
    assert faults == []
    collect(parts)
    purge(parts)
    with parts.database.read() as session:
        referred = set(session.scalars(select(ArtifactFile.sha256)))
    assert referred == set(made) == held(parts) == stored(parts)
    assert referred


def test_lookups_use_indexes(sqlite_url: str) -> None:
    from tests.service.records.test_plans import planned

    with closing(Database(sqlite_url)) as database, planned(database) as plans, database.read() as session:
        rows.unreferenced(session, now(), rows.FIRST, 10)
        rows.is_held(session, sha("x"))
    looked, whether = plans
    for index in (
        "ix_artifact_files_project_id_sha256",
        "ix_checkpoint_files_project_id_sha256",
        "ix_conversions_project_id_record",
        "job_contents USING",
    ):
        assert index in looked
    assert "ix_blobs_sha256" in whether
    assert "SCAN artifact" not in looked
