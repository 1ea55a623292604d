"""The pages and the queries that only they use, on SQLite and on PostgreSQL."""

from pathlib import Path

from service.records import answers, runs, views
from service.records.database import Database
from service.records.models import DEFAULT_PROJECT, Conversion, Run
from tests.service.dashboard.app import served
from tests.service.dashboard.rows import tensor_names
from tests.service.dashboard.scene import scene
from tests.service.dashboard.seed import Seed
from tests.service.dashboard.test_pages import PAGES

P = DEFAULT_PROJECT


def test_every_page_is_shown(database_url: str, tmp_path: Path) -> None:
    with served(tmp_path, database_url) as made, made.visitor() as client:
        seeded = scene(Seed(made.parts.database), made.parts.blobs.scratch)
        for name, address in PAGES.items():
            assert (name, client.get(address(seeded)).status_code) == (name, 200)
        for odd in ("%00", "%1a", "%ff", "'", "%25", "%F0%9F%98%80"):
            for path in (f"/?q={odd}", f"/runs/{seeded.failed.id}?name={odd}&format={odd}&object={odd}"):
                assert client.get(path).status_code == 200, path
            assert client.get(f"{PAGES['artifact'](seeded)}?name={odd}&layout={odd}").status_code == 200
            for path in (
                f"/artifacts/{odd}",
                f"/runs/{odd}",
                f"/jobs/{odd}",
                f"/?cursor={odd}",
                f"/runs/{seeded.failed.id}?code={odd}",
            ):
                assert client.get(path).status_code in (400, 404), path
            assert client.get(f"/jobs/events?job={odd}").status_code == 200


def test_the_latest_run_of_each_artifact(database: Database) -> None:
    seed = Seed(database)
    first, second, third = (seed.artifact(f"{name}.ninfer", ["x"]) for name in "abc")
    seed.run(first, "passed")
    latest = seed.run(first, "running")
    only = seed.run(second, "cancelled")
    with database.read() as session:
        found = views.last_runs(session, [first.id, second.id, third.id])
        assert {key: (last.run.id, last.state) for key, last in found.items()} == {
            first.id: (latest.id, "running"),
            second.id: (only.id, "cancelled"),
        }
        assert views.last_runs(session, []) == {}


def test_rows_by_id_stay_within_their_project(database: Database) -> None:
    seed = Seed(database)
    artifact = seed.artifact("a.ninfer", tensor_names(5))
    run, made = seed.run(artifact, "passed"), seed.conversion(artifact)
    checkpoint = made.checkpoints["base"]
    with database.read() as session:
        assert set(views.artifacts(session, P, [artifact.id, "0" * 32])) == {artifact.id}
        assert set(views.jobs(session, P, [run.job_id, made.job_id])) == {run.job_id, made.job_id}
        assert answers.of_jobs(session, Run, P, [run.job_id, made.job_id])[run.job_id].id == run.id
        assert answers.of_jobs(session, Conversion, P, [run.job_id, made.job_id])[made.job_id].id == made.id
        assert set(views.checkpoints(session, P, [checkpoint])) == {checkpoint}
        assert views.recipe_ids(session, P, [made.recipe_digest]) == {
            made.recipe_digest: "qwen3.6-27b/groupwise-int"
        }
        for look, ids in (
            (views.artifacts, [artifact.id]),
            (views.jobs, [run.job_id]),
            (lambda *given: answers.of_jobs(given[0], Run, *given[1:]), [run.job_id]),
            (lambda *given: answers.of_jobs(given[0], Conversion, *given[1:]), [made.job_id]),
            (views.checkpoints, [checkpoint]),
            (views.recipe_ids, [made.recipe_digest]),
        ):
            assert look(session, "another", ids) == {}


def test_what_did_not_pass_is_counted(database: Database) -> None:
    seed = Seed(database)
    artifact = seed.artifact("a.ninfer", tensor_names(9))
    run = seed.run(artifact, "failed", failed=(1, 2), not_checked=(5,))
    with database.read() as session:
        assert runs.counts(session, run.id) == {"failed": 2, "not_checked": 1, "passed": 6}
        assert runs.counts(session, "0" * 32) == {}


def test_how_objects_were_made(database: Database) -> None:
    seed = Seed(database)
    converted, pushed = seed.artifact("a.ninfer", tensor_names(5)), seed.artifact("b.ninfer", tensor_names(5))
    seed.conversion(converted)
    with database.read() as session:
        found = views.made(session, converted.id, [0, 3, 99])
        assert {ordinal: document["clamped_lanes"] for ordinal, document in found.items()} == {0: 0, 3: 3}
        assert views.made(session, pushed.id, [0]) == {}
