"""The catalogue over HTTP, checks by it as jobs, and struct types checked at once."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ninfer_core.formats import FORMATS
from ninfer_core.schemes.catalogue import SCHEMES
from ninfer_core.schemes.structs.limits import Limits
from service import auth
from service.api import examples
from service.records import jobs, scheme_checks, tokens
from service.records.errors import JobOver
from service.records.models import Project
from service.records.types import now
from tests.service.api.world import World

CASES = json.loads((Path(__file__).parents[2] / "vectors" / "struct_types" / "cases.json").read_text())
DIGEST = examples.CONTENT_DIGEST
NO_DIGEST = f"sha256:{'0' * 64}"
BITS = {"bits": 4, "group_size": 128}


def get(api: World, path: str, **query: Any) -> Any:
    answer = api.call("GET", path, params=query)
    answer.raise_for_status()
    return answer.json()


def ask(api: World, **members: Any) -> Any:
    return api.call("POST", "/v1/jobs", json={"type": "scheme", **members})


def test_the_catalogue_comes_in_pages(api: World) -> None:
    names: list[str] = []
    cursor: dict[str, str] = {}
    while True:
        page = get(api, "/v1/schemes", limit=20, **cursor)
        names += [item["name"] for item in page["items"]]
        if page["next"] is None:
            break
        cursor = {"cursor": page["next"]}
    assert names == list(SCHEMES.names)
    assert not set(names) & set(FORMATS.names)
    found = get(api, "/v1/schemes", profile="log")["items"]
    assert [item["name"] for item in found] == ["log"]
    assert [item["name"] for item in get(api, "/v1/schemes", match="GPTQ")["items"]] == ["gptq"]
    assert get(api, "/v1/schemes", match="no such thing") == {"items": [], "next": None}
    answer = api.call("GET", "/v1/schemes", params={"profile": "logs"})
    assert (answer.status_code, answer.json()["where"]["path"]) == (422, "profile")
    assert api.call("GET", "/v1/schemes", params={"cursor": "x"}).status_code == 422


def test_one_scheme_with_everything_about_its_forms(api: World) -> None:
    answer = api.call("GET", "/v1/schemes/gptq")
    whole = answer.json()
    assert [form["name"] for form in whole["forms"]] == whole["scheme"]["forms"]
    form = next(form for form in whole["forms"] if form["name"] == "gptq")
    assert [part["name"] for part in form["parts"]] == ["qweight", "qzeros", "scales", "g_idx"]
    assert form["sizes"]["bits_per_weight"] == 4.15625
    assert [box["name"] for box in form["layout"]["inside"]][:1] == ["qweight"]
    assert sum(piece["bits"] for piece in form["word"]["inside"]) == 32
    same = api.call("GET", "/v1/schemes/gptq", headers={"If-None-Match": answer.headers["ETag"]})
    assert same.status_code == 304
    block = get(api, "/v1/schemes/ggml_q4_k", shape="2x256")
    assert [form["name"] for form in block["forms"]] == ["ggml_q4_k"]
    assert block["forms"][0]["sizes"]["bits"] == {"payload": 2 * 144 * 8}
    assert "BitwiseAnd" in block["forms"][0]["decoder"]
    assert block["forms"][0]["encoder"] is None
    assert "ArgMin" in get(api, "/v1/schemes/nf4_literal")["forms"][0]["encoder"]
    assert get(api, "/v1/schemes/ggml_q4_k")["forms"][0]["sizes"]["shape"] != [2, 256]


@pytest.mark.parametrize(
    ("name", "shape"), [("gptq", "999999999999999x999999999999999"), ("quarot", "1099511627776")]
)
def test_a_shape_that_no_array_has_is_refused(api: World, name: str, shape: str) -> None:
    answer = api.call("GET", f"/v1/schemes/{name}", params={"shape": shape})
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid_request")


def test_names_lead_nowhere_else(api: World) -> None:
    for name in FORMATS.names:
        assert name in SCHEMES or api.call("GET", f"/v1/schemes/{name}").json()["code"] == "scheme_not_found"
    problem = api.call("GET", "/v1/schemes/gptg").json()
    assert "Did you mean gptq" in problem["detail"]
    answer = api.call("GET", "/v1/schemes/ggml_q4_k", params={"shape": "3x100"})
    assert (answer.status_code, answer.json()["where"]) == (422, {"in": "query", "path": "shape"})


def test_asked_for_as_a_job(api: World) -> None:
    job = ask(api, **{k: v for k, v in examples.SCHEME.items() if k != "type"}).json()
    assert job["request"]["form"] == "gptq"
    assert job["request"]["archive"] == {
        "digest": DIGEST,
        "kind": "safetensors",
        "prefix": "model.layers.0.mlp.up_proj.",
    }
    assert job["scheme_check"] == job["id"]
    assert job["links"]["scheme_check"] == f"/v1/scheme-checks/{job['id']}"
    assert api.queue.enqueued[job["id"]] == ("scheme", (job["id"],))
    found = get(api, f"/v1/scheme-checks/{job['id']}")
    assert (found["state"], found["verdict"], found["report"]) == ("queued", None, None)
    assert get(api, "/v1/jobs", type="scheme")["items"][0]["id"] == job["id"]
    struct = ask(api, struct=DIGEST, payload=DIGEST).json()
    assert struct["request"] == {"type": "scheme", "struct": DIGEST, "payload": DIGEST}


@pytest.mark.parametrize(
    ("members", "path"),
    [
        ({}, "$.form"),
        ({"form": "nf5"}, "$.form"),
        ({"form": "nf4", "archive": {"digest": DIGEST}}, "$.form"),  # of several forms
        ({"form": "Q4G64_F16S"}, "$.form"),
        ({"form": "gptq", "params": BITS}, "$.parts"),
        ({"form": "aqlm", "params": {"bits": 8}, "archive": {"digest": DIGEST}}, "$.params.num_codebooks"),
        ({"form": "gptq", "params": {**BITS, "bits": 4.5}, "archive": {"digest": DIGEST}}, "$.params.bits"),
        ({"form": "gptq", "params": {**BITS, "x": 1}, "archive": {"digest": DIGEST}}, "$.params.x"),
        ({"form": "gptq", "params": {"bits": {"a": 1}}}, "$.params.bits"),
        ({"form": "gptq", "params": BITS, "parts": {"weight": {"digest": DIGEST}}}, "$.parts.weight"),
        ({"form": "gptq", "params": BITS, "archive": {"digest": DIGEST}, "within": 0.5}, "$.within"),
        ({"form": "gptq", "params": BITS, "archive": {"digest": DIGEST}, "payload": DIGEST}, "$.payload"),
        ({"form": "gptq", "params": BITS, "archive": {"digest": DIGEST}, "shape": [-1]}, "$.shape[0]"),
        ({"form": "gptq", "struct": DIGEST}, "$.form"),
        ({"struct": DIGEST, "reference": DIGEST}, "$.reference"),
        ({"struct": NO_DIGEST}, "$.struct"),
        (
            {"form": "gptq", "params": BITS, "parts": {"scales": {"digest": NO_DIGEST}}},
            "$.parts.scales.digest",
        ),
    ],
)
def test_what_cannot_be_asked_for(api: World, members: dict[str, Any], path: str) -> None:
    answer = ask(api, **members)
    assert answer.status_code == 422, answer.text
    assert answer.json()["where"]["path"] == path


def test_content_beyond_what_one_check_may_read(api: World) -> None:
    settings = api.parts.settings.model_copy(update={"max_check_bytes": 2 * len(examples.CONTENT) - 1})
    parts = api.app.state.parts
    api.app.state.parts = replace(parts, settings=settings)
    try:
        assert ask(api, struct=DIGEST).status_code == 202
        problem = ask(api, struct=DIGEST, payload=DIGEST).json()
    finally:
        api.app.state.parts = parts
    assert (problem["code"], problem["where"]["path"]) == ("invalid_request", "$")


def test_checks_are_listed_and_found(api: World) -> None:
    own = f"/v1/scheme-checks/{examples.SCHEME_CHECK_ID}"
    found = get(api, own)
    assert (found["verdict"], found["errors"], found["advisories"]) == ("failed", 1, 0)
    assert found["report"]["findings"][0]["code"] == "scheme.group_out_of_range"
    assert found["links"] == {
        "self": own,
        "job": f"/v1/jobs/{examples.SCHEME_CHECK_ID}",
        "form": "/v1/schemes/gptq",
    }
    assert get(api, f"/v1/jobs/{examples.SCHEME_CHECK_ID}")["scheme_check"] == examples.SCHEME_CHECK_ID

    def ids(**query: Any) -> list[str]:
        return [item["id"] for item in get(api, "/v1/scheme-checks", **query)["items"]]

    assert ids(form="gptq", verdict="failed") == [examples.SCHEME_CHECK_ID]
    assert ids(form="awq") == ids(verdict="passed") == []
    newest = ask(api, struct=DIGEST).json()["id"]
    first = get(api, "/v1/scheme-checks", limit=1)
    assert [item["id"] for item in first["items"]] == [newest]
    assert "report" not in first["items"][0]
    assert newest not in ids(cursor=first["next"])
    assert examples.SCHEME_CHECK_ID in ids(cursor=first["next"])


def test_an_answer_stands_whatever_comes_after_it(api: World) -> None:
    first, second = ({"verdict": verdict, "findings": []} for verdict in ("passed", "incomplete"))
    id_ = ask(api, struct=DIGEST).json()["id"]
    with api.parts.database.write() as session:
        jobs.begin(session, id_)
        scheme_checks.save(session, id_, first)
    assert get(api, f"/v1/scheme-checks/{id_}")["report"] is None  # an answer counts only as that of its job
    with api.parts.database.write() as session:
        scheme_checks.save(session, id_, second)
        jobs.finish(session, id_, "passed")
    with pytest.raises(JobOver), api.parts.database.write() as session:
        scheme_checks.save(session, id_, second)
    found = get(api, f"/v1/scheme-checks/{id_}")
    assert (found["verdict"], found["report"]) == ("passed", first)


def test_nothing_of_another_project_is_known(api: World) -> None:
    with api.parts.database.write() as session:
        session.add(Project(id="other", name="other", created_at=now()))
        session.flush()
        tokens.add(
            session, "other", auth.hashed("other's"), "api", name="other", scopes="admin", created_by="test"
        )
    theirs = {"Authorization": "Bearer other's"}
    mine = f"/v1/scheme-checks/{examples.SCHEME_CHECK_ID}"
    assert api.call("GET", mine).status_code == 200
    answer = api.call("GET", mine, headers=theirs)
    assert (answer.status_code, answer.json()["code"]) == (404, "scheme_check_not_found")
    answer = api.call("GET", "/v1/scheme-checks", headers=theirs)
    assert (answer.status_code, answer.json()["items"]) == (200, [])
    answer = api.call("POST", "/v1/jobs", json={"type": "scheme", "struct": DIGEST}, headers=theirs)
    assert (answer.status_code, answer.json()["code"]) == (422, "blobs_missing")
    for path in (mine, "/v1/scheme-checks", "/v1/schemes", "/v1/schemes/gptq"):
        assert api.call("GET", path, headers={"Authorization": "Bearer nobody's"}).status_code == 401


@pytest.mark.parametrize("kind", ["accept", "reject"])
def test_struct_types_are_checked_at_once(api: World, kind: str) -> None:
    """A few of the reference cases over HTTP; all of them are the core's business."""
    tried = 0
    for case in CASES[kind][::9]:
        if "types" not in case:
            continue
        answer = api.call("POST", "/v1/struct-checks", json=case)
        assert answer.status_code == 200, case["name"]
        found = answer.json()
        said = [finding["code"] for finding in found["findings"]]
        if kind == "accept":
            assert (found["verdict"], found["size_bytes"], said) == ("passed", case["size_bytes"], [])
            assert found["leaf_count"] == len(case.get("leaves", found["leaves"]))
        else:
            assert f"struct.{case['code']}" in said, case["name"]
        tried += 1
    assert tried >= 3


def test_struct_types_are_checked_under_the_service_s_limits(api: World) -> None:
    case = next(case for case in CASES["accept"] if case["name"] == "point2d")
    settings = api.parts.settings.model_copy(update={"struct_limits": Limits(leaves=1)})
    api.app.state.parts = replace(api.parts, settings=settings)
    try:
        found = api.call("POST", "/v1/struct-checks", json=case).json()
    finally:
        api.app.state.parts = api.parts
    assert [finding["code"] for finding in found["findings"]] == ["struct.limit_leaves"]


def test_a_body_that_is_no_document_is_an_answer_too(api: World) -> None:
    for body, code in ((b"{", "structure.json_syntax"), (b"{}", "struct.member_missing")):
        answer = api.call(
            "POST", "/v1/struct-checks", content=body, headers={"Content-Type": "application/json"}
        )
        found = answer.json()
        assert (answer.status_code, found["verdict"], found["leaves"]) == (200, "failed", None)
        assert found["findings"][0]["code"] == code
