"""Work that fails and may pass is tried again, work that takes its worker down is given up, and a deadline ends it."""

import errno
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy.exc import OperationalError

from ninfer_core.errors import CannotRead, CannotWrite
from service.blobs.errors import not_written
from service.queue import job_workflow_id, shard_id
from service.records import attempts, jobs, models
from service.records.types import now
from tests.worker.inside import follow, inside
from tests.worker.material import Material
from tests.worker.rig import PROJECT, Rig, until
from tests.worker.sparse import push_sparse
from worker import retries, sweep
from worker.company import Company
from worker.errors import MayPass
from worker.retries import code_of, may_pass, persistently
from worker.sources import StoredFile
from worker.sweep import Sweep, hand_on
from worker.watch import Cancelled, Draining, Watch


def caused(number: int | None, kind: type[Exception] = CannotRead) -> Exception:
    """As the core and the store raise it."""
    error = kind("cannot read it")
    error.__cause__ = OSError(number, "x") if number is not None else None
    return error


class Away(CannotRead):
    """As a store raises it that does not answer."""

    code = "store_away"
    passing = True


@pytest.mark.parametrize(
    ("error", "passes"),
    [
        (OSError(errno.EIO, "x"), True),
        (OSError(errno.ENOENT, "x"), False),
        (OSError(errno.EACCES, "x"), False),
        (caused(errno.ENOSPC, CannotWrite), True),
        (caused(errno.EMFILE), True),
        (caused(errno.ENOENT), False),
        (caused(None), False),
        (Away("x"), True),
        (MayPass(Away("x")), True),
        (ValueError("x"), False),
    ],
)
def test_what_may_pass(error: Exception, passes: bool) -> None:
    assert may_pass(error) is passes


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (
            OSError(errno.ENOSPC, "No space left on device", "/srv/gate/incoming/x"),
            "OSError: No space left on device",
        ),
        (
            OperationalError("SELECT secret FROM tokens", {"x": "secret"}, Exception("it is away")),
            "OperationalError: it is away",
        ),
        (ValueError("no"), "ValueError: no"),
    ],
)
def test_what_clients_hear_names_no_path_and_no_statement(error: Exception, said: str) -> None:
    assert code_of(error) == ("internal", said)


def test_what_clients_hear_of_a_store_names_no_path() -> None:
    cause = OSError(errno.EACCES, "Permission denied", "/srv/gate/work/x")
    error = not_written(cause, "/srv/gate/work")
    error.__cause__ = cause
    assert "/srv/gate" in str(error)
    assert code_of(error) == ("cannot_write", "cannot store content: Permission denied")


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """A second is a hundredth of one."""
    monkeypatch.setattr(retries, "_FIRST", 0.01)
    monkeypatch.setattr(retries, "_LOOK_SECONDS", 0.005)


@pytest.mark.usefixtures("quick")
def test_it_is_tried_so_many_times_with_longer_and_longer_pauses() -> None:
    told: list[tuple[int, str, float]] = []

    def work() -> None:
        raise Away("no answer")

    with pytest.raises(Away):
        persistently(work, 4, lambda n, code, _, seconds: told.append((n, code, seconds)), lambda: None)
    assert told == [(1, "store_away", 0.01), (2, "store_away", 0.04), (3, "store_away", 0.16)]


