"""Targets over the API: registered ones beside stored ones, documents by the digest of their very bytes, recipes that fill them."""

import copy
import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ninfer_core.formats import FORMATS
from ninfer_core.targets import TARGETS
from service.api import examples
from tests.build import write_artifact
from tests.service.api.world import World


def listed(api: World, limit: int) -> list[dict[str, Any]]:
    """Every target, page by page."""
    items: list[dict[str, Any]] = []
    query: dict[str, Any] = {"limit": limit}
    while True:
        page = api.call("GET", "/v1/targets", params=query).json()
        assert len(page["items"]) <= limit
        items += page["items"]
        if page["next"] is None:
            return items
        query["cursor"] = page["next"]


def named(weights_id: str, **changes: Any) -> dict[str, Any]:
    """The example under another identity."""
    return {**examples.TARGET, "identity": {"model_id": "example", "weights_id": weights_id}, **changes}


def test_registered_ones_come_first_and_stored_ones_newest_first(fresh: World) -> None:
    assert [item["registered"] for item in listed(fresh, 50)] == [True] * len(TARGETS)
    for name in ("a", "b", "c"):
        assert fresh.call("POST", "/v1/targets", json=named(name)).status_code == 201
    for limit in (1, 2, len(TARGETS), len(TARGETS) + 1, 50):
        found = listed(fresh, limit)
        assert [item["digest"] for item in found[: len(TARGETS)]] == [target.digest for target in TARGETS]
        assert [item["weights_id"] for item in found[len(TARGETS) :]] == ["c", "b", "a"]


def test_a_document_is_what_its_digest_is_of(api: World) -> None:
    for digest in (TARGETS[0].digest, examples.TARGET_DIGEST):
        answer = api.call("GET", f"/v1/targets/{digest}")
        assert f"sha256:{hashlib.sha256(answer.content).hexdigest()}" == digest
        assert answer.headers["etag"] == f'"{digest}"'
        again = api.call("GET", f"/v1/targets/{digest}", headers={"If-None-Match": answer.headers["etag"]})
        assert again.status_code == 304


def test_the_same_target_is_stored_once_and_a_registered_one_never(fresh: World) -> None:
    text = json.dumps(examples.TARGET, indent=3)
    headers = {"Content-Type": "application/json"}
    assert fresh.call("POST", "/v1/targets", json=examples.TARGET).status_code == 201
    again = fresh.call("POST", "/v1/targets", content=text, headers=headers)
    assert (again.status_code, again.json()["digest"]) == (200, examples.TARGET_DIGEST)
    registered = fresh.call("GET", f"/v1/targets/{TARGETS[0].digest}").content
    pushed = fresh.call("POST", "/v1/targets", content=registered, headers=headers)
    assert (pushed.status_code, pushed.json()["registered"]) == (200, True)
    assert [item["registered"] for item in listed(fresh, 50)].count(False) == 1


def test_a_faulty_target_comes_back_with_every_finding_and_is_not_stored(fresh: World) -> None:
    entry = {"tensor": "a", "shape": [0, 7], "format": "Q9"}
    problem = fresh.call("POST", "/v1/targets", json=named("x", objects=[entry, entry], more=1)).json()
    assert problem["code"] == "target_faulty"
    assert len(problem["findings"]) > 1
    assert {finding["code"].partition(".")[0] for finding in problem["findings"]} == {"target"}
    assert len(listed(fresh, 50)) == len(TARGETS)


def test_a_recipe_without_formats_takes_those_of_the_target_it_is_stored_with(fresh: World) -> None:
    recipe = copy.deepcopy(examples.RECIPE)
    del recipe["rules"][0]["format"]
    alone = fresh.call("POST", "/v1/recipes", json=recipe)
    assert alone.json()["code"] == "recipe_faulty"
    digest = fresh.call("POST", "/v1/targets", json=examples.TARGET).json()["digest"]
    stored = fresh.call("POST", "/v1/recipes", json=recipe, params={"target": digest})
    assert (stored.status_code, stored.json()["target_digest"]) == (201, digest)
    fresh.push(examples.CONTENT)
    checkpoint = fresh.call("POST", "/v1/checkpoints", json=examples.CHECKPOINT).json()["id"]
    request = {"type": "convert", "recipe": stored.json()["digest"], "checkpoints": {"base": checkpoint}}
    assert fresh.call("POST", "/v1/jobs", json=request).status_code == 202
    other = fresh.call("POST", "/v1/targets", json=named("other")).json()["digest"]
    refused = fresh.call("POST", "/v1/jobs", json={**request, "target": other}).json()
    assert refused["code"] == "recipe_faulty"
    assert "recipe.identity_differs" in {finding["code"] for finding in refused["findings"]}
    job = fresh.call("POST", "/v1/jobs", json={**request, "target": "example/mixed"}).json()
    assert job["request"]["target"] == digest


@pytest.mark.parametrize("revision", [2, 3])
def test_auto_picks_a_stored_target_by_identity_and_inventory(
    fresh: World, tmp_path: Path, revision: int
) -> None:
    own = {"tensor": "w", "shape": [4, 64], "format": "BF16"}
    document = {
        "schema": "ninfer-target/1",
        "identity": {"model_id": "test", "weights_id": "x"},
        "layouts": {"BF16": "contiguous-le-v1"},
        "objects": [own],
    }
    path = tmp_path / "a.ninfer"
    write_artifact(path, {"w": (FORMATS["BF16"], (4, 64), np.zeros(512, np.uint8))}, revision)
    query = {"kind": "ninfer", "name": path.name}
    artifact = fresh.call("POST", "/v1/artifacts", params=query, content=path.read_bytes()).json()["digest"]
    request = {"type": "verify", "artifact": artifact, "checks": [], "target": "auto"}
    assert fresh.call("POST", "/v1/jobs", json=request).json()["request"]["target"] == "auto"
    fitting = fresh.call("POST", "/v1/targets", json=document).json()["digest"]
    more = {**document, "objects": [own, {**own, "tensor": "more"}]}
    fresh.call("POST", "/v1/targets", json=more).raise_for_status()
    job = fresh.call("POST", "/v1/jobs", json=request).json()
    assert job["request"]["target"] == fitting
    assert "inventory" in job["request"]["checks"]


def test_two_targets_of_one_identity_are_named_by_digest(fresh: World) -> None:
    fresh.push(examples.CONTENT)
    fresh.call("POST", "/v1/artifacts", json=examples.ARTIFACT).raise_for_status()
    fresh.call("POST", "/v1/targets", json=examples.TARGET).raise_for_status()
    more = [*examples.TARGET["objects"], {"tensor": "text/more", "shape": [6, 128], "format": "Q4G64_F16S"}]
    second = fresh.call("POST", "/v1/targets", json={**examples.TARGET, "objects": more}).json()["digest"]
    problem = fresh.call("POST", "/v1/jobs", json={**examples.VERIFY, "target": "example/mixed"}).json()
    assert problem["code"] == "reference_unknown"
    assert second in problem["faults"][0]["message"]
    job = fresh.call("POST", "/v1/jobs", json={**examples.VERIFY, "target": second}).json()
    assert job["request"]["target"] == second
