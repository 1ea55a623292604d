"""Conversions: saved once, found by job and by what they made."""

import pytest

from service.records import conversions, jobs
from service.records.database import Database
from service.records.errors import JobOver
from service.records.models import Conversion, ConversionFinding, ConversionObject
from service.records.types import new_id, now
from tests.service.records.build import HUGE, OTHER, P, conversion, digest, listed, other_project


def test_one_conversion_for_a_job(database: Database) -> None:
    with database.write() as session:
        other_project(session)
        first = conversion(session)
        again = Conversion(
            project_id=P,
            id=new_id(),
            job_id=first.job_id,
            recipe_digest=digest("other"),
            checkpoints={},
            inputs={},
            output={},
            created_at=now(),
        )
        assert conversions.add(session, again).id == first.id
    with database.read() as session:
        assert conversions.conversion(session, P, first.id).recipe_digest == digest("recipe")
        assert conversions.conversion(session, OTHER, first.id) is None
        assert conversions.by_job(session, first.job_id).id == first.id


def test_saved_once(database: Database) -> None:
    with database.write() as session:
        made = listed(session)
        first = conversion(session)
        second = conversion(session)
        assert conversions.by_artifact(session, made.id) is None
    for number in range(2):
        with database.write() as session:
            rows = [
                ConversionObject(ordinal=n, document={"n": number, "big": HUGE}) for n in range(3 + number)
            ]
            conversions.save_objects(session, first.id, rows)
            notes = [
                ConversionFinding(
                    seq=n, code="c", severity="error", check="source", object="o\0", document={"n": number}
                )
                for n in range(2 + number)
            ]
            conversions.save_findings(session, first.id, notes)
            verdict = "refused" if number else "written"
            artifact_id = None if number else made.id
            conversions.save(
                session, first.id, verdict=verdict, document={"n": number}, artifact_id=artifact_id
            )
            conversions.save(session, second.id, verdict="written", document={}, artifact_id=made.id)
    with database.read() as session:
        found = conversions.conversion(session, P, first.id)
        assert (found.verdict, found.document, found.artifact_id) == ("written", {"n": 0}, made.id)
        assert found.finished_at is not None
        assert conversions.by_artifact(session, made.id).id == min(first.id, second.id)
        page = conversions.objects(session, first.id, limit=2)
        rest = conversions.objects(session, first.id, limit=2, cursor=page.next)
        assert [row.document["n"] for row in page.items + rest.items] == [0, 0, 0, 1]
        assert page.items[0].document["big"] == HUGE
        assert rest.next is None
        first_note = conversions.findings(session, first.id, limit=1)
        notes = conversions.findings(session, first.id, limit=9, cursor=first_note.next).items
        assert [row.document["n"] for row in first_note.items + notes] == [0, 0, 1]
        assert len(conversions.findings(session, first.id, limit=9, object="o\0").items) == 3
        assert conversions.findings(session, first.id, limit=9, severity="advisory").items == []


@pytest.mark.parametrize("state", ["cancelled", "error"])
def test_a_job_that_is_over_keeps_no_rows(database: Database, state: str) -> None:
    with database.write() as session:
        made = conversion(session)
        jobs.finish(session, made.job_id, state)
    note = ConversionFinding(seq=0, code="c", severity="error", check="source", object="o", document={})
    for late in (
        lambda session: conversions.save_objects(
            session, made.id, [ConversionObject(ordinal=0, document={})]
        ),
        lambda session: conversions.save_findings(session, made.id, [note]),
        lambda session: conversions.save(session, made.id, verdict="refused", document={}),
    ):
        with pytest.raises(JobOver), database.write() as session:
            late(session)
    with database.read() as session:
        assert conversions.conversion(session, P, made.id).verdict is None
        assert conversions.objects(session, made.id, limit=9).items == []
        assert conversions.findings(session, made.id, limit=9).items == []
