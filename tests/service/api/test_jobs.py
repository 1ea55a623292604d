"""Jobs: everything is held against the project and the recipe first, one key stands for one job, events resume."""

import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest

from ninfer_core.identity import canonical_digest
from service.api import examples
from service.records import content, jobs, runs
from service.records.models import Artifact, ArtifactFile
from service.records.types import new_id, now
from tests.service.api.world import P, World

VERIFY = examples.VERIFY
CONVERT = {**examples.CONVERT, "recipe": examples.RECIPE_DIGEST}
PARITY = examples.VERIFY_PARITY


def start(api: World, body: Any, **headers: str) -> httpx.Response:
    """Ask for a job."""
    return api.call("POST", "/v1/jobs", json=body, headers=headers)


def ready(api: World) -> dict[str, str]:
    """A fresh service with an artifact and a recipe; `base` is the id of a checkpoint."""
    api.push(examples.CONTENT)
    api.call("POST", "/v1/artifacts", json=examples.ARTIFACT).raise_for_status()
    api.call("POST", "/v1/recipes", json=examples.RECIPE).raise_for_status()
    checkpoint = api.call("POST", "/v1/checkpoints", json=examples.CHECKPOINT).json()
    return {"base": checkpoint["id"]}


def test_a_verification(api: World) -> None:
    answer = start(api, VERIFY)
    job = answer.json()
    assert answer.status_code == 202
    assert answer.headers["location"] == f"/v1/jobs/{job['id']}" == job["links"]["self"]
    assert job["state"] == "queued"
    assert job["request"] == {
        "type": "verify",
        "artifact": examples.CONTENT_DIGEST,
        "checks": ["structure", "layout", "values", "statistics"],
        "canonical": False,
        "sample": None,
        "full": False,
        "max_age_seconds": None,
        "checkpoints": {},
        "inputs": {},
        "recipe": None,
        "target": None,
    }
    assert job["progress"] == {"objects": None, "objects_done": 0, "bytes": None, "bytes_done": 0}
    assert (job["artifact"], job["run"], job["conversion"]) == (examples.CONTENT_DIGEST, job["id"], None)
    assert api.queue.enqueued[job["id"]] == ("verify", (job["id"],))
    run = api.call("GET", job["links"]["run"]).json()
    assert (run["job"], run["state"], run["verdict"], run["report"]) == (job["id"], "queued", None, None)
    waiting = api.call("GET", job["links"]["self"])
    assert waiting.headers["retry-after"] == "1"


def test_a_conversion(api: World) -> None:
    body = {**CONVERT, "output": {"revision": 2}}
    job = start(api, body).json()
    assert job["request"] == {
        "type": "convert",
        "checkpoints": {"base": examples.CHECKPOINT_ID},
        "inputs": {},
        "recipe": examples.RECIPE_DIGEST,
        "target": None,
        "output": {"revision": 2, "max_file_bytes": None, "name": "example-mixed.ninfer"},
    }
    assert (job["artifact"], job["run"], job["conversion"]) == (None, None, job["id"])
    assert api.queue.enqueued[job["id"]] == ("convert", (job["id"],))
    conversion = api.call("GET", job["links"]["conversion"]).json()
    assert (conversion["recipe"], conversion["verdict"]) == (examples.RECIPE_DIGEST, None)


OWN = ["structure", "layout", "values", "statistics"]


@pytest.mark.parametrize(
    ("given", "checks"),
    [
        ({}, OWN),
        ({"checks": ["parity"]}, ["structure", "parity"]),
        ({"checks": ["values", "layout", "values"]}, ["structure", "layout", "values"]),
        ({"target": "auto"}, [*OWN, "inventory"]),
        ({"recipe": examples.RECIPE_DIGEST}, [*OWN, "restrictions", "relations"]),
        (
            {"recipe": "auto"},
            [*OWN, "restrictions", "relations"],
        ),  # none is registered for it: a reason in the report
        ({"checkpoints": {"anything": examples.CHECKPOINT_ID}}, [*OWN, "source", "parity"]),
        (
            {
                "recipe": examples.RECIPE_DIGEST,
                "target": examples.TARGET_DIGEST,
                "checkpoints": {"base": examples.CHECKPOINT_ID},
            },
            [*OWN, "restrictions", "inventory", "relations", "source", "parity"],
        ),
        ({"recipe": None, "checkpoints": {}, "inputs": {}}, OWN),
    ],
)
def test_checks_are_those_of_the_command_line(api: World, given: dict[str, Any], checks: list[str]) -> None:
    body = {"type": "verify", "artifact": examples.CONTENT_DIGEST, **given}
    answer = start(api, body)
    assert answer.status_code == 202, answer.text
    assert answer.json()["request"]["checks"] == checks


