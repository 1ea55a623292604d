"""Runs: saved once, read in pages of either order."""

from typing import Any

import pytest
from sqlalchemy.exc import NoResultFound

from service.records import jobs, runs
from service.records.database import Database
from service.records.errors import BadCursor, JobOver
from service.records.models import Run
from service.records.runs import Order
from service.records.types import new_id, now
from tests.service.records.build import HOSTILE, HUGE, OTHER, P, digest, finding, other_project, result, run

SAVED: dict[str, Any] = {"verdict": "failed", "report_head": {"bytes": HUGE}, "errors": 3, "advisories": 1}


def pages(
    database: Database, run_id: str, limit: int, order: Order, **wanted: Any
) -> list[tuple[int, float | None]]:
    """Ordinal and NMSE of every row, page by page, each page in a session of its own."""
    seen: list[tuple[int, float | None]] = []
    cursor = None
    while True:
        with database.read() as session:
            page = runs.results(session, run_id, limit=limit, cursor=cursor, order=order, **wanted)
        assert len(page.items) == limit or page.next is None
        assert all(object_.ordinal == found.ordinal for object_, found in page.items)
        seen += [(found.ordinal, found.nmse) for _, found in page.items]
        cursor = page.next
        if cursor is None:
            return seen


def worst_first(rows: list[tuple[int, float | None]]) -> list[tuple[int, float | None]]:
    """The order that `worst` promises."""
    return sorted(rows, key=lambda row: (row[1] is None, -(row[1] or 0.0), row[0]))


def test_one_run_for_a_job(database: Database) -> None:
    with database.write() as session:
        other_project(session)
        first = run(session)
        again = Run(
            project_id=P,
            id=new_id(),
            job_id=first.job_id,
            artifact_id=first.artifact_id,
            checks=[],
            created_at=now(),
        )
        assert runs.add(session, again).id == first.id
    with database.read() as session:
        assert runs.run(session, P, first.id).checks == ["structure", "values"]
        assert runs.run(session, OTHER, first.id) is None
        assert runs.by_job(session, first.job_id).id == first.id
        assert runs.by_job(session, "0" * 32) is None


def test_saved_once(database: Database) -> None:
    with database.write() as session:
        made = run(session, 5)
    for number, changes in enumerate(({}, {"verdict": "passed", "report_head": {}, "errors": 0})):
        with database.write() as session:
            runs.save_results(session, made.id, [result(n, nmse=number / 2) for n in range(3 + number)])
            runs.save_findings(
                session, made.id, [finding(n, code=f"values.{number}") for n in range(2 + number)]
            )
            runs.save(session, made.id, **SAVED | changes)
    with database.read() as session:
        found = runs.run(session, P, made.id)
        assert (found.verdict, found.report, found.errors, found.advisories) == (
            "failed",
            {"bytes": HUGE},
            3,
            1,
        )
        assert found.finished_at is not None
        rows = runs.results(session, made.id, limit=9).items
        assert [row.nmse for _, row in rows] == [0.0, 0.0, 0.0, 0.5]
        assert rows[0][1].metrics == {"groups": HUGE}
        assert rows[0][0].entry["bytes"] == HUGE
        codes = [row.code for row in runs.findings(session, made.id, limit=9).items]
        assert codes == ["values.0", "values.0", "values.1"]
        assert runs.counts(session, made.id) == {"failed": 2, "passed": 2}
        assert runs.counts(session, "0" * 32) == {}


@pytest.mark.parametrize("state", ["cancelled", "error"])
def test_a_job_that_is_over_keeps_no_results(database: Database, state: str) -> None:
    with database.write() as session:
        made = run(session, 5)
        jobs.finish(session, made.job_id, state)
    for late in (
        lambda session: runs.save_results(session, made.id, [result(0)]),
        lambda session: runs.save_findings(session, made.id, [finding(0)]),
        lambda session: runs.save(session, made.id, **SAVED),
    ):
        with pytest.raises(JobOver), database.write() as session:
            late(session)
    with database.read() as session:
        found = runs.run(session, P, made.id)
        assert (found.verdict, found.report) == (None, None)
        assert runs.results(session, made.id, limit=9).items == []
        assert runs.findings(session, made.id, limit=9).items == []


def test_nobodys_results_are_refused(database: Database) -> None:
    with pytest.raises(NoResultFound), database.write() as session:
        runs.save_results(session, "0" * 32, [result(0)])
    with pytest.raises(NoResultFound), database.write() as session:
        runs.save(session, "0" * 32, **SAVED)


