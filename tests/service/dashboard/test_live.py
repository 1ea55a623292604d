"""The live stream: what changes is said once, quiet jobs show that the line lives, and it ends by itself."""

import json
import threading
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from service import auth
from service.dashboard import live
from tests.service.dashboard.app import Served
from tests.service.dashboard.conftest import World
from tests.service.dashboard.rows import tensor_names
from tests.service.dashboard.seed import Seed

EVENT_STREAM = {"Accept": "text/event-stream"}


def heard(response: httpx.Response) -> Iterator[tuple[str, Any]]:
    """Events as (name, data)."""
    name = ""
    for line in response.iter_lines():
        if line.startswith("event: "):
            name = line.removeprefix("event: ")
        elif line.startswith("data:"):
            text = line.removeprefix("data:").strip()
            yield name, json.loads(text) if text else None


def test_a_run_is_followed_to_its_end(empty: Served) -> None:
    seed = Seed(empty.parts.database)
    run = seed.run(seed.artifact("a.ninfer", tensor_names(5)), "running")
    with (
        empty.visitor() as client,
        client.stream("GET", f"/runs/{run.id}/events", headers=EVENT_STREAM) as response,
    ):
        assert response.headers["content-type"].startswith("text/event-stream")
        assert response.headers["cache-control"] == "no-store"
        events = heard(response)
        name, first = next(events)
        assert (name, first["job"], first["final"], first["value"]) == ("job", run.job_id, False, 0)
        seed.advance(run, 0.5)
        name, second = next(events)
        assert second["value"] == pytest.approx(second["most"] / 2, abs=2)
        assert second["text"].startswith("50.0 % \u00b7 ")
        seed.finish(run, "cancelled")
        name, last = next(events)
        assert (last["state"], last["final"]) == ("cancelled", True)
        assert "tone-quiet" in last["mark"]
        assert [name for name, _ in events] == ["end"]


def test_a_final_run_ends_at_once(world: World, visitor: httpx.Client) -> None:
    response = visitor.get(f"/runs/{world.scene.passed.id}/events", headers=EVENT_STREAM)
    assert [name for name, _ in heard(response)] == ["job", "end"]


def test_a_list_follows_only_what_is_there(world: World, visitor: httpx.Client) -> None:
    asked = [world.scene.passed.job_id, world.scene.failed.job_id, "0" * 32]
    response = visitor.get("/jobs/events", params={"job": asked})
    jobs = {data["job"] for name, data in heard(response) if name == "job"}
    assert jobs == set(asked[:2])
    assert visitor.get("/jobs/events", params={"job": ["0" * 32] * 51}).status_code == 400
    assert visitor.get("/jobs/events").status_code == 400


def test_a_quiet_job_shows_that_the_line_lives(
    world: World, visitor: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "BEAT_SECONDS", 0.1)
    monkeypatch.setattr(live, "LOOK_SECONDS", 0.05)
    with visitor.stream("GET", f"/runs/{world.scene.queued.id}/events") as response:
        events = heard(response)
        assert [next(events)[0] for _ in range(3)] == ["job", "beat", "beat"]


def test_streams_end_when_the_service_closes(empty: Served) -> None:
    seed = Seed(empty.parts.database)
    run = seed.run(seed.artifact("a.ninfer", tensor_names(5)), "queued")
    with empty.visitor() as client, client.stream("GET", f"/runs/{run.id}/events") as response:
        events = heard(response)
        next(events)
        threading.Timer(0.1, empty.parts.closing.set).start()
        assert list(events) == []


def test_streams_end_with_the_session(empty: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("service.entry.AGAIN_SECONDS", 0.0)
    seed = Seed(empty.parts.database)
    run = seed.run(seed.artifact("a.ninfer", tensor_names(5)), "queued")
    with empty.visitor() as client, client.stream("GET", f"/runs/{run.id}/events") as response:
        events = heard(response)
        next(events)
        auth.close_session(empty.parts.database, client.headers["Cookie"].partition("=")[2])
        assert list(events) == []


def test_a_stream_needs_a_session_and_a_run(world: World, visitor: httpx.Client) -> None:
    with world.client() as client:
        assert client.get(f"/runs/{world.scene.queued.id}/events", headers=EVENT_STREAM).status_code == 401
        assert client.get(f"/runs/{world.scene.queued.id}/events").status_code == 303
    assert visitor.get(f"/runs/{'0' * 32}/events", headers=EVENT_STREAM).status_code == 404
