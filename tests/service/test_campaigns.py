"""Campaigns: each artifact that the query finds gets one job, however many workers look, and whoever dies in between."""

from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select, update

from service import campaigning, campaigns
from service import jobs as service_jobs
from service.blobs import BlobStore
from service.campaigns import CampaignView, Query, Start
from service.errors import (
    CampaignNotFound,
    CampaignRunning,
    CheckUnknown,
    InvalidRequest,
    ReferenceUnknown,
    ServiceError,
)
from service.job_requests import Verify
from service.parts import Parts
from service.records import audit, content, jobs, provenance, runs
from service.records import campaigns as rows
from service.records.database import Database
from service.records.models import Artifact, Job, Project, Run
from service.records.provenance import Fact
from service.records.types import first_id, new_id, now
from service.settings import Settings
from tests.service.api.world import Remembering
from tests.service.records.build import P, artifact, at_once, files, other_project

ASKED = Verify("", checks=("structure",), full=True)
WINDOW = 4


def made_of(database: Database, url: str, folder: Path) -> Parts:
    """A service over a database."""
    settings = Settings(data=folder, database_url=url, campaign_window=WINDOW)
    return Parts(settings, database, BlobStore(folder), Remembering())


@pytest.fixture
def both(database: Database, database_url: str, tmp_path: Path) -> Parts:
    """A service on each database."""
    return made_of(database, database_url, tmp_path)


@pytest.fixture
def parts(sqlite_url: str, tmp_path: Path) -> Iterator[Parts]:
    """A service on SQLite."""
    with closing(Database(sqlite_url)) as database:
        yield made_of(database, sqlite_url, tmp_path)


def hold(
    parts: Parts, name: str, *facts: Fact, verified_days_ago: float | None = None, **changes: Any
) -> str:
    """An artifact and what is known of it; its digest."""
    with parts.database.write() as session:
        stored, _ = content.add_artifact(session, artifact(name, **changes), files(name))
        provenance.save(session, stored, "claimed", stored.id, facts)
        if verified_days_ago is not None:
            made = jobs.add(
                session,
                Job(
                    id=new_id(),
                    project_id=stored.project_id,
                    type="verify",
                    state="queued",
                    request={"type": "verify"},
                    request_digest="sha256:" + "0" * 64,
                    artifact_id=stored.id,
                    created_at=now(),
                ),
            )
            facts_of = {"project_id": stored.project_id, "job_id": made.id, "artifact_id": stored.id}
            runs.add(session, Run(id=new_id(), **facts_of, checks=[], created_at=now()))
            jobs.finish(session, made.id, "passed")
            ended = now() - timedelta(days=verified_days_ago)
            session.execute(
                update(Run).where(Run.job_id == made.id).values(verdict="passed", finished_at=ended)
            )
    return stored.digest


def many(parts: Parts, count: int) -> list[str]:
    """So many artifacts, in order: each of its own millisecond, for ids of one have no order."""
    first = now() - timedelta(seconds=1)
    moments = [first + timedelta(milliseconds=number) for number in range(count)]
    return [
        hold(parts, f"artifact {number}", id=first_id(moment) + "0" * 20, created_at=moment)
        for number, moment in enumerate(moments)
    ]


def begin(parts: Parts, name: str = "monthly", query: Query | None = None, **more: Any) -> CampaignView:
    """A campaign by its name."""
    return campaigns.begin(parts, P, Start(name, query or Query(), ASKED, **more), "token t")


def made(parts: Parts, view: CampaignView) -> list[str]:
    """Digests of the artifacts that got a job, in order; twice where they got two."""
    with parts.database.read() as session:
        query = select(Artifact.digest).join(Job, Job.artifact_id == Artifact.id)
        return list(
            session.scalars(query.where(Job.campaign_id == view.campaign.id).order_by(Job.created_at))
        )