class Failing:
    """Reads of stored files fail so many times with what a store says."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, times: int, error: Callable[[], Exception]) -> None:
        self.left = times
        self._lock = threading.Lock()
        read = StoredFile.read_into

        def read_into(file: StoredFile, buffer: Any, offset: int) -> None:
            with self._lock:
                fails, self.left = self.left > 0, self.left - 1
            if fails:
                source = file._source
                file._source = Broken(error())  # type: ignore[assignment]
                try:
                    read(file, buffer, offset)
                finally:
                    file._source = source
            read(file, buffer, offset)

        monkeypatch.setattr(StoredFile, "read_into", read_into)


class Broken:
    """A source that cannot be read."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    def read_into(self, buffer: Any, offset: int) -> None:
        """Raises: what it was made with."""
        raise self._error


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("error", [lambda: Away("no answer"), lambda: caused(errno.EIO)], ids=["away", "eio"])
def test_a_store_that_is_away_for_a_while_changes_no_row(
    alone: Rig, material: Material, monkeypatch: pytest.MonkeyPatch, error: Callable[[], Exception]
) -> None:
    digest = alone.push(material.artifact).digest
    undisturbed, job_id = alone.verify(digest), alone.verify(digest)
    with inside(alone) as context:
        follow(context, undisturbed)
        Failing(monkeypatch, 3, error)
        follow(context, job_id)
    assert alone.rows(job_id) == alone.rows(undisturbed)
    job = alone.row(job_id)
    assert (job.state, job.attempts) == ("passed", 3)
    told = [data for type_, data in alone.said(job_id) if type_ == "retry"]
    assert [data["attempt"] for data in told] == [1, 2, 3]
    assert (
        job.last_error["code"]
        == told[-1]["code"]
        == ("store_away" if error().args == ("no answer",) else "cannot_read")
    )
    with alone.parts.database.read() as session:
        assert {shard.attempts for shard in jobs.shards(session, job_id)} <= {0, 1}


@pytest.mark.usefixtures("quick")
def test_one_that_stays_away_ends_the_job_with_what_it_said(
    alone: Rig, material: Material, monkeypatch: pytest.MonkeyPatch
) -> None:
    job_id = alone.verify(alone.push(material.artifact).digest)
    Failing(monkeypatch, 10**6, lambda: Away("no answer"))
    with inside(alone) as context:
        monkeypatch.setattr(retries, "_LONGEST", 0.02)
        follow(context, job_id)
    job = alone.row(job_id)
    assert (job.state, job.error) == ("error", {"code": "store_away", "detail": "no answer"})
    assert job.attempts == alone.settings.max_attempts - 1


def test_a_bad_file_is_not_tried_again(alone: Rig, material: Material) -> None:
    job_id = alone.verify(alone.push(material.damaged).digest)
    with inside(alone) as context:
        follow(context, job_id)
    assert (alone.row(job_id).state, alone.row(job_id).attempts) == ("failed", 0)


