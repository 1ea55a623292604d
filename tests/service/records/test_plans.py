"""How SQLite looks things up, and what it takes on both: a list must not grow slower with the table."""

import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from sqlalchemy import event

from service.records import (
    attempts,
    campaigns,
    comparisons,
    content,
    gauges,
    identities,
    imports,
    jobs,
    lanes,
    projects,
    provenance,
    reuse,
    runs,
    uploads,
    views,
)
from service.records.database import Database
from service.records.types import now
from tests.service.records.build import P, digest, listed, result, run

MANY = 5_000


@contextmanager
def planned(database: Database) -> Iterator[list[str]]:
    """How SQLite carries out each query of the block."""
    plans: list[str] = []

    @event.listens_for(database.engine, "before_cursor_execute")
    def explain(_: Any, cursor: Any, statement: str, parameters: Any, _context: Any, _many: bool) -> None:
        if statement.startswith("SELECT"):
            rows = cursor.execute(f"EXPLAIN QUERY PLAN {statement}", parameters).fetchall()
            plans.append("; ".join(row[3] for row in rows))

    try:
        yield plans
    finally:
        event.remove(database.engine, "before_cursor_execute", explain)


def worst(session: Any, run_id: str) -> None:
    """Two pages of the worst."""
    page = runs.results(session, run_id, limit=5, order="worst")
    runs.results(session, run_id, limit=5, order="worst", cursor=page.next)


@pytest.mark.parametrize(
    ("look", "index"),
    [
        (lambda s, run_id: jobs.open_jobs(s, 5), "ix_jobs_open"),
        (lambda s, run_id: content.unlisted(s, 5), "ix_artifacts_unlisted"),
        (lambda s, run_id: runs.results(s, run_id, limit=5, outcome="failed"), "ix_results_not_passed"),
        (lambda s, run_id: content.objects(s, "x", limit=5, name="n"), "ix_objects_artifact_id_name_key"),
        (worst, "ix_results_worst"),
        (
            lambda s, run_id: provenance.derived(s, P, {"recipe": "r", "format": "f"}, limit=5),
            "ix_edges_project_id_kind_value_key_artifact_id",
        ),
        (
            lambda s, run_id: provenance.derived(
                s, P, {"recipe": "r", "format": "f"}, basis="verified", limit=5
            ),
            "ix_edges_basis",
        ),
        (lambda s, run_id: comparisons.of_artifact(s, "x", 5), "ix_comparisons_b_artifact_id_id"),
        (
            lambda s, run_id: comparisons.objects(s, "x", limit=5, order="worst"),
            "ix_comparison_objects_worst",
        ),
        (
            lambda s, run_id: identities.occurrences(s, P, digest("t"), limit=5),
            "ix_object_identities_project_id_identity_artifact_id_ordinal",
        ),
        (lambda s, run_id: reuse.found(s, P, [digest("k")]), "ix_results_reusable"),
        (lambda s, run_id: reuse.source_run(s, P, digest("k")), "ix_runs_project_id_source_key_id"),
    ],
    ids=[
        "open jobs",
        "unlisted",
        "not passed",
        "name",
        "worst",
        "come from",
        "proved to come from",
        "compared",
        "worst of a comparison",
        "lies",
        "reusable",
        "sources",
    ],
)
def test_the_index_is_used(sqlite_url: str, look: Callable[[Any, str], object], index: str) -> None:
    database = Database(sqlite_url)
    with database.write() as session:
        made = run(session, 20)
        runs.save_results(session, made.id, [result(n, nmse=n / 7) for n in range(20)])
    with database.read() as session, planned(database) as plans:
        look(session, made.id)
    assert any(index in plan for plan in plans)
    for plan in plans:
        assert not re.search(r"SCAN (?!anon_)\w+(?! USING (?:COVERING )?INDEX)\b", plan), (
            "a whole table is read"
        )
        assert "TEMP B-TREE" not in plan or index == "ix_objects_artifact_id_name_key"  # finds one, or a few
    database.close()


@pytest.mark.parametrize(
    ("look", "index"),
    [
        (lambda s: projects.open_jobs(s, P), "ix_jobs_project_open"),
        (lambda s: imports.open_job(s, P, "s3://bucket/key"), "ix_jobs_project_open"),
        (lambda s: views.tried_again(s, P, 5), "ix_jobs_project_open"),
        (lambda s: lanes.depths(s, P), "ix_jobs_project_open"),
        (lanes.depths, "_open"),
        (lambda s: attempts.overdue(s, 5), "ix_jobs_open"),
        (lambda s: lanes.admitted(s, P), "ix_jobs_admitted"),
        (lambda s: lanes.waits(s, P, "bulk"), "ix_jobs_waiting"),
        (lambda s: campaigns.running(s, 5), "ix_campaigns_open"),
        (lambda s: campaigns.count_open(s, "x"), "ix_jobs_campaign_id_state_id"),
        (gauges.campaigns, "ix_campaigns_open"),
        (lambda s: uploads.page(s, P, limit=5, states=uploads.OPEN), "ix_uploads_open"),
        (lambda s: uploads.open_bytes(s, P), "ix_uploads_open"),
        (lambda s: uploads.storing(s, "tus", 5), "ix_uploads_open"),
        (lambda s: uploads.expired(s, now(), 5), "ix_uploads_open"),
        (lambda s: uploads.page(s, P, limit=5, states=uploads.OPEN, sha256="0" * 64), "ix_uploads_open"),
    ],
    ids=lambda item: item if isinstance(item, str) else "",
)
def test_only_what_is_open_is_read(sqlite_url: str, look: Callable[[Any], object], index: str) -> None:
    """Of rows that are never dropped, or late: such an index has those that are open alone, and few are."""
    database = Database(sqlite_url)
    with database.read() as session, planned(database) as plans:
        look(session)
    database.close()
    assert any(index in plan for plan in plans)
    for plan in plans:
        assert not re.search(r"SCAN \w+(?! USING (?:COVERING )?INDEX)\b", plan), "a whole table is read"


def test_figures(database: Database, record_property: Callable[[str, object], None]) -> None:
    """Not a limit: figures in the report of the tests, and on the screen with `-s`."""
    figures: dict[str, float] = {}

    @contextmanager
    def timed(what: str) -> Iterator[None]:
        begin = time.perf_counter()
        yield
        figures[what] = (time.perf_counter() - begin) * 1e3

    with database.write() as session:
        with timed(f"list {MANY} objects, ms"):
            made = run(session, MANY)
        with timed(f"save {MANY} results, ms"):
            rows = (result(n, nmse=None if n % 7 == 0 else n % 1000 / 1000) for n in range(MANY))
            runs.save_results(session, made.id, rows)
        listed(session, 3, "other")
    with database.read() as session:
        first = runs.results(session, made.id, limit=100, order="worst")
        with timed("next 100 worst, ms"):
            assert (
                len(runs.results(session, made.id, limit=100, order="worst", cursor=first.next).items) == 100
            )
        with timed("last 100 failed by ordinal, ms"):
            runs.results(session, made.id, limit=100, outcome="failed")
        with timed("counts, ms"):
            assert sum(runs.counts(session, made.id).values()) == MANY
    name = database.engine.dialect.name
    for what, figure in figures.items():
        record_property(f"{name}: {what}", round(figure, 2))
        print(f"{name}: {what}: {figure:.2f}")
