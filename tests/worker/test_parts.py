"""The parts of a worker one by one: heartbeat, watch, sessions, stored files, shards."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from ninfer_core.identity import FileDigest
from ninfer_core.verify.task import Task
from service.blobs import BlobStore
from service.records import jobs, models, workers
from service.records.database import Database
from service.records.types import now
from tests.worker.rig import PROJECT, Rig, new_id, until
from worker.heartbeat import Heartbeat, beats
from worker.processes import Process
from worker.sessions import KEPT, Sessions
from worker.sources import StoredFiles
from worker.watch import Cancelled, Draining, Ticket, Watch
from worker.workflows.shards import cut

ME = Process("here", 1, 2)


def a_job(rig: Rig, state: str = "running") -> models.Job:
    """A job without any work."""
    job = models.Job(
        id=new_id(),
        project_id=PROJECT,
        type="verify",
        state=state,
        request={},
        request_digest="sha256:" + "0" * 64,
        created_at=now(),
        cancel_requested=False,
    )
    with rig.parts.database.write() as session:
        jobs.add(session, job)
    return job


@contextmanager
def watching(database: Database) -> Iterator[Watch]:
    """A watch that asks."""
    watch = Watch(database)
    watch.start()
    try:
        yield watch
    finally:
        watch.stop()


def test_heartbeat_beats_and_leaves_nothing_behind(alone: Rig) -> None:
    lost = threading.Event()
    heart = Heartbeat(alone.parts.database, "one", ME, 0.05, lost.set)
    heart.begin()
    [first] = beats(alone.parts.database)
    assert (first.executor_id, first.process) == ("one", ME)
    until("it beats again", lambda: beats(alone.parts.database)[0].beat_at > first.beat_at)
    assert heart.silence < 5
    heart.stop()
    assert beats(alone.parts.database) == []
    assert not lost.is_set()


def test_a_row_that_a_peer_removed_is_not_written_again(alone: Rig) -> None:
    lost = threading.Event()
    heart = Heartbeat(alone.parts.database, "one", ME, 0.05, lost.set)
    heart.begin()
    with alone.parts.database.write() as session:
        workers.remove(session, "one")
    assert lost.wait(10)
    until("the thread has ended", lambda: not heart.alive)
    assert beats(alone.parts.database) == []


def test_heartbeat_outlasts_a_database_that_is_kept_shut(alone: Rig) -> None:
    lost = threading.Event()
    heart = Heartbeat(alone.parts.database, "one", ME, 0.05, lost.set)
    heart.begin()
    with alone.parts.database.write() as session:
        workers.all(session)
        time.sleep(0.6)
        assert heart.silence > 0.4
    until("it beats again", lambda: heart.silence < 0.3)
    heart.stop()
    assert not lost.is_set()


def test_work_hears_of_a_cancellation_and_of_the_end_of_its_job(alone: Rig) -> None:
    with watching(alone.parts.database) as watch:
        for end in (
            lambda session, job: jobs.request_cancel(session, PROJECT, job.id),
            lambda session, job: jobs.finish(
                session, job.id, "error", error={"code": "internal", "detail": ""}
            ),
        ):
            job = a_job(alone)
            with alone.parts.database.write() as session:
                jobs.begin(session, job.id)
            with watch.ticket(job.id, 0) as ticket:
                ticket.advance(10)
                begin = time.monotonic()
                with alone.parts.database.write() as session:
                    end(session, job)
                with pytest.raises(Cancelled):  # noqa: PT012  it is asked until it answers
                    while time.monotonic() < begin + 10:
                        watch.check()
                        time.sleep(0.01)
                assert time.monotonic() - begin < 2


def test_the_watch_outlasts_whatever_goes_wrong(alone: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    job = a_job(alone)
    ask, failed = Watch._ask, threading.Event()

    def fail_once(self: Watch, tickets: list[Ticket]) -> None:
        if not failed.is_set():
            failed.set()
            raise ValueError("nobody expected this")
        ask(self, tickets)

    monkeypatch.setattr(Watch, "_ask", fail_once)
    with watching(alone.parts.database) as watch, watch.ticket(job.id, 0) as ticket:
        assert failed.wait(10)
        with alone.parts.database.write() as session:
            jobs.finish(session, job.id, "cancelled")
        until("it is seen", lambda: ticket.cancelled)


def test_progress_is_written_now_and_then(alone: Rig) -> None:
    job = a_job(alone)
    shard = models.Shard(number=0, first=0, stop=1, bytes=100, bytes_done=0, objects=1, done=False)
    with alone.parts.database.write() as session:
        jobs.plan(session, job.id, 1, 100, [shard])
    with watching(alone.parts.database) as watch, watch.ticket(job.id, 0) as ticket:
        ticket.advance(30)
        ticket.advance(12)

        def told() -> bool:
            with alone.parts.database.read() as session:
                return jobs.progress(session, job.id).bytes_done == 42

        until("the progress is there", told)


def test_draining_is_no_exception_that_anybody_catches(alone: Rig) -> None:
    watch = Watch(alone.parts.database)
    job = a_job(alone)
    assert not issubclass(Draining, Exception)
    with watch.ticket(job.id, 0) as ticket:
        watch.drain()
        with pytest.raises(Draining):
            ticket.advance(1)
    with pytest.raises(Draining), watch.ticket(job.id, 1):
        pass


class Session:
    """Prepared work that says when it is closed."""

    def __init__(self, weight: int = 1_000_000) -> None:
        self.weight = weight
        self.closed = False

    def close(self) -> None:
        """See `worker.sessions.Session`."""
        assert not self.closed
        self.closed = True


def test_sessions_are_kept_while_used_and_few_beyond() -> None:
    sessions: Sessions[Session] = Sessions()
    made = [Session() for _ in range(KEPT + 2)]
    with sessions.use("first", lambda: made[0]) as first:
        for number, session in enumerate(made[1:], 1):
            with sessions.use(str(number), lambda session=session: session):  # type: ignore[misc]
                pass
        assert first is made[0]
        assert not first.closed
        with sessions.use("first", Session) as again:
            assert again is first
    assert [session.closed for session in made] == [False, True, True, False]
    sessions.forget("first")
    assert made[0].closed


def test_light_sessions_are_kept_in_greater_number() -> None:
    sessions: Sessions[Session] = Sessions()
    made = [Session(10) for _ in range(8)]
    for number, session in enumerate(made):
        with sessions.use(str(number), lambda session=session: session):  # type: ignore[misc]
            pass
    assert not any(session.closed for session in made)


def test_a_session_is_prepared_once_and_anew_after_a_failure() -> None:
    sessions: Sessions[Session] = Sessions()
    calls: list[int] = []

    def prepare() -> Session:
        calls.append(1)
        time.sleep(0.05)
        if len(calls) == 1:
            raise ValueError("not yet")
        return Session()

    with pytest.raises(ValueError, match="not yet"), sessions.use("job", prepare):
        pass
    found: list[Session] = []

    def use() -> None:
        with sessions.use("job", prepare) as session:
            found.append(session)

    threads = [threading.Thread(target=use) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(calls) == 2
    assert len(set(map(id, found))) == 1


def test_a_session_of_a_job_that_ended_is_closed_by_its_last_user() -> None:
    sessions: Sessions[Session] = Sessions()
    session = Session(1)
    with sessions.use("job", lambda: session):
        sessions.forget("job")
        assert not session.closed
    assert session.closed


def test_stored_files_know_what_they_were_stored_as(tmp_path: Path, alone: Rig) -> None:
    store = BlobStore(tmp_path / "store")
    with store.writer() as writer:
        writer.write(b"content")
        digest, size = writer.commit()
    files = StoredFiles(store, {"a.bin": digest}, Watch(alone.parts.database))
    file = files.open("a.bin")
    assert (file.name, file.size, file.changed()) == ("a.bin", 7, None)
    buffer = bytearray(7)
    file.read_into(buffer, 0)
    assert bytes(buffer) == b"content"
    files.compare(FileDigest("a.bin", size, digest))
    assert file.changed() is None
    files.compare(FileDigest("a.bin", size, "0" * 64))
    assert digest in (file.changed() or "")
    files.close()


@pytest.mark.parametrize("last", [None, 50])
def test_shards_cover_tasks_objects_and_bytes(alone: Rig, last: int | None) -> None:
    tasks: list[Task[[], None]] = [Task(size, lambda: None) for size in (5, 100, 0, 20, 20, 20, 3)]
    parts = cut(a_job(alone), tasks, 40, 1_000, last)
    covered = [number for part in parts for number in range(part.first, part.stop)]
    assert covered == list(range(len(tasks)))
    assert [part.number for part in parts] == list(range(len(parts)))
    assert sum(part.objects for part in parts) == 1_000
    assert sum(part.bytes for part in parts) == 168 + (last or 0)
    assert all(part.objects >= 0 for part in parts)


def test_nothing_to_do_is_no_shard(alone: Rig) -> None:
    assert cut(a_job(alone), [], 40, 0) == []