def test_a_stored_recipe_is_named_by_its_id_while_only_one_has_it(api: World) -> None:
    document = {**examples.RECIPE, "recipe_id": "our-own"}
    first = api.call("POST", "/v1/recipes", json=document).json()["digest"]
    for body in ({**VERIFY, "recipe": "our-own"}, {**CONVERT, "recipe": "our-own"}):
        assert start(api, body).json()["request"]["recipe"] == first
    second = api.call("POST", "/v1/recipes", json={**document, "metadata": {"n": 2}}).json()["digest"]
    answer = start(api, {**VERIFY, "recipe": "our-own"})
    assert (answer.status_code, answer.json()["code"]) == (422, "reference_unknown")
    (fault,) = answer.json()["faults"]
    assert fault["path"] == "$.recipe"
    assert set(fault["message"].split(", ")) == {first, second}


def test_a_document_is_stored_as_exactly_as_it_was_sent(api: World) -> None:
    # 64.0 is no integer in a recipe, and a float would not remember how it was spelled.
    recipe = {**examples.RECIPE, "recipe_id": "inline", "metadata": {"n": [1, 2.5, 1e3], "t": "\u00e9\u2028"}}
    text = json.dumps({**CONVERT, "recipe": recipe}).replace("1000.0", "1e3")
    answer = api.call("POST", "/v1/jobs", content=text, headers={"Content-Type": "application/json"})
    assert answer.status_code == 202, answer.text
    digest = answer.json()["request"]["recipe"]
    assert digest == canonical_digest(recipe)
    stored = api.call("GET", f"/v1/recipes/{digest}")
    assert stored.json() == recipe
    assert "1e3" in stored.text
    assert (
        api.call(
            "POST", "/v1/recipes", content=stored.content, headers={"Content-Type": "application/json"}
        ).status_code
        == 200
    )