def end_jobs(parts: Parts, view: CampaignView, state: str = "passed", limit: int = 100) -> int:
    """Let some of its open jobs end."""
    with parts.database.write() as session:
        some = rows.open_jobs(session, view.campaign.id, limit)
        for job in some:
            jobs.begin(session, job.id)
            jobs.finish(session, job.id, state)
    return len(some)


def look(parts: Parts, view: CampaignView) -> CampaignView:
    """The campaign as it is now."""
    return campaigns.view(parts, P, view.campaign.id)


RECIPE = "sha256:" + "1" * 64
QUERIES: dict[str, tuple[Query, set[str]]] = {
    "all": (Query(), {"plain", "old", "tensors", "fp32", "both", "verified", "long ago", "made"}),
    "kind": (Query(kind="safetensors"), {"tensors"}),
    "origin": (Query(origin="converted"), {"made"}),
    "format": (Query({"format": "FP32"}), {"fp32", "both"}),
    "format and recipe": (Query({"format": "FP32", "recipe": RECIPE}), {"both"}),
    "format and kind": (Query({"format": "FP32"}, kind="safetensors"), set()),
    "another basis": (Query({"format": "FP32"}, basis="verified"), set()),
    "age": (Query(older_than_days=30), {"old"}),
    "not verified": (
        Query(not_verified_for_days=7),
        {"plain", "old", "tensors", "fp32", "both", "long ago", "made"},
    ),
    "not verified and format": (Query({"format": "FP32"}, not_verified_for_days=0), {"fp32", "both"}),
}


def test_a_query_finds_what_it_says(both: Parts) -> None:
    parts = both
    old = now() - timedelta(days=40)
    names = {
        hold(parts, "old", id=first_id(old) + "0" * 20, created_at=old): "old",
        hold(parts, "plain"): "plain",
        hold(parts, "tensors", kind="safetensors"): "tensors",
        hold(parts, "fp32", Fact("format", "FP32"), Fact("format", "BF16")): "fp32",
        hold(parts, "both", Fact("format", "FP32"), Fact("recipe", RECIPE)): "both",
        hold(parts, "verified", verified_days_ago=1): "verified",
        hold(parts, "long ago", verified_days_ago=8): "long ago",
        hold(parts, "made", origin="converted"): "made",
    }
    with parts.database.write() as session:
        other = other_project(session)
    hold(parts, "another project's", Fact("format", "FP32"), project_id=other)
    for name, (query, wanted) in QUERIES.items():
        selection = query.selection(P, new_id(), now())
        with parts.database.read() as session:
            found = rows.found(session, selection, "", 100)
            assert {names[digest] for _, digest in found} == wanted, name
            assert [id_ for id_, _ in found] == sorted(id_ for id_, _ in found), name
            paged = rows.found(session, selection, "", 1)
            while paged and (more := rows.found(session, selection, paged[-1][0], 1)):
                paged += more
            assert paged == found, name
        assert campaigns.preview(parts, P, Start("n", query, ASKED)) == len(wanted), name


def test_a_few_at_a_time_each_once_and_then_it_is_done(both: Parts) -> None:
    parts = both
    wanted = many(parts, 10)
    view = begin(parts)
    assert (view.campaign.total, view.campaign.state) == (10, "running")
    hold(parts, "came later")
    rounds = 0
    while look(parts, view).campaign.state == "running":
        campaigning.advance(parts)
        campaigning.advance(parts)
        counts = look(parts, view).counts
        assert counts.get("queued", 0) <= WINDOW
        end_jobs(parts, view, "failed" if rounds == 1 else "passed", 3)
        rounds += 1
        assert rounds < 20
    assert made(parts, view) == wanted
    done = look(parts, view)
    assert done.counts == {"passed": 7, "failed": 3}
    assert (done.campaign.selected, done.campaign.refused, done.campaign.finished_at is not None) == (
        10,
        0,
        True,
    )
    with parts.database.read() as session:
        some = session.scalars(select(Job).where(Job.campaign_id == view.campaign.id)).all()
        assert {(job.lane, job.created_by, job.request["full"]) for job in some} == {
            ("bulk", "token t", True)
        }
        assert [row.action for row in audit.entries(session, P, limit=9).items] == ["campaign.started"]