def test_lists(database: Database) -> None:
    with database.write() as session:
        made = [run(session) for _ in range(5)]
        runs.save(session, made[1].id, **SAVED)
    newest = sorted((one.id for one in made), reverse=True)
    with database.read() as session:
        page = runs.runs(session, P, limit=3)
        rest = runs.runs(session, P, limit=3, cursor=page.next)
        assert [row.id for row in page.items + rest.items] == newest
        assert runs.runs(session, "nobody", limit=3).items == []
        assert [row.id for row in runs.runs(session, P, limit=3, verdict="failed").items] == [made[1].id]
        one = runs.runs(session, P, limit=3, artifact_id=made[2].artifact_id)
        assert [row.id for row in one.items] == [made[2].id]


@pytest.mark.parametrize("limit", [1, 4, 7, 100])
@pytest.mark.parametrize("order", ["ordinal", "worst"])
def test_pages_of_both_orders(database: Database, order: Order, limit: int) -> None:
    # Ties, nothing known, the smallest and the largest number, and neighbours.
    values = [0.5, None, 0.0, 5e-324, 0.1, 0.1 + 2**-55, 1e308, None, 0.0, 0.5]
    rows = [(n, values[n % len(values)]) for n in range(28)]
    with database.write() as session:
        made = run(session, len(rows))
        runs.save_results(session, made.id, [result(n, nmse=nmse) for n, nmse in rows])
        other = run(session, 3)
        runs.save_results(session, other.id, [result(n, nmse=9.0) for n in range(3)])
    expected = rows if order == "ordinal" else worst_first(rows)
    assert pages(database, made.id, limit, order) == expected
    failed = [row for row in expected if row[0] % 3 == 0]
    assert pages(database, made.id, limit, order, outcome="failed") == failed
    passed = [row for row in expected if row[0] % 3]
    assert pages(database, made.id, limit, order, outcome="passed") == passed
    grouped = [row for row in passed if row[0] % 2]
    assert pages(database, made.id, limit, order, format="Q4G64_F16S", kind="tensor") == grouped
    name = "model.layers.9.weight"
    assert pages(database, made.id, limit, order, name=name) == [rows[9]]
    assert pages(database, made.id, limit, order, outcome="\0") == []


@pytest.mark.parametrize("order", ["ordinal", "worst"])
def test_pages_while_rows_come(database: Database, order: Order) -> None:
    with database.write() as session:
        made = run(session, 60)
        runs.save_results(session, made.id, [result(n, nmse=1 / (1 + n % 5)) for n in range(0, 60, 2)])
    seen: list[int] = []
    cursor = None
    added = iter(range(1, 60, 2))
    while True:
        with database.write() as session:
            page = runs.results(session, made.id, limit=4, cursor=cursor, order=order)
            number = next(added)
            runs.save_results(session, made.id, [result(number, nmse=None if number % 3 else 2.0)])
        seen += [found.ordinal for _, found in page.items]
        cursor = page.next
        if cursor is None:
            break
    assert len(seen) == len(set(seen))
    assert set(range(0, 60, 2)) <= set(seen)


def test_a_cursor_belongs_to_its_order(database: Database) -> None:
    with database.write() as session:
        made = run(session, 9)
        runs.save_results(session, made.id, [result(n) for n in range(9)])
        orders: tuple[Order, Order] = ("ordinal", "worst")
        cursors = [runs.results(session, made.id, limit=2, order=order).next for order in orders]
        for order, cursor in zip(orders, reversed(cursors), strict=True):
            with pytest.raises(BadCursor):
                runs.results(session, made.id, limit=2, order=order, cursor=cursor)


def test_findings(database: Database) -> None:
    with database.write() as session:
        made = run(session)
        rows = [finding(n, object=name) for n, name in enumerate(HOSTILE.values())]
        count = len(rows)
        rows.append(finding(count, object=None, severity="advisory", check="structure", code="structure.x"))
        runs.save_findings(session, made.id, rows)
    with database.read() as session:

        def found(**wanted: str) -> list[int]:
            return [row.seq for row in runs.findings(session, made.id, limit=99, **wanted).items]

        assert found() == list(range(count + 1))
        for number, name in enumerate(HOSTILE.values()):
            assert found(object=name) == [number]
        assert found(severity="advisory") == found(check="structure") == found(code="structure.x") == [count]
        assert found(severity="error", check="structure") == found(code="\0") == found(object="absent") == []
        page = runs.findings(session, made.id, limit=count)
        assert [row.seq for row in runs.findings(session, made.id, limit=9, cursor=page.next).items] == [
            count
        ]
        assert page.items[0].document == {"code": "values.scale_not_finite", "count": HUGE}
        assert page.items[0].project_id == P


def test_a_run_keeps_what_it_was_asked(database: Database) -> None:
    with database.write() as session:
        made = run(session, recipe_digest=digest("r"), checkpoints={"base": "x"})
    with database.read() as session:
        found = runs.run(session, P, made.id)
        assert (found.recipe_digest, found.checkpoints, found.verdict) == (digest("r"), {"base": "x"}, None)