@pytest.mark.parametrize("what", ["cancelled", "draining"])
def test_who_waits_for_the_next_attempt_hears_that_it_is_over(
    alone: Rig, material: Material, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    job_id = alone.verify(alone.push(material.artifact).digest)
    Failing(monkeypatch, 10**6, lambda: Away("no answer"))
    monkeypatch.setattr(retries, "_FIRST", 60.0)
    with inside(alone) as context, watching(context.watch):

        def stop() -> None:
            until("it waits", lambda: alone.row(job_id).attempts == 1)
            if what == "draining":
                context.watch.leave()
                return
            with alone.parts.database.write() as session:
                jobs.request_cancel(session, PROJECT, job_id)

        thread = threading.Thread(target=stop)
        thread.start()
        begin = time.monotonic()
        if what == "draining":
            with pytest.raises(Draining):
                follow(context, job_id)
        else:
            follow(context, job_id)
        thread.join()
    assert time.monotonic() - begin < 5
    assert alone.row(job_id).state == ("running" if what == "draining" else "cancelled")


@contextmanager
def watching(watch: Watch) -> Iterator[None]:
    """With its thread."""
    watch.start()
    try:
        yield
    finally:
        watch.stop()


def test_a_job_out_of_time_is_ended_queued_or_running(alone: Rig, material: Material) -> None:
    digest = alone.push(material.artifact).digest
    ids = [alone.verify(digest) for _ in range(3)]
    with alone.parts.database.write() as session:
        for job_id, seconds in zip(ids, (-1, -1, 3600), strict=True):
            row = session.get_one(models.Job, job_id)
            row.deadline_at = now() + timedelta(seconds=seconds)
        jobs.begin(session, ids[1])
    with inside(alone) as context:
        Sweep(context, Nobody())()
        with pytest.raises(Cancelled):
            context.write(ids[1], lambda session: None)
    states = [(alone.row(job_id).state, (alone.row(job_id).error or {}).get("code")) for job_id in ids]
    assert states == [("error", "deadline_exceeded")] * 2 + [("queued", None)]


def test_jobs_that_wait_for_room_keep_no_other_from_being_put_in_line(
    alone: Rig, material: Material, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of many jobs the sweep looks at some; those without room are none of them, and the others get their turn."""
    monkeypatch.setattr(sweep, "_AT_ONCE", 2)
    digest = alone.push(material.artifact).digest
    ids = [alone.verify(digest) for _ in range(7)]
    with alone.parts.database.write() as session:
        for job_id in ids[:3]:
            session.get_one(models.Job, job_id).admitted_at = None
    heard: list[str] = []
    with inside(alone) as context:
        monkeypatch.setattr(context.queue, "status", dict.fromkeys)
        monkeypatch.setattr(
            sweep.admission, "put_in_line", lambda _, jobs: heard.extend(job.id for job in jobs)
        )
        monkeypatch.setattr(sweep.admission, "admit_waiting", lambda _: None)
        sweeping = Sweep(context, Nobody())
        sweeping()
        assert heard == ids[3:5]
        sweeping()
    assert heard == ids[3:]


class Nobody:
    """An engine that runs nothing, and notes what is handed back."""

    executor_id = "nobody"

    def __init__(self) -> None:
        self.left: set[str] = set()
        self.handed: list[str] = []

    def runs(self, id: str) -> bool:  # noqa: A002  as the port
        """Never."""
        return False

    def hand_back(self, executor_id: str) -> None:
        """Noted."""
        self.handed.append(executor_id)


def test_a_shard_that_takes_its_worker_down_again_and_again_ends_its_job(
    alone: Rig, material: Material
) -> None:
    """The job is told which, how often, and what is known of the last end; and nothing of it is done any more."""
    job_id = alone.convert(alone.checkpoint(material.folder), material.document)
    most = alone.settings.max_attempts
    with inside(alone) as context:

        def begun_before() -> None:
            with alone.parts.database.write() as session:
                for _ in range(most):
                    attempts.begin_shard(session, job_id, 2)
                attempts.lose_shard(session, job_id, 2, 0, "its process is gone (process 7 of worker abc)")

        follow(context, job_id, wait=begun_before)
    job = alone.row(job_id)
    assert job.state == "error"
    assert job.error == {
        "code": "gave_up",
        "detail": f"shard 2 was begun {most} times, and each time its worker ended before it did; "
        "the last time: its process is gone (process 7 of worker abc)",
    }


def test_poison_is_found_by_workers_that_it_kills(alone: Rig, material: Material) -> None:
    """Real processes, killed by us once they have begun its only shard; a job that runs beside it is none the worse."""
    poisoned = alone.verify(push_sparse(alone, 16 << 30))
    deaths = 0
    while deaths < 2:
        worker = alone.start(NINFER_GATE_MAX_ATTEMPTS="2", NINFER_GATE_SHARD_BYTES=str(32 << 30))
        seen = deaths
        until("the shard is begun", lambda: begun(alone, poisoned) > seen, pause=0.005)  # noqa: B023
        worker.kill()
        deaths += 1
    innocent = alone.verify(alone.push(material.artifact).digest)
    alone.start(NINFER_GATE_MAX_ATTEMPTS="2")
    job = alone.finished(poisoned)
    assert job.error is not None
    assert (job.state, job.error["code"]) == ("error", "gave_up")
    assert "shard 0 was begun 2 times" in job.error["detail"]
    assert "its process is gone" in job.error["detail"]
    assert alone.finished(innocent).state == "passed"


def begun(made: Rig, job_id: str) -> int:
    """How often the job's first shard was begun."""
    with made.parts.database.read() as session:
        shard = jobs.shard(session, job_id, 0)
    return 0 if shard is None else shard.attempts


def test_a_job_is_cancelled_within_two_seconds_inside_four_gigabytes(alone: Rig) -> None:
    """One shard of one tensor of four times that, which is looked through; its thread is free soon after, too."""
    worker = alone.start(NINFER_GATE_SHARD_BYTES=str(32 << 30), NINFER_GATE_THREADS="1")
    job_id = alone.verify(push_sparse(alone, 16 << 30))
    until("some is read", lambda: done(alone, job_id) > 200 << 20, pause=0.01)
    begin = time.monotonic()
    with alone.parts.database.write() as session:
        jobs.request_cancel(session, PROJECT, job_id)
    job = alone.finished(job_id)
    assert job.state == "cancelled", worker.text()
    assert time.monotonic() - begin < 2
    assert alone.shards_done(job_id) == 0, "it came too late: nothing was tested"
    until("the thread is free", lambda: alone.queue.executors() == frozenset(), 2)


def done(made: Rig, job_id: str) -> int:
    """Bytes of a job that are read."""
    with made.parts.database.read() as session:
        return jobs.progress(session, job_id).bytes_done


def test_work_that_hangs_keeps_no_cancelled_job_from_ending(alone: Rig, material: Material) -> None:
    """In a read that never comes back, as of a store that hangs."""
    job_id = alone.verify(alone.push(material.artifact).digest)
    with alone.parts.database.write() as session:
        jobs.begin(session, job_id)
        jobs.plan(session, job_id, 0, 0, [])
    watch = Watch(alone.parts.database)
    with watching(watch), watch.ticket(job_id):
        with alone.parts.database.write() as session:
            jobs.request_cancel(session, PROJECT, job_id)
        begin = time.monotonic()
        assert alone.finished(job_id, 3).state == "cancelled"
    assert time.monotonic() - begin < 2


def test_a_worker_that_drains_finishes_what_it_has_begun(alone: Rig) -> None:
    """And begins nothing more: the other shard, whichever that is, is another worker's."""
    worker = alone.start(NINFER_GATE_THREADS="1", NINFER_GATE_SHARD_BYTES=str(1 << 28))
    job_id = alone.verify(push_sparse(alone, 4 << 30))

    def attempts() -> list[int]:
        with alone.parts.database.read() as session:
            return [shard.attempts for shard in jobs.shards(session, job_id)]

    until("one is begun", lambda: sum(attempts()) == 1, pause=0.01)
    begin = time.monotonic()
    worker.send(signal.SIGTERM)
    until("it says so", lambda: [row.draining for row in alone.beats()] == [True], 5, pause=0.0)
    assert worker.wait() == 0, worker.text()
    assert time.monotonic() - begin < 15
    with alone.parts.database.read() as session:
        shards = jobs.shards(session, job_id)
    assert [shard.attempts for shard in shards if not shard.done] == [0] * (
        len(shards) - alone.shards_done(job_id)
    )
    assert 1 <= alone.shards_done(job_id) < len(shards)
    assert '"idle": true' in worker.text()


def test_a_worker_that_has_no_time_to_finish_hands_its_work_back(alone: Rig) -> None:
    worker = alone.start(
        NINFER_GATE_THREADS="1", NINFER_GATE_SHARD_BYTES=str(8 << 30), NINFER_GATE_DRAIN_SECONDS="0.2"
    )
    job_id = alone.verify(push_sparse(alone, 4 << 30))
    until("it is begun", lambda: begun(alone, job_id) == 1, pause=0.01)
    begin = time.monotonic()
    worker.send(signal.SIGTERM)
    assert worker.wait() == 0, worker.text()
    assert time.monotonic() - begin < 5
    assert (alone.row(job_id).state, begun(alone, job_id)) == ("running", 0), (
        "and nobody holds it against the shard"
    )
    assert alone.queue.executors() == frozenset()


def test_the_end_of_a_worker_is_noted_on_what_it_had_begun(alone: Rig, material: Material) -> None:
    job_id = alone.verify(alone.push(material.artifact).digest)
    with inside(alone) as context:
        engine = Nobody()

        def look() -> None:
            with alone.parts.database.write() as session:
                attempts.begin_shard(session, job_id, 0)
            queue: Any = Begun(shard_id(job_id, 0), job_workflow_id(job_id), shard_id(job_id, 1))
            hand_on(replace(context, queue=queue), engine, "dead", "its process is gone")

        follow(context, job_id, wait=look)
    assert engine.handed == ["dead"]
    with alone.parts.database.read() as session:
        found = [shard.last_error for shard in jobs.shards(session, job_id)]
    assert found[0]["code"] == "worker_lost"
    assert found[0]["detail"] == "its process is gone"
    assert found[1:] == [None] * len(found[1:]), "what was claimed and not begun is not under suspicion"


class Begun:
    """A queue that says what a worker had begun."""

    def __init__(self, *ids: str) -> None:
        self._ids = ids

    def begun(self, executor_id: str) -> frozenset[str]:
        """As `Queue.begun`."""
        return frozenset(self._ids)


def test_a_suspect_runs_alone() -> None:
    company, seen, most = Company(), [0], [0]
    lock = threading.Lock()
    alone_with: list[int] = []

    def work(alone: bool) -> None:
        with company.joined(alone, lambda: None):
            with lock:
                seen[0] += 1
                most[0] = max(most[0], seen[0])
            time.sleep(0.02)
            with lock:
                if alone:
                    alone_with.append(seen[0])
                seen[0] -= 1

    threads = [threading.Thread(target=work, args=(number % 5 == 0,)) for number in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert alone_with == [1] * 4
    assert most[0] > 1


def test_who_waits_to_run_alone_can_be_told_to_end() -> None:
    company = Company()

    def leaving() -> None:
        raise Draining

    with company.joined(False, lambda: None):
        with pytest.raises(Draining), company.joined(True, leaving):
            pass
        with company.joined(False, leaving):  # and leaves no trace
            pass


def test_a_step_that_takes_its_worker_down_again_and_again_ends_its_job(
    alone: Rig, material: Material
) -> None:
    """The waiting is no such step: whoever only waits is not blamed."""
    job_id = alone.verify(alone.push(material.artifact).digest)
    recorded = {"begin": {"ended": False}}
    with inside(alone) as context:
        for _ in range(alone.settings.max_attempts - 1):  # the first time of all is not under suspicion
            with pytest.raises(Gone):
                again(context, job_id, recorded, "plan")
    again_and_last = alone.row(job_id)
    assert again_and_last.state == "running"
    with inside(alone) as context:
        again(context, job_id, recorded, None)
    job = alone.row(job_id)
    assert job.error is not None
    assert (job.state, job.error["code"]) == ("error", "gave_up")
    assert "the step `plan`" in job.error["detail"]


class Gone(BaseException):
    """The process ends."""


def again(context: Any, job_id: str, recorded: dict[str, Any], until_step: str | None) -> None:
    """As a worker that is handed the job, and ends once it has begun `until_step`."""
    from worker.workflows.verify import verify

    class Steps:
        def step(self, name: str, work: Callable[[], dict[str, Any]]) -> dict[str, Any]:
            if name in recorded:
                return recorded[name]  # type: ignore[no-any-return]
            answer = work()
            if name == until_step:
                raise Gone
            return answer

    with context.database.write() as session:
        jobs.begin(session, job_id)
    verify(context, Steps(), job_id)
