"""Comparisons over HTTP: asked for, refused, looked at page by page, and the document of the command line."""

from typing import Any

import pytest

from service.api import examples
from tests.service.api.compared import FINDING, HEAD, OBJECTS
from tests.service.api.provocations import NO_DIGEST
from tests.service.api.world import World

OWN = f"/v1/comparisons/{examples.COMPARISON_ID}"


def get(api: World, path: str, **query: Any) -> Any:
    answer = api.call("GET", path, params=query)
    answer.raise_for_status()
    return answer.json()


def test_asked_for_and_not_begun(api: World) -> None:
    answer = api.call("POST", "/v1/jobs", json=examples.COMPARE)
    assert answer.status_code == 202
    job = answer.json()
    assert (job["type"], job["run"], job["conversion"]) == ("compare", None, None)
    assert job["comparison"] == job["id"]
    assert job["request"] == examples.COMPARE
    assert job["links"]["comparison"] == f"/v1/comparisons/{job['id']}"
    assert api.queue.enqueued[job["id"]] == ("compare", (job["id"],))
    found = get(api, job["links"]["comparison"])
    assert (found["state"], found["verdict"], found["report"]) == ("queued", None, None)
    assert (found["a"], found["b"]) == (examples.CONTENT_DIGEST, examples.CONTENT_DIGEST)
    assert get(api, "/v1/jobs", type="compare")["items"][0]["id"] == job["id"]


def test_the_same_key_gives_the_same_job(api: World) -> None:
    headers = {"Idempotency-Key": "compare-once"}
    ids = {
        api.call("POST", "/v1/jobs", json=examples.COMPARE, headers=headers).json()["id"] for _ in range(2)
    }
    assert len(ids) == 1


@pytest.mark.parametrize("member", ["a", "b"])
def test_artifacts_that_are_not_here(api: World, member: str) -> None:
    answer = api.call("POST", "/v1/jobs", json={**examples.COMPARE, member: NO_DIGEST})
    problem = answer.json()
    assert (answer.status_code, problem["code"]) == (422, "reference_unknown")
    assert problem["where"] == {"in": "body", "path": f"$.{member}"}


def test_only_ninfer_artifacts(api: World) -> None:
    answer = api.call(
        "POST", "/v1/artifacts?kind=safetensors&name=model.safetensors", content=b"of another kind"
    )
    other = answer.json()["digest"]
    problem = api.call("POST", "/v1/jobs", json={**examples.COMPARE, "b": other}).json()
    assert problem["code"] == "invalid_request"
    assert problem["faults"][0]["path"] == "$.b"
    assert "only .ninfer artifacts are compared" in problem["faults"][0]["message"]


def test_one_that_is_done(api: World) -> None:
    found = get(api, OWN)
    assert (found["state"], found["verdict"], found["summary"]) == (
        "passed",
        "different",
        "B lacks 1 object of A",
    )
    assert found["report"] == HEAD
    for name in ("objects", "findings", "report", "job", "a", "b"):
        get(api, found["links"][name])


def test_pages_in_either_order(api: World) -> None:
    for order, names in (("ordinal", "abc"), ("worst", "cab")):
        seen, cursor = "", None
        while True:
            query = {"cursor": cursor} if cursor else {}
            page = get(api, f"{OWN}/objects", order=order, limit=2, **query)
            seen += "".join(item["name"] for item in page["items"])
            cursor = page["next"]
            if cursor is None:
                break
        assert seen == names
    assert [
        item["name"] for item in get(api, f"{OWN}/objects", status="removed", order="worst")["items"]
    ] == ["c"]
    assert get(api, f"{OWN}/objects", status="added")["items"] == []
    assert api.call("GET", f"{OWN}/objects", params={"status": "other"}).status_code == 422
    cursor = get(api, f"{OWN}/objects", order="worst", limit=2)["next"]
    assert api.call("GET", f"{OWN}/objects", params={"cursor": cursor}).json()["code"] == "invalid_request"


def test_findings_say_whose(api: World) -> None:
    assert get(api, f"{OWN}/findings")["items"] == [FINDING]
    assert get(api, f"{OWN}/findings", severity="error")["items"] == []


def test_the_document(api: World) -> None:
    assert get(api, f"{OWN}/report") == {**HEAD, "objects": list(OBJECTS), "findings": [FINDING]}
    answer = api.call("GET", f"{OWN}/report", headers={"If-None-Match": f'"{examples.COMPARISON_ID}"'})
    assert answer.status_code == 304