def test_workers_that_look_at_once_make_no_job_twice(both: Parts) -> None:
    parts = both
    wanted = many(parts, 8)
    view = begin(parts)
    for _ in range(8):
        at_once(*[lambda: campaigning.advance(parts)] * 3)
        assert look(parts, view).counts.get("queued", 0) <= WINDOW
        end_jobs(parts, view)
    assert made(parts, view) == wanted
    assert look(parts, view).campaign.selected == 8
    assert look(parts, view).campaign.state == "done"


class Killed(BaseException):
    """The worker is gone."""


@pytest.mark.parametrize("survived", [0, 1, 2])
def test_a_kill_between_the_job_and_the_row_makes_no_second_job(
    parts: Parts, monkeypatch: pytest.MonkeyPatch, survived: int
) -> None:
    wanted = many(parts, 3)
    view = begin(parts)
    move, calls = rows.move, count()

    def die(*given: Any) -> bool:
        if next(calls) == survived:
            raise Killed
        return move(*given)

    with monkeypatch.context() as patch:
        patch.setattr(rows, "move", die)
        with pytest.raises(Killed):
            campaigning.advance(parts)
    assert made(parts, view) == wanted[: survived + 1]
    assert look(parts, view).campaign.selected == survived
    campaigning.advance(parts)
    assert made(parts, view) == wanted
    assert look(parts, view).campaign.selected == 3


def test_a_cancelled_campaign_makes_no_job_and_leaves_none_open(
    parts: Parts, monkeypatch: pytest.MonkeyPatch
) -> None:
    many(parts, 10)
    view = begin(parts)
    campaigning.advance(parts)
    with parts.database.write() as session:
        running = rows.open_jobs(session, view.campaign.id, 1)[0]
        jobs.begin(session, running.id)
    cancelled = campaigns.cancel(parts, P, view.campaign.id, "token t")
    assert (cancelled.campaign.state, dict(cancelled.counts)) == ("cancelled", {"cancelled": 3, "running": 1})
    with parts.database.read() as session:
        told = jobs.get(session, running.id)
        assert told is not None
        assert told.cancel_requested
        assert [row.action for row in audit.entries(session, P, limit=1).items] == ["campaign.cancelled"]
    campaigning.advance(parts)
    assert len(made(parts, view)) == 4
    assert campaigns.cancel(parts, P, view.campaign.id, "token t").campaign.state == "cancelled"

    # A worker that was just making a job when that was said: it is cancelled the next time somebody looks.
    late = begin(parts, "late")
    ask = campaigning._ask

    def and_cancel(*given: Any) -> Any:
        answer = ask(*given)
        with parts.database.write() as session:
            rows.end(session, late.campaign.id, "cancelled")
        return answer

    with monkeypatch.context() as patch:
        patch.setattr(campaigning, "_ask", and_cancel)
        campaigning.advance(parts)
    assert look(parts, late).counts == {"queued": 1}
    campaigning.advance(parts)
    assert look(parts, late).counts == {"cancelled": 1}
    assert look(parts, late).campaign.selected == 0


