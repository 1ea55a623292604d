"""Projects apart: what another project holds is answered, to the letter, like what nobody holds."""

import json
from typing import Any, NamedTuple

import pytest

from service import auth
from service.api import examples
from service.api.openapi import operations
from service.records import projects
from service.records.models import Project
from service.records.types import now
from tests.service.access.conftest import Tenants, path_of
from tests.service.api.provocations import NO_DIGEST, NO_ID

D = examples.CONTENT_DIGEST
# The same for every project: the catalogue's names. A list of where a tensor lies is empty rather than missing.
NO_MATTER_WHOSE = {"/v1/schemes/{name}"}
LISTS = {"/v1/provenance/tensors/{identity}"}
TUS = {"Tus-Resumable": "1.0.0", "Upload-Offset": "0", "Content-Type": "application/offset+octet-stream"}
OWN = "OWN"  # what the project that asks holds itself
EXAMPLES = (D, examples.RECIPE_DIGEST, examples.TARGET_DIGEST, examples.CHECKPOINT_ID)
UNKNOWN = {64: NO_DIGEST, 32: NO_ID}
# Lists that hold what comes with the service.
COMMON = {
    "/v1/targets",
    "/v1/formats",
    "/v1/encoder-profiles",
    "/v1/kernels",
    "/v1/schemes",
    "/v1/project",
    "/v1/tokens",
    "/v1/audit",
}


class Third(NamedTuple):
    """Its token, and the digest of what it holds."""

    token: str
    content: str


def named(tenants: Tenants) -> list[tuple[str, str, str, str]]:
    """Method, path, name and example of every parameter that names a thing."""
    return [
        (
            method,
            path,
            parameter["name"],
            (parameter["schema"].get("examples") or [parameter.get("example")])[0],
        )
        for path, method, operation in operations(tenants.document)
        if path not in NO_MATTER_WHOSE
        for parameter in operation.get("parameters", ())
        if parameter["in"] == "path"
    ]


def nobodys(example: str) -> str:
    """What is spelled like an example and names nothing."""
    return UNKNOWN[len(example.removeprefix("sha256:"))]


def told(answer: Any, *names: str) -> tuple[int, str]:
    """What an answer says, apart from the names that the request gave and the request's own."""
    text = answer.text
    if answer.content and answer.headers.get("content-type", "").startswith("application/problem"):
        text = json.dumps({**answer.json(), "request_id": None})
    for name in names:
        text = text.replace(name, "NAME")
    return answer.status_code, text


def test_by_address(tenants: Tenants) -> None:
    """Read and written, with a token for everything of another project; the owner finds it."""
    found = named(tenants)
    assert len(found) > 30
    for method, path, name, example in found:
        place = f"{method} {path}"
        query = {"name": "a"} if path.endswith("/object") else {}
        theirs, nothing = (
            tenants.call(
                tenants.other,
                method.upper(),
                path_of(tenants, path, **{name: one}),
                params=query,
                headers=TUS,
            )
            for one in (example, nobodys(example))
        )
        assert told(theirs, example) == told(nothing, nobodys(example)), place
        if path in LISTS:
            assert theirs.json()["items"] == [], place
        elif method != "options":  # which says what the protocol can do, whatever is named
            assert theirs.status_code == 404, (place, theirs.text)
        if method == "get":
            mine = tenants.call(tenants.tokens["admin"], "GET", path_of(tenants, path), params=query)
            assert mine.status_code not in (401, 403, 404), (place, mine.text)


def test_lists(tenants: Tenants) -> None:
    """Nothing of another project is in any list, filters or not."""
    seen = 0
    for path, method, operation in operations(tenants.document):
        if method != "get" or "{" in path or path in COMMON or not operation.get("security"):
            continue
        query = {"recipe": examples.RECIPE_DIGEST} if path == "/v1/provenance" else {}
        answer = tenants.call(tenants.other, "GET", path, params=query)
        assert answer.is_success, (path, answer.text)
        assert answer.json()["items"] == [], path
        seen += 1
    assert seen > 8
    targets = tenants.call(tenants.other, "GET", "/v1/targets").json()["items"]
    assert targets
    assert all(target["registered"] for target in targets)
    assert [row["name"] for row in tenants.call(tenants.other, "GET", "/v1/tokens").json()["items"]] == [
        "new"
    ]
    assert tenants.call(tenants.other, "GET", "/v1/project").json()["held_bytes"] == 0
    actions = tenants.call(tenants.other, "GET", "/v1/audit").json()["items"]
    assert [row["action"] for row in actions] == ["token.created"]


@pytest.fixture(scope="module")
def third(tenants: Tenants) -> Third:
    """A project that holds an artifact of its own, and what else it needs to ask for a job."""
    with tenants.world.parts.database.write() as session:
        projects.add(session, Project(id="third", name="third", created_at=now()))
    token = auth.new_token(tenants.world.parts.database, "third")
    content = tenants.call(token, "POST", "/v1/blobs", content=b"of the third").json()["digest"]
    files = [{"name": "own.ninfer", "digest": content}]
    tenants.call(token, "POST", "/v1/artifacts", json={"kind": "ninfer", "files": files}).raise_for_status()
    return Third(token, content)


VERIFY = {"type": "verify", "artifact": OWN}
SOURCES = {"base": examples.CHECKPOINT_ID}
NAMING: dict[str, tuple[str, dict[str, Any]]] = {
    "verify": ("/v1/jobs", {**VERIFY, "artifact": D}),
    "compare": ("/v1/jobs", {"type": "compare", "a": OWN, "b": D}),
    "recipe": ("/v1/jobs", {**VERIFY, "recipe": examples.RECIPE_DIGEST}),
    "target": ("/v1/jobs", {**VERIFY, "target": examples.TARGET_DIGEST}),
    "checkpoint": ("/v1/jobs", {**examples.CONVERT, "checkpoints": SOURCES}),
    "inputs": ("/v1/jobs", {**VERIFY, "inputs": {"a": D}}),
    "archive": ("/v1/jobs", examples.SCHEME),
    "artifact": ("/v1/artifacts", examples.ARTIFACT),
    "checkpoint files": ("/v1/checkpoints", examples.CHECKPOINT),
}


@pytest.mark.parametrize("case", NAMING)
def test_by_body(tenants: Tenants, third: Third, case: str) -> None:
    """A body that names what another project holds is refused like one that names nothing."""
    path, body = NAMING[case]
    spelled = json.dumps(body).replace(OWN, third.content)
    (example,) = (one for one in EXAMPLES if one in spelled)
    headers = {"Content-Type": "application/json"}
    theirs, absent = (
        tenants.call(third.token, "POST", path, content=one, headers=headers)
        for one in (spelled, spelled.replace(example, nobodys(example)))
    )
    assert theirs.status_code == 422, theirs.text
    assert told(theirs, example) == told(absent, nobodys(example))
    assert tenants.call(third.token, "GET", "/v1/jobs").json()["items"] == []


def test_content_that_another_project_holds_is_new(tenants: Tenants) -> None:
    """Its bytes have to be sent, and nothing says that they are here already."""
    asked = tenants.call(tenants.other, "HEAD", f"/v1/blobs/{D}")
    assert asked.status_code == 404
    recipe = tenants.call(
        tenants.other, "POST", "/v1/recipes", json=examples.RECIPE, params={"target": examples.TARGET_DIGEST}
    )
    assert recipe.status_code == 404
