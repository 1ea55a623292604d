"""Streams that wait for news of jobs: one look for all of them, and none that misses anything."""

import asyncio
from collections.abc import Collection, Mapping

import pytest

from service import hearing
from service.hearing import Hearing
from service.records import events, jobs
from service.records.database import Database
from tests.service.records.build import job


class Told:
    """What a look tells, and which looks there were."""

    def __init__(self) -> None:
        self.jobs: dict[str, tuple[int, bool]] = {}
        self.looks: list[frozenset[str]] = []

    def __call__(self, job_ids: Collection[str]) -> Mapping[str, tuple[int, bool]]:
        self.looks.append(frozenset(job_ids))
        return {job_id: self.jobs[job_id] for job_id in job_ids if job_id in self.jobs}


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hearing, "LOOK_SECONDS", 0.02)


def test_one_look_for_all_who_wait() -> None:
    told = Told()
    told.jobs = {f"job {number}": (number, False) for number in range(50)}

    async def run() -> list[bool]:
        heard = Hearing(told)
        return await asyncio.gather(
            *(heard.news(f"job {number}", 25, 0.3) for number in range(50) for _ in range(2))
        )

    news = asyncio.run(run())
    # The 25th event was heard before: those behind it are news, the others are not.
    assert news == [number > 25 for number in range(50) for _ in range(2)]
    assert told.looks[0] == frozenset(told.jobs)
    assert len(told.looks) < 50
    assert all(len(look) == 26 for look in told.looks[1:])


def test_what_comes_later_an_end_and_a_job_that_is_gone_are_news() -> None:
    told = Told()
    told.jobs = {"a": (3, False), "b": (3, False)}

    async def run() -> list[bool]:
        heard = Hearing(told)
        waiting = [asyncio.create_task(heard.news(name, 3, 30)) for name in ("a", "b", "gone")]
        await asyncio.sleep(0.1)
        assert [task.done() for task in waiting] == [False, False, True]
        told.jobs |= {"a": (4, False), "b": (3, True)}
        return await asyncio.gather(*waiting)

    assert asyncio.run(run()) == [True, True, True]


def test_it_rests_when_nobody_waits_and_begins_again() -> None:
    told = Told()
    told.jobs = {"a": (1, False)}

    async def run() -> None:
        heard = Hearing(told)
        for _ in range(2):
            assert not await heard.news("a", 1, 0.05)
            await asyncio.sleep(0.05)
            looks = len(told.looks)
            await asyncio.sleep(0.1)
            assert len(told.looks) == looks > 0
            told.looks.clear()

    asyncio.run(run())


def test_a_look_that_fails_lets_everybody_look() -> None:
    def away(_job_ids: Collection[str]) -> Mapping[str, tuple[int, bool]]:
        raise OSError("away")

    async def run() -> bool:
        return await Hearing(away).news("a", 1, 30)

    assert asyncio.run(run())


def test_how_far_jobs_are(database: Database) -> None:
    with database.write() as session:
        first, second = (jobs.add(session, job()) for _ in range(2))
        jobs.begin(session, second.id)
        jobs.finish(session, second.id, "cancelled")
    with database.read() as session:
        found = events.reached(session, [first.id, second.id, "nobody"])
    assert found == {first.id: (1, False), second.id: (3, True)}