def test_an_artifact_that_cannot_be_asked_is_counted_and_passed_over(
    parts: Parts, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = many(parts, 3)
    view = begin(parts)
    create: Any = service_jobs.create

    def refuse(parts: Parts, project_id: str, request: Verify, *given: Any, **more: Any) -> Any:
        if request.artifact == wanted[1]:
            raise ReferenceUnknown("T")
        return create(parts, project_id, request, *given, **more)

    with monkeypatch.context() as patch:
        patch.setattr(service_jobs, "create", refuse)
        campaigning.advance(parts)
    assert made(parts, view) == [wanted[0], wanted[2]]
    found = look(parts, view).campaign
    assert (found.selected, found.refused) == (2, 1)
    assert found.last_refusal == {"artifact": wanted[1], "code": "reference_unknown", "detail": "T"}


def test_the_same_name_and_body_again_is_the_same_campaign(parts: Parts) -> None:
    many(parts, 1)
    first = begin(parts)
    assert begin(parts).campaign.id == first.campaign.id
    with pytest.raises(CampaignRunning):
        begin(parts, query=Query(kind="ninfer"))
    with pytest.raises(CampaignRunning):
        begin(parts, priority=1)
    started = at_once(*[lambda: begin(parts, "at once").campaign.id] * 4)
    assert len(set(started)) == 1
    campaigns.cancel(parts, P, first.campaign.id, "t")
    assert begin(parts, query=Query(kind="ninfer")).campaign.id != first.campaign.id


def test_what_no_artifact_could_be_asked_is_refused_at_its_place(parts: Parts) -> None:
    many(parts, 1)
    cases: list[tuple[Start, type[ServiceError], str]] = [
        (Start("n", Query(), replace(ASKED, checks=("nothing",))), CheckUnknown, "$.verify.checks[0]"),
        (Start("n", Query(), replace(ASKED, recipe="nothing")), ReferenceUnknown, "$.verify.recipe"),
        (Start("n", Query({"format": "Q4_K"}), ASKED), InvalidRequest, "$.query.format"),
    ]
    for start, error, path in cases:
        works: list[Callable[[Start], object]] = [
            lambda start: campaigns.preview(parts, P, start),
            lambda start: campaigns.begin(parts, P, start, "t"),
        ]
        for work in works:
            with pytest.raises(error) as refused:
                work(start)
            assert [(fault.place, fault.path) for fault in refused.value.faults] == [("body", path)]
    assert campaigns.page(parts, P, limit=9, cursor=None).items == []


def test_a_deleted_project_is_not_moved_on_and_another_one_sees_nothing(parts: Parts) -> None:
    many(parts, 3)
    view = begin(parts)
    with parts.database.write() as session:
        other = other_project(session)
    calls: list[Callable[[], object]] = [
        lambda: campaigns.view(parts, other, view.campaign.id),
        lambda: campaigns.cancel(parts, other, view.campaign.id, "t"),
        lambda: campaigns.jobs_of(parts, other, view.campaign.id, limit=1, cursor=None),
    ]
    for call in calls:
        with pytest.raises(CampaignNotFound):
            call()
    assert campaigns.page(parts, other, limit=9, cursor=None).items == []
    with parts.database.write() as session:
        session.execute(update(Project).where(Project.id == P).values(deleted_at=now()))
    campaigning.advance(parts)
    assert made(parts, view) == []


def test_pages_of_campaigns_and_of_their_jobs(parts: Parts) -> None:
    many(parts, 3)
    first, second = begin(parts, "first"), begin(parts, "second")
    campaigning.advance(parts)
    page = campaigns.page(parts, P, limit=1, cursor=None)
    assert [item.campaign.id for item in page.items] == [second.campaign.id]
    page = campaigns.page(parts, P, limit=1, cursor=page.next)
    assert ([item.campaign.id for item in page.items], page.next) == ([first.campaign.id], None)
    end_jobs(parts, first, "failed", 1)
    failed = campaigns.jobs_of(parts, P, first.campaign.id, limit=9, cursor=None, state="failed").items
    assert len(failed) == 1
    listed, cursor = [], None
    while True:
        some = campaigns.jobs_of(parts, P, first.campaign.id, limit=2, cursor=cursor)
        listed += [item.artifact for item in some.items]
        cursor = some.next
        if cursor is None:
            break
    assert listed == made(parts, first)[::-1]
