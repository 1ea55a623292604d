"""Comparisons: saved once, listed in order or the worst first along an index, found by job and by either artifact."""

import re

import pytest

from ninfer_core.compare.comparison import ranks
from service.records import answers, comparisons, jobs
from service.records.database import Database
from service.records.errors import BadCursor, JobOver
from service.records.models import Comparison, ComparisonFinding, ComparisonObject
from service.records.types import new_id, now
from tests.service.records.build import OTHER, P, job, listed, other_project
from tests.service.records.test_plans import planned

STATUSES = ("identical", "changed", "removed", "re-encoded", "unreadable")


def comparison(session, a="a", b="b") -> Comparison:
    """A comparison whose job runs."""
    asked = jobs.add(session, job(type="compare"))
    jobs.begin(session, asked.id)
    row = Comparison(
        id=asked.id,
        project_id=P,
        job_id=asked.id,
        a_artifact_id=listed(session, 1, a).id,
        b_artifact_id=listed(session, 1, b).id,
        created_at=now(),
    )
    return comparisons.add(session, row)


def objects(count: int) -> list[ComparisonObject]:
    """Pairs of every status; some weigh the same."""
    rows = []
    for n in range(count):
        status = STATUSES[n % len(STATUSES)]
        weight = n % 7 / 7 if status in ("changed", "re-encoded") else 0.0
        rank = max(ranks(status)) if weight else min(ranks(status))
        rows.append(ComparisonObject(ordinal=n, status=status, rank=rank, weight=weight, document={"n": n}))
    return rows


def test_one_comparison_for_a_job(database: Database) -> None:
    with database.write() as session:
        other_project(session)
        first = comparison(session)
        again = Comparison(
            id=new_id(),
            project_id=P,
            job_id=first.job_id,
            a_artifact_id=first.b_artifact_id,
            b_artifact_id=first.a_artifact_id,
            created_at=now(),
        )
        assert comparisons.add(session, again).id == first.id
    with database.read() as session:
        assert comparisons.comparison(session, P, first.id).a_artifact_id == first.a_artifact_id
        assert comparisons.comparison(session, OTHER, first.id) is None
        assert comparisons.by_job(session, first.job_id).id == first.id
        assert list(answers.of_jobs(session, Comparison, P, [first.job_id, "x"])) == [first.job_id]
        assert not answers.of_jobs(session, Comparison, OTHER, [first.job_id])


def test_those_of_an_artifact_on_either_side(database: Database) -> None:
    with database.write() as session:
        rows = [comparison(session, a, b) for a, b in ("xy", "yx", "yz", "zz")]
        x, z = rows[0].a_artifact_id, rows[3].a_artifact_id
    newest = sorted((rows[0].id, rows[1].id), reverse=True)
    with database.read() as session:
        assert [row.id for row in comparisons.of_artifact(session, x, 9)] == newest
        assert [row.id for row in comparisons.of_artifact(session, x, 1)] == newest[:1]
        assert len(comparisons.of_artifact(session, z, 9)) == 2


def test_saved_once(database: Database) -> None:
    with database.write() as session:
        made = comparison(session)
    for number in range(2):
        with database.write() as session:
            comparisons.save_objects(session, made.id, objects(3 + number))
            note = {
                "code": "c",
                "severity": "error",
                "check": "structure",
                "object": "o\0",
                "document": {"n": number},
            }
            comparisons.save_findings(session, made.id, [ComparisonFinding(seq=1, **note)])
            comparisons.save(
                session,
                made.id,
                verdict=("different", "identical")[number],
                document={"n": number},
                summary=f"{number}",
            )
    with database.read() as session:
        found = comparisons.comparison(session, P, made.id)
        assert (found.verdict, found.document, found.summary) == ("different", {"n": 0}, "0")
        assert found.finished_at is not None
        assert len(comparisons.objects(session, made.id, limit=9).items) == 4
        assert [row.document for row in comparisons.findings(session, made.id, limit=9).items] == [{"n": 0}]
        assert len(comparisons.findings(session, made.id, limit=9, object="o\0").items) == 1