@pytest.mark.parametrize(
    ("body", "code", "paths"),
    [
        ([], "invalid_request", ["$"]),
        ({}, "invalid_request", ["$"]),
        ({"type": "compare"}, "invalid_request", ["$.a", "$.b"]),
        ({"type": "verify"}, "invalid_request", ["$.artifact"]),
        ({**VERIFY, "artifact": "x", "checks": "y"}, "invalid_request", ["$.artifact", "$.checks"]),
        ({**VERIFY, "recipe": 1}, "invalid_request", ["$.recipe"]),
        ({**VERIFY, "recipe": ""}, "invalid_request", ["$.recipe"]),
        ({**VERIFY, "recipe": "sha256:x"}, "reference_unknown", ["$.recipe"]),
        ({**VERIFY, "recipe": "no-such-recipe"}, "reference_unknown", ["$.recipe"]),
        ({**CONVERT, "recipe": "auto"}, "reference_unknown", ["$.recipe"]),
        ({**VERIFY, "target": "m/w"}, "reference_unknown", ["$.target"]),
        ({**VERIFY, "target": f"sha256:{'1' * 64}"}, "reference_unknown", ["$.target"]),
        ({**VERIFY, "canonical": True}, "invalid_request", ["$.canonical"]),
        ({**VERIFY, "sample": {"fraction": 0.5}}, "invalid_request", ["$.sample"]),
        ({**VERIFY, "target": "auto", "canonical": True, "checks": ["values"]}, "invalid_request", ["$.canonical"]),
        ({**VERIFY, "checkpoints": {"base": examples.CHECKPOINT_ID}, "sample": {"fraction": 0.5}, "checks": ["values"]}, "invalid_request", ["$.sample"]),
        ({**VERIFY, "sample": {"fraction": 0}}, "invalid_request", ["$.sample.fraction"]),
        ({**VERIFY, "sample": {"fraction": 1.5, "seed": -1}}, "invalid_request", ["$.sample.fraction", "$.sample.seed"]),
        ({**VERIFY, "max_age_seconds": -1}, "invalid_request", ["$.max_age_seconds"]),
        ({**CONVERT, "target": "auto"}, "reference_unknown", ["$.target"]),
        ({**VERIFY, "checkpoints": {"base": "x"}}, "invalid_request", ["$.checkpoints.base"]),
        ({**VERIFY, "a b": 1}, "invalid_request", ['$["a b"]']),
        ({**CONVERT, "output": {"revision": 1}}, "invalid_request", ["$.output.revision"]),
        ({**CONVERT, "output": {"revision": True}}, "invalid_request", ["$.output.revision"]),
        ({**CONVERT, "output": {"revision": 3, "max_file_bytes": 0}}, "invalid_request", ["$.output.max_file_bytes"]),
        ({**CONVERT, "output": {"revision": 3, "max_file_bytes": 1.0}}, "invalid_request", ["$.output.max_file_bytes"]),
        ({**CONVERT, "output": {"revision": 3, "name": "a/b"}}, "invalid_request", ["$.output.name"]),
        ({**CONVERT, "output": {"revision": 3, "name": "x" * 246}}, "invalid_request", ["$.output.name"]),
        ({**VERIFY, "checks": ["values", "no", "none"]}, "check_unknown", ["$.checks[1]", "$.checks[2]"]),
        ({**VERIFY, "artifact": f"sha256:{'1' * 64}"}, "reference_unknown", ["$.artifact"]),
        ({**VERIFY, "recipe": f"sha256:{'1' * 64}"}, "reference_unknown", ["$.recipe"]),
        ({**PARITY, "checkpoints": {"base": "1" * 32}}, "reference_unknown", ["$.checkpoints.base"]),
        ({**PARITY, "checkpoints": {"draft": examples.CHECKPOINT_ID}}, "recipe_mismatch", ["$.checkpoints.draft", "$.checkpoints.base"]),
        ({**PARITY, "inputs": {"extra": examples.CONTENT_DIGEST}}, "recipe_mismatch", ["$.inputs.extra"]),
        ({**PARITY, "checkpoints": {}, "inputs": {"extra": examples.CONTENT_DIGEST}}, "recipe_mismatch", ["$.inputs.extra"]),
        ({**CONVERT, "checkpoints": {}}, "recipe_mismatch", ["$.checkpoints.base"]),
        ({**PARITY, "inputs": {"a": f"sha256:{'1' * 64}"}}, "blobs_missing", ["$.inputs.a"]),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_with_its_place(api: World, body: Any, code: str, paths: list[str]) -> None:
    before = len(api.queue.enqueued)
    problem = start(api, body).json()
    assert problem["code"] == code, problem
    assert [fault["path"] for fault in problem["faults"]] == paths
    assert {fault["in"] for fault in problem["faults"]} == {"body"}
    assert problem["where"] == {"in": "body", "path": paths[0]}
    assert len(api.queue.enqueued) == before


def test_a_faulty_recipe_comes_back_with_its_findings_and_starts_nothing(api: World) -> None:
    recipe = {**examples.RECIPE, "rules": [{**examples.RECIPE["rules"][0], "format": "Q9"}], "more": 1}
    problem = start(api, {**CONVERT, "recipe": recipe}).json()
    assert problem["code"] == "recipe_faulty"
    assert len(problem["findings"]) >= 2
    assert {finding["severity"] for finding in problem["findings"]} == {"error"}


def test_one_key_and_body_is_one_job(fresh: World) -> None:
    checkpoints = ready(fresh)
    body = {**PARITY, "checkpoints": checkpoints}
    first = start(fresh, body, **{"Idempotency-Key": "k"})
    again = start(fresh, dict(reversed(body.items())), **{"Idempotency-Key": "k"})
    assert (first.status_code, again.status_code) == (202, 202)
    assert again.json() == first.json()
    assert again.headers["location"] == first.headers["location"]
    other = start(fresh, {**body, "checks": []}, **{"Idempotency-Key": "k"})
    assert (other.status_code, other.json()["code"]) == (409, "idempotency_key_reused")
    assert start(fresh, body).json()["id"] != start(fresh, body).json()["id"]
    assert start(fresh, body, **{"Idempotency-Key": "K"}).json()["id"] != first.json()["id"]


def test_one_key_in_many_requests_at_once(fresh: World) -> None:
    ready(fresh)
    barrier = threading.Barrier(8)

    def ask(_: int) -> Any:
        barrier.wait()
        return start(fresh, VERIFY, **{"Idempotency-Key": "at-once"})

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(ask, range(8)))
    assert {answer.status_code for answer in answers} == {202}, [answer.text for answer in answers]
    assert len({answer.json()["id"] for answer in answers}) == 1
    with fresh.parts.database.read() as session:
        assert len(jobs.jobs(session, P, limit=10).items) == 1
        assert len(runs.runs(session, P, limit=10).items) == 1


@pytest.mark.parametrize("key", ["", "a b", "x" * 256, "\xe9"])
def test_keys_are_visible_ascii(api: World, key: str) -> None:
    answer = start(api, VERIFY, **{"Idempotency-Key": key.encode("latin-1")})  # type: ignore[arg-type]
    assert (answer.status_code, answer.json()["where"]["in"]) == (422, "header")


def test_an_engine_that_is_away_costs_no_job(api: World) -> None:
    api.queue.broken = True
    try:
        answer = start(api, VERIFY, **{"Idempotency-Key": "away"})
    finally:
        api.queue.broken = False
    job = answer.json()["id"]
    assert answer.status_code == 202
    assert job not in api.queue.enqueued
    assert start(api, VERIFY, **{"Idempotency-Key": "away"}).json()["id"] == job
    assert job in api.queue.enqueued  # asking again heals it at once; the workers' sweep would have too


def test_lists_and_filters(fresh: World) -> None:
    checkpoints = ready(fresh)
    convert = {**CONVERT, "checkpoints": checkpoints}
    ids = [start(fresh, body).json()["id"] for body in (VERIFY, convert, VERIFY)]
    fresh.call("POST", f"/v1/jobs/{ids[0]}/cancel").raise_for_status()

    def listed(**query: str) -> list[str]:
        found: list[str] = []
        cursor: dict[str, str] = {}
        while True:
            page = fresh.call("GET", "/v1/jobs", params={"limit": "1", **query, **cursor}).json()
            found += [job["id"] for job in page["items"]]
            if page["next"] is None:
                return found
            cursor = {"cursor": page["next"]}

    newest = sorted(ids, reverse=True)
    assert listed() == newest
    assert listed(type="convert") == [ids[1]]
    assert listed(state="queued") == [id_ for id_ in newest if id_ != ids[0]]
    assert listed(type="verify", state="cancelled") == [ids[0]]


def test_a_waiting_job_is_cancelled_at_once_a_running_one_is_asked(api: World) -> None:
    waiting, running = (start(api, VERIFY).json()["id"] for _ in range(2))
    with api.parts.database.write() as session:
        jobs.begin(session, running)
    cancelled = api.call("POST", f"/v1/jobs/{waiting}/cancel")
    assert (cancelled.status_code, cancelled.json()["state"]) == (202, "cancelled")
    asked = api.call("POST", f"/v1/jobs/{running}/cancel").json()
    assert (asked["state"], asked["cancel_requested"]) == ("running", True)
    done = api.call("POST", f"/v1/jobs/{examples.DONE_ID}/cancel").json()
    assert (done["state"], done["cancel_requested"]) == ("failed", False)
    api.call("POST", f"/v1/jobs/{running}/cancel").raise_for_status()  # again: nothing is done
    noted = api.call("GET", "/v1/audit?action=job.cancelled").json()["items"]
    assert [(row["subject"], row["detail"]) for row in noted] == [
        (running, {"was": "running"}),
        (waiting, {"was": "queued"}),
    ]
    assert {row["actor"] for row in noted} == {asked["created_by"]}


def events(text: str) -> list[tuple[int, str, Any]]:
    """(id, type, data) of a stream."""
    found = []
    for block in filter(None, text.split("\n\n")):
        members = dict(line.split(": ", 1) for line in block.split("\n"))
        found.append((int(members["id"]), members["event"], json.loads(members["data"])))
    return found


def test_events_of_a_job_that_is_over(api: World) -> None:
    path = f"/v1/jobs/{examples.DONE_ID}/events"
    whole = api.call("GET", path)
    assert whole.headers["content-type"].startswith("text/event-stream")
    heard = events(whole.text)
    assert [number for number, _, _ in heard] == list(range(1, len(heard) + 1))
    assert [data["state"] for _, kind, data in heard if kind == "state"] == ["queued", "running", "failed"]
    assert heard[-1][2]["run"] == examples.DONE_ID
    assert events(api.call("GET", path, params={"after": "1"}).text) == heard[1:]
    assert events(api.call("GET", path, headers={"Last-Event-ID": "2"}).text) == heard[2:]
    both = api.call("GET", path, params={"after": "0"}, headers={"Last-Event-ID": "2"})
    assert events(both.text) == heard[2:]  # where a browser that connects again really was
    nothing = api.call("GET", path, headers={"Last-Event-ID": str(len(heard))})
    assert (nothing.status_code, nothing.content) == (204, b"")
    for wrong in ("-1", "x"):
        assert api.call("GET", path, params={"after": wrong}).status_code == 422


def test_events_come_while_the_job_runs(fresh: World) -> None:
    ready(fresh)
    job = start(fresh, VERIFY).json()["id"]

    def work() -> None:
        time.sleep(0.3)
        with fresh.parts.database.write() as session:
            jobs.begin(session, job)
        time.sleep(0.7)
        with fresh.parts.database.write() as session:
            jobs.finish(session, job, "error", error={"code": "internal", "detail": "x"})

    worker = threading.Thread(target=work)
    worker.start()
    begin = time.monotonic()
    with fresh.http.stream("GET", f"/v1/jobs/{job}/events") as answer:
        text = "".join(answer.iter_text())
    worker.join()
    assert time.monotonic() - begin < 5
    states = [data["state"] for _, _, data in events(text)]
    assert states == ["queued", "running", "error"]
    assert events(text)[-1][2]["error"] == {"code": "internal", "detail": "x"}
    told = fresh.call("GET", f"/v1/jobs/{job}").json()
    assert told["error"] == {"code": "internal", "detail": "x"}


def test_a_quiet_stream_shows_that_it_lives_and_ends_with_the_service(
    api: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("service.api.routes.events.QUIET_SECONDS", 0.1)
    job = start(api, VERIFY).json()["id"]
    with api.http.stream("GET", f"/v1/jobs/{job}/events") as answer:
        text = ""
        for piece in answer.iter_text():
            text += piece
            if ": ping\n\n" in text:
                api.parts.closing.set()
    api.parts.closing.clear()
    assert text.startswith("event: state\n")


def test_a_stream_ends_with_the_token_that_opened_it(api: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("service.entry.AGAIN_SECONDS", 0.0)
    job = start(api, VERIFY).json()["id"]
    made = api.call("POST", "/v1/tokens", json={"name": "x", "scopes": ["read"]}).json()
    headers = {"Authorization": f"Bearer {made['token']}"}
    with api.http.stream("GET", f"/v1/jobs/{job}/events", headers=headers) as answer:
        pieces = answer.iter_text()
        assert next(pieces).startswith("event: state")
        assert api.call("DELETE", f"/v1/tokens/{made['id']}").status_code == 204
        assert list(pieces) == []


def test_an_artifact_of_another_project_is_not_here(fresh: World) -> None:
    ready(fresh)
    from service.records.models import Project

    digest = f"sha256:{'7' * 64}"
    with fresh.parts.database.write() as session:
        session.add(Project(id="other", name="other", created_at=now()))
        session.flush()
        row = Artifact(
            id=new_id(),
            project_id="other",
            digest=digest,
            kind="ninfer",
            entry="x",
            bytes=1,
            origin="pushed",
            listing="pending",
            created_at=now(),
        )
        content.add_artifact(session, row, [ArtifactFile(name="x", sha256="7" * 64, bytes=1)])
    assert start(fresh, {**VERIFY, "artifact": digest}).json()["code"] == "reference_unknown"
    assert fresh.call("GET", f"/v1/artifacts/{digest}").status_code == 404
