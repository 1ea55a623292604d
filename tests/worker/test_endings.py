"""How a job ends: one that is over takes nothing in, and one that cannot go on says why."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from sqlalchemy import update
from sqlalchemy.orm import Session

from service.queue import CONVERT_SHARD, shard_id
from service.records import attempts, jobs, models, workers
from tests.worker.inside import follow, follow_at, inside
from tests.worker.material import Material
from tests.worker.rig import PROJECT, Rig
from worker import plans
from worker.context import Context
from worker.errors import LeftToOthers
from worker.watch import Cancelled
from worker.workflows import convert, shards, verify

WORK = ("verify", "convert")


def ask(rig: Rig, material: Material, what: str) -> str:
    """A new job; its id."""
    checkpoint = rig.checkpoint(material.folder)
    if what == "convert":
        return rig.convert(checkpoint, material.document)
    return rig.verify(rig.push(material.damaged).digest, checkpoint, material.document)


def over(rig: Rig, job_id: str, state: str) -> None:
    """End the job by force."""
    with rig.parts.database.write() as session:
        error = {"code": "internal", "detail": "x"} if state == "error" else None
        assert jobs.finish(session, job_id, state, error=error)


def kept(rig: Rig, job_id: str, what: str) -> tuple[Any, list[Any]]:
    """Verdict of a job, and the rows that hold what came of it."""
    rows = rig.rows(job_id)
    if what == "verify":
        return rows["runs"][0]["verdict"], rows["results"] + rows["findings"]
    return rows["conversions"][0]["verdict"], rows["conversion_objects"] + rows["conversion_findings"]


@pytest.mark.parametrize("state", ["cancelled", "error"])
@pytest.mark.parametrize("what", WORK)
def test_a_job_that_is_over_takes_nothing_in(
    disturbed: Rig, material: Material, monkeypatch: pytest.MonkeyPatch, what: str, state: str
) -> None:
    """It comes to its end between the merge, or the composing, and the first row."""
    module: Any = {"verify": verify, "convert": convert}[what]
    job_id = ask(disturbed, material, what)
    save = module._save

    def late(*arguments: Any) -> None:
        over(disturbed, job_id, state)
        save(*arguments)

    monkeypatch.setattr(module, "_save", late)
    with inside(disturbed) as context:
        follow(context, job_id)
    assert disturbed.row(job_id).state == state
    assert kept(disturbed, job_id, what) == (None, [])
    if what == "convert":
        assert disturbed.row(job_id).artifact_id is None


@pytest.mark.parametrize("what", WORK)
def test_a_job_that_ends_among_the_rows_gets_no_verdict(
    disturbed: Rig, material: Material, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    """It is asked to stop between the last row and the verdict."""
    module: Any = {"verify": verify, "convert": convert}[what]
    name = {"verify": "_head", "convert": "_save_findings"}[what]
    job_id = ask(disturbed, material, what)
    last = getattr(module, name)

    def late(*arguments: Any) -> Any:
        found = last(*arguments)
        with disturbed.parts.database.write() as session:
            jobs.request_cancel(session, PROJECT, job_id)
        return found

    monkeypatch.setattr(module, name, late)
    monkeypatch.setattr(
        verify, "_FEW_ROWS", 0
    )  # few rows are stored together with the verdict, or not at all
    with inside(disturbed) as context:
        follow(context, job_id)
    assert disturbed.row(job_id).state == "cancelled"
    verdict, rows = kept(disturbed, job_id, what)
    assert verdict is None
    assert rows != []


def test_rows_are_made_as_they_are_stored(alone: Rig, material: Material) -> None:
    """Not all before the first is stored: a report may have half a million."""
    job_id = ask(alone, material, "verify")
    made: list[int] = []
    ahead: list[int] = []

    def rows() -> Iterator[models.Result]:
        for number in range(10_000):
            made.append(number)
            yield models.Result(ordinal=number)

    stored = [0]

    def save(_session: Session, batch: list[models.Result]) -> None:
        stored[0] += len(batch)
        ahead.append(len(made) - stored[0])

    with inside(alone) as context:
        context.write_rows(job_id, rows(), save)
    assert stored == [10_000]
    assert len(ahead) >= 5
    assert max(ahead) == 0


@pytest.mark.parametrize(
    ("what", "step"), [("verify", "wait"), ("verify", "merge"), ("convert", "wait"), ("convert", "compose")]
)
def test_a_job_that_another_version_planned_is_begun_anew(
    alone: Rig, material: Material, monkeypatch: pytest.MonkeyPatch, what: str, step: str
) -> None:
    """By a newer one, after whose tasks nothing of the older one is left; its rows are those of a job of its own."""
    job_id, other = ask(alone, material, what), ask(alone, material, what)
    with inside(alone) as context:

        def upgrade() -> None:
            speak_as(monkeypatch, "999.1")
            context.forget(job_id)

        follow(context, job_id, **{step: upgrade})
        job = alone.row(job_id)
        assert (job.state, job.epoch, job.plan, alone.shards_done(job_id)) == ("running", 1, None, 0)
        assert kept(alone, job_id, what) == (None, [])
        assert [type_ for type_, _ in alone.said(job_id)][-1] == "restarted"
        follow(context, job_id)
        follow(context, other)
    rows, alike = alone.rows(job_id), alone.rows(other)
    assert rows["jobs"][0].pop("epoch") == 1
    assert alike["jobs"][0].pop("epoch") == 0
    assert rows == alike
    assert rows["jobs"][0]["planned_by"] == "999.1"
    numbers = [number for number, _, _ in alone.events(job_id)]
    assert numbers == list(range(1, len(numbers) + 1))


def speak_as(monkeypatch: pytest.MonkeyPatch, version: str) -> None:
    """Be another version from now on."""
    monkeypatch.setattr(plans, "__version__", version)
    monkeypatch.setattr(plans, "OURS", plans.version(version))
    monkeypatch.setattr(shards, "__version__", version)


@pytest.mark.parametrize("alive", [True, False], ids=["a newer one alive", "none alive"])
def test_work_that_a_newer_version_planned_is_left_to_it(
    alone: Rig, material: Material, monkeypatch: pytest.MonkeyPatch, alive: bool
) -> None:
    """As long as one is alive: where all were taken back to an older version, that one begins anew."""
    job_id = ask(alone, material, "verify")
    with alone.parts.database.write() as session:
        if alive:
            facts = {"host": "h", "machine": "m", "pid": 1, "started": 1}
            workers.enter(session, "newer", **facts, version="999.1")  # type: ignore[arg-type]

    with inside(alone) as context:

        def downgrade() -> None:
            monkeypatch.undo()
            context.forget(job_id)

        speak_as(monkeypatch, "999.1")
        if alive:
            with pytest.raises(LeftToOthers):
                follow(context, job_id, wait=downgrade)
        else:
            follow(context, job_id, wait=downgrade)
    job = alone.row(job_id)
    assert (job.state, job.epoch) == ("running", 0 if alive else 1)
    assert job.planned_by == ("999.1" if alive else None)


def test_work_of_an_epoch_that_is_over_writes_nothing(alone: Rig, material: Material) -> None:
    job_id = ask(alone, material, "verify")
    with inside(alone) as context:
        with alone.parts.database.write() as session:
            assert attempts.begin_anew(session, job_id, 0, "a test") == 1
        before = alone.rows(job_id), alone.events(job_id)
        late: list[Callable[[], object]] = [
            lambda: context.fail(job_id, "internal", "late"),
            lambda: context.stopped(job_id),
            lambda: context.begin_anew(job_id, "internal", "late"),
            lambda: follow_at(context, job_id, 0),
        ]
        for work in late:
            work()
            assert (alone.rows(job_id), alone.events(job_id)) == before
        with pytest.raises(Cancelled):
            context.write(job_id, lambda session: None)
        follow(context, job_id)
    assert alone.row(job_id).state == "failed"


def test_the_digest_of_a_plan_tells_lists_apart() -> None:
    from ninfer_core.verify.task import Task

    def digest(*sizes: int) -> str:
        tasks: list[Task[[], None]] = [Task(size, lambda: None) for size in sizes]
        return plans.digest(tasks)

    lists = [(), (1,), (1, 1), (11,), (1, 2), (2, 1), (12,)]
    assert len({digest(*sizes) for sizes in lists}) == len(lists)
    assert digest(1, 2) == digest(1, 2)


def test_a_shard_without_its_segment_is_no_artifact_with_a_hole(alone: Rig, material: Material) -> None:
    job_id = ask(alone, material, "convert")

    def lose() -> None:
        with alone.parts.database.write() as session:
            of_one = (models.Shard.job_id == job_id, models.Shard.number == 2)
            session.execute(update(models.Shard).where(*of_one).values(segment=None))

    with inside(alone) as context:
        follow(context, job_id, compose=lose)
    job = alone.row(job_id)
    assert job.error == {
        "code": "segment_missing",
        "detail": "shard 2 is done, but what it wrote is not known",
    }
    assert kept(alone, job_id, "convert") == (None, [])


@pytest.mark.parametrize("step", ["plan", "wait", "compose"])
def test_a_source_that_no_longer_binds_is_a_refusal(alone: Rig, material: Material, step: str) -> None:
    job_id = ask(alone, material, "convert")
    with inside(alone) as context:

        def cut_short() -> None:
            context.forget(job_id)
            for path in (alone.settings.data / "blobs").glob("*/*"):
                if path.stat().st_size > 1 << 20:  # the weights
                    path.chmod(0o644)
                    with path.open("r+b") as file:
                        file.truncate(100)

        follow(context, job_id, **{step: cut_short})
    job = alone.row(job_id)
    assert (job.state, job.error, job.artifact_id) == ("failed", None, None)
    verdict, rows = kept(alone, job_id, "convert")
    assert verdict == "refused"
    assert [row["severity"] for row in rows].count("error") >= 1


def planned(context: Context, job_id: str, then: Callable[[], object]) -> None:
    """Follow the job until its shards would be put in line, do `then`, and let it end there."""

    def stop() -> None:
        then()
        context.stopped(job_id)

    follow(context, job_id, **{"put in line": stop})


def test_a_shard_that_the_engine_forgot_is_put_in_line_again(alone: Rig, material: Material) -> None:
    job_id = ask(alone, material, "convert")
    ids = [shard_id(job_id, number) for number in range(3)]
    with inside(alone) as context:

        def look() -> None:
            assert set(alone.queue.status(ids).values()) == {None}
            assert not shards._given_up(context, CONVERT_SHARD, job_id, [0, 1, 2])
            assert set(alone.queue.status(ids).values()) == {"ENQUEUED"}

        planned(context, job_id, look)