@pytest.mark.parametrize("status", [None, *STATUSES])
@pytest.mark.parametrize("order", ["ordinal", "worst"])
def test_pages_hold_every_pair_once(database: Database, order: str, status: str | None) -> None:
    rows = objects(60)
    with database.write() as session:
        made, other = comparison(session), comparison(session, "c", "d")
        comparisons.save_objects(session, made.id, rows)
        comparisons.save_objects(session, other.id, objects(5))
    key = (lambda n: n) if order == "ordinal" else (lambda n: (rows[n].rank, -rows[n].weight, n))
    wanted = sorted((n for n in range(60) if status in (None, rows[n].status)), key=key)
    ranked = () if status is None else ranks(status)
    seen, cursor = [], None
    with database.read() as session:
        while True:
            page = comparisons.objects(
                session, made.id, limit=7, cursor=cursor, status=status, ranks=ranked, order=order
            )
            seen += [row.document["n"] for row in page.items]
            cursor = page.next
            if cursor is None:
                break
    assert seen == wanted


def test_cursors_of_another_list_are_refused(database: Database) -> None:
    with database.write() as session:
        made = comparison(session)
        comparisons.save_objects(session, made.id, objects(9))
    with database.read() as session:
        for order, other in (("ordinal", "worst"), ("worst", "ordinal")):
            cursor = comparisons.objects(session, made.id, limit=2, order=order).next
            with pytest.raises(BadCursor):
                comparisons.objects(session, made.id, limit=2, order=other, cursor=cursor)


@pytest.mark.parametrize(
    ("status", "order", "index"),
    [
        (None, "worst", "ix_comparison_objects_worst"),
        ("changed", "worst", "ix_comparison_objects_worst"),
        ("changed", "ordinal", "ix_comparison_objects_comparison_id_status_ordinal"),
    ],
)
def test_the_index_is_used(sqlite_url: str, status: str | None, order: str, index: str) -> None:
    database = Database(sqlite_url)
    with database.write() as session:
        made = comparison(session)
        comparisons.save_objects(session, made.id, objects(60))
    asked = {"status": status, "ranks": () if status is None else ranks(status), "order": order}
    with database.read() as session, planned(database) as plans:
        page = comparisons.objects(session, made.id, limit=5, **asked)
        comparisons.objects(session, made.id, limit=5, cursor=page.next, **asked)
        comparisons.of_artifact(session, made.a_artifact_id, 5)
    assert sum(index in plan for plan in plans) == 2
    for plan in plans:
        assert not re.search(r"SCAN comparison", plan), plan
    assert not any("TEMP B-TREE" in plan for plan in plans if "comparison_objects" in plan)
    database.close()


@pytest.mark.parametrize("state", ["cancelled", "error"])
def test_a_job_that_is_over_keeps_no_rows(database: Database, state: str) -> None:
    with database.write() as session:
        made = comparison(session)
        jobs.finish(session, made.job_id, state)
    for late in (
        lambda session: comparisons.save_objects(session, made.id, objects(1)),
        lambda session: comparisons.save_findings(session, made.id, []),
        lambda session: comparisons.save(session, made.id, verdict="identical", document={}, summary=""),
    ):
        with pytest.raises(JobOver), database.write() as session:
            late(session)


def test_the_last_event_names_it(database: Database) -> None:
    with database.write() as session:
        made = comparison(session)
        comparisons.save(session, made.id, verdict="identical", document={}, summary="")
        jobs.finish(session, made.job_id, "passed")
    with database.read() as session:
        last = jobs.events(session, made.job_id, 0, 99)[-1]
    assert last.data == {"state": "passed", "comparison": made.id, "verdict": "identical"}
