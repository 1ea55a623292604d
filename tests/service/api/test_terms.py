"""How a job stands in line: lane, priority, deadline, and whose it is."""

from datetime import datetime, timedelta
from typing import Any

import pytest

from service.api import examples
from service.records.models import DEFAULT_PROJECT, Project
from tests.service.api.world import World


def start(api: World, key: str | None = None, **terms: Any) -> Any:
    """The answer to a request for a verification."""
    headers = {} if key is None else {"Idempotency-Key": key}
    body = {"type": "verify", "artifact": examples.CONTENT_DIGEST, **terms}
    return api.call("POST", "/v1/jobs", json=body, headers=headers)


def test_a_person_waits_unless_it_is_said_otherwise(api: World) -> None:
    job = start(api).json()
    assert (job["lane"], job["priority"], job["deadline_at"]) == ("interactive", 0, None)
    assert (job["attempts"], job["last_error"], job["campaign"]) == (0, None, None)
    assert job["created_by"]
    assert api.queue.lines[job["id"]] == ("interactive", 0)


def test_terms_are_kept_and_told_to_the_engine(api: World) -> None:
    job = start(api, lane="bulk", priority=-7, deadline_seconds=60).json()
    assert (job["lane"], job["priority"]) == ("bulk", -7)
    late = datetime.fromisoformat(job["deadline_at"]) - datetime.fromisoformat(job["created_at"])
    assert late == timedelta(seconds=60)
    assert api.queue.lines[job["id"]] == ("bulk", -7)
    assert api.call("GET", job["links"]["self"]).json()["lane"] == "bulk"
    others = (
        {"type": "selfcheck"},
        {"type": "compare", "a": examples.CONTENT_DIGEST, "b": examples.CONTENT_DIGEST},
    )
    for body in others:
        told = api.call("POST", "/v1/jobs", json={**body, "lane": "bulk", "priority": 100}).json()
        assert (told["lane"], told["priority"]) == ("bulk", 100)


@pytest.mark.parametrize(
    "terms",
    [
        {"lane": "fast"},
        {"lane": None},
        {"priority": 101},
        {"priority": -101},
        {"priority": True},
        {"priority": 1.0},
        {"deadline_seconds": 0},
        {"deadline_seconds": 10**12},
        {"deadline_seconds": "60"},
    ],
)
def test_other_terms_are_refused(api: World, terms: dict[str, Any]) -> None:
    answer = start(api, **terms)
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid_request")
    assert answer.json()["where"]["path"].startswith(f"$.{next(iter(terms))}")


def test_a_key_stands_for_the_terms_too(api: World) -> None:
    first = start(api, "terms", lane="bulk").json()
    assert start(api, "terms", lane="bulk").json()["id"] == first["id"]
    assert start(api, "terms").status_code == 409


def test_a_full_project_says_so_and_goes_on_when_one_is_cancelled(api: World) -> None:
    def bound(most: int | None) -> None:
        with api.parts.database.write() as session:
            session.get_one(Project, DEFAULT_PROJECT).max_running_jobs = most

    bound(1)
    try:
        job = start(api).json()
        assert job["id"] not in api.queue.enqueued
        assert "fewer jobs of its project run; 1 may at a time" in job["waits_for"]
        open_ = [item for state in ("queued", "running") for item in _all(api, state)]
        for item in open_:
            if item["id"] != job["id"]:
                api.call("POST", item["links"]["cancel"])
        running = _all(api, "running")
        assert (job["id"] in api.queue.enqueued) == (not running)
    finally:
        bound(None)


def _all(api: World, state: str) -> list[Any]:
    found: list[Any] = api.call("GET", f"/v1/jobs?state={state}&limit=100").json()["items"]
    return found
