"""Artifacts, checkpoints, recipes, runs, reports, registries, health: what comes back, and what is kept by clients."""

import json
import subprocess
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from service.api import examples
from service.records import content, jobs, provenance, runs
from service.records.models import Object, Result
from service.records.provenance import Fact
from service.reports import pieces
from tests.cli.build import COMMAND
from tests.service.api.world import CONVERSION, FINDING, REPORT, P, World, seed, world

DONE = examples.DONE_ID


LISTS = {
    "/v1/artifacts": ("q", "kind", "cursor"),
    f"/v1/artifacts/{examples.CONTENT_DIGEST}/objects": (
        "kind",
        "format",
        "layout",
        "name",
        "prefix",
        "cursor",
    ),
    f"/v1/runs/{DONE}/objects": ("outcome", "format", "kind", "name", "cursor"),
    f"/v1/runs/{DONE}/findings": ("severity", "code", "check", "object", "cursor"),
    f"/v1/conversions/{examples.CONVERSION_ID}/findings": ("code", "check", "object", "cursor"),
}


def get(api: World, path: str, **query: str) -> Any:
    """The JSON of an answer."""
    answer = api.call("GET", path, params=query)
    assert answer.is_success, answer.text
    return answer.json()


def push_files(api: World, kind: str, *names: str) -> Any:
    """The answer to an artifact of files with contents of their own."""
    files = [{"name": name, "digest": api.push(f"content of {name}")} for name in names]
    return api.call("POST", "/v1/artifacts", json={"kind": kind, "files": files})


@pytest.mark.parametrize(
    ("kind", "names", "entry"),
    [
        ("ninfer", ["x.ninfer.part-0001", "x.ninfer"], "x.ninfer"),
        ("ninfer", ["model.bin"], "model.bin"),
        ("ninfer", ["x.ninfer", "a.json"], "x.ninfer"),
        ("ninfer", ["a.ninfer", "b.ninfer"], None),
        ("ninfer", ["a", "b"], None),
        ("safetensors", ["model.safetensors"], "model.safetensors"),
        ("safetensors", ["m.safetensors.index.json", "m-1.safetensors"], "m.safetensors.index.json"),
        ("safetensors", ["a.safetensors", "b.safetensors"], None),
        ("safetensors", ["config.json"], None),
    ],
)
def test_the_entry_is_chosen_as_on_the_command_line(
    api: World, kind: str, names: list[str], entry: str | None
) -> None:
    answer = push_files(api, kind, *names)
    if entry is None:
        assert answer.json()["code"] == "entry_unclear"
        return
    assert answer.is_success, answer.text
    assert answer.json()["entry"] == entry
    assert [file["name"] for file in answer.json()["files"]] == sorted(names)
    # Another order of the same files is the same artifact.
    assert push_files(api, kind, *reversed(names)).status_code == 200
    assert any(workflow == "list_objects" for workflow, _ in api.queue.enqueued.values())


@pytest.mark.parametrize(
    ("names", "paths"),
    [
        (["a", "b", "a"], ["$.files[2].name"]),
        (["../a", "b"], ["$.files[0].name"]),
        (["a/b", "c\\d", ""], ["$.files[0].name", "$.files[1].name", "$.files[2].name"]),
        (["x" * 256], ["$.files[0].name"]),
    ],
)
def test_names_of_files_are_plain_and_different(api: World, names: list[str], paths: list[str]) -> None:
    files = [{"name": name, "digest": examples.CONTENT_DIGEST} for name in names]
    for path, more in (("/v1/artifacts", {"kind": "ninfer"}), ("/v1/checkpoints", {})):
        problem = api.call("POST", path, json={"files": files, **more}).json()
        assert (problem["code"], [fault["path"] for fault in problem["faults"]]) == ("invalid_request", paths)


def test_every_missing_content_is_listed(api: World) -> None:
    digests = [f"sha256:{digit * 64}" for digit in "12"]
    files = [{"name": "0.ninfer", "digest": examples.CONTENT_DIGEST}]
    files += [{"name": f"{index}", "digest": digest} for index, digest in enumerate(digests, 1)]
    problem = api.call("POST", "/v1/artifacts", json={"kind": "ninfer", "files": files}).json()
    assert problem["code"] == "blobs_missing"
    assert [fault["path"] for fault in problem["faults"]] == ["$.files[1].digest", "$.files[2].digest"]
    assert all(digest in fault["message"] for digest, fault in zip(digests, problem["faults"], strict=True))


def test_checkpoints_with_other_claims_are_other_checkpoints(api: World) -> None:
    def push(**claims: str) -> tuple[int, str]:
        answer = api.call("POST", "/v1/checkpoints", json={"files": examples.CHECKPOINT["files"], **claims})
        assert answer.headers["location"] == f"/v1/checkpoints/{answer.json()['id']}"
        return answer.status_code, answer.json()["id"]

    first = push(repository="r", revision="1")
    assert first[0] == 201
    assert push(repository="r", revision="1") == (200, first[1])
    assert push(repository="r")[1] != first[1]
    assert get(api, f"/v1/checkpoints/{first[1]}")["revision"] == "1"


def test_objects_by_what_they_are(api: World) -> None:
    path = f"/v1/artifacts/{examples.CONTENT_DIGEST}/objects"
    whole = get(api, path)
    assert [item["name"] for item in whole["items"]] == ["a", "b"]
    assert whole["items"][1]["offset"] == 64
    first = get(api, path, limit="1")
    assert get(api, path, limit="1", cursor=first["next"])["items"] == [whole["items"][1]]
    assert get(api, path, name="b")["items"] == [whole["items"][1]]
    assert get(api, path, prefix="a")["items"] == [whole["items"][0]]
    assert get(api, path, format="BF16")["items"] == []
    assert get(api, path, kind="tensor", layout="contiguous-le-v1")["items"] == whole["items"]


def test_runs_objects_and_findings(api: World) -> None:
    run = get(api, f"/v1/runs/{DONE}")
    assert (run["verdict"], run["outcomes"]) == ("failed", {"failed": 1, "passed": 1})
    assert run["report"] == REPORT
    assert DONE in [item["id"] for item in get(api, "/v1/runs", verdict="failed")["items"]]
    assert DONE in [item["id"] for item in get(api, run["links"]["artifact"] + "/runs")["items"]]
    path = f"/v1/runs/{DONE}/objects"
    assert [item["name"] for item in get(api, path, outcome="failed")["items"]] == ["b"]
    assert [item["name"] for item in get(api, path, order="worst")["items"]] == ["b", "a"]
    assert [item["metrics"]["nmse"] for item in get(api, path)["items"]] == [0.25, 0.5]
    assert get(api, f"/v1/runs/{DONE}/findings")["items"] == [FINDING]
    assert get(api, f"/v1/runs/{DONE}/findings", severity="advisory")["items"] == []
    assert get(api, f"/v1/runs/{DONE}/findings", object="a", code=FINDING["code"])["items"] == [FINDING]


def test_reports_have_their_members_in_their_order(api: World) -> None:
    report = get(api, f"/v1/runs/{DONE}/report")
    order = "schema verdict artifact recipe checks coverage objects findings unlisted_findings versions"
    assert list(report) == order.split()
    assert [item["ordinal"] for item in report["objects"]] == [0, 1]
    members = (
        "ordinal name kind format layout encoding shape offset bytes sha256 identity outcome coverage reused_from "
        "evidence metrics"
    )
    assert list(report["objects"][0]) == members.split()
    assert report["findings"] == [FINDING]
    conversion = get(api, f"/v1/conversions/{examples.CONVERSION_ID}/report")
    order = "schema verdict artifact recipe objects unused_sources accounting findings versions"
    assert list(conversion) == order.split()
    assert conversion == {**CONVERSION, "objects": [{"name": "a"}], "findings": [FINDING]}
    whole = get(api, f"/v1/conversions/{examples.CONVERSION_ID}")
    assert (whole["verdict"], whole["artifact"]) == ("written", examples.CONTENT_DIGEST)


def test_a_long_report_comes_in_batches(fresh: World) -> None:
    fresh.push(examples.CONTENT)
    fresh.call("POST", "/v1/artifacts", json=examples.ARTIFACT).raise_for_status()
    job = fresh.call("POST", "/v1/jobs", json=examples.VERIFY).json()["id"]
    count = 2_500
    entry = {"encoding": None, "shape": [1], "offset": 10**30, "bytes": 4}
    with fresh.parts.database.write() as session:
        artifact = content.find_artifact(session, "default", examples.CONTENT_DIGEST)
        assert artifact is not None
        rows = (
            Object(ordinal=i, name=f"{i}\u00e9\0", kind=None, format=None, layout=None, entry=entry)
            for i in range(count)
        )
        content.list_objects(
            session, artifact.id, rows=rows, listing="listed", revision=1, model_id=None, weights_id=None
        )
        runs.save_results(
            session, job, (Result(ordinal=i, outcome="passed", metrics={"i": i}) for i in range(count))
        )
        runs.save(session, job, verdict="passed", report_head=REPORT, errors=0, advisories=0)
    early = fresh.call("GET", f"/v1/runs/{job}/report")
    assert early.json()["code"] == "not_final"  # a verdict that is not its job's counts for nothing
    with fresh.parts.database.write() as session:
        jobs.finish(session, job, "passed")
    report = get(fresh, f"/v1/runs/{job}/report")
    assert [item["metrics"]["i"] for item in report["objects"]] == list(range(count))
    assert report["objects"][7]["name"] == "7\u00e9\0"
    assert report["objects"][0]["offset"] == 10**30
    assert report["findings"] == []


def test_pieces_of_an_empty_list() -> None:
    text = "".join(pieces({"a": 1, "b": 2}, [("list", "a", [[], [{"x": 1}], [], [{"x": 2}]])]))
    assert json.loads(text) == {"a": 1, "list": [{"x": 1}, {"x": 2}], "b": 2}
    assert list(json.loads(text)) == ["a", "list", "b"]


@pytest.mark.parametrize(
    "path",
    [
        f"/v1/artifacts/{examples.CONTENT_DIGEST}",
        f"/v1/recipes/{examples.RECIPE_DIGEST}",
        f"/v1/runs/{DONE}/report",
        f"/v1/conversions/{examples.CONVERSION_ID}/report",
        "/v1/formats",
    ],
)
def test_what_never_changes_is_kept_by_clients(api: World, path: str) -> None:
    whole = api.call("GET", path)
    tag = whole.headers["etag"]
    assert whole.headers["cache-control"].startswith("private")
    for given in (tag, f'"other", W/{tag}', "*"):
        same = api.call("GET", path, headers={"If-None-Match": given})
        assert (same.status_code, same.content, same.headers["etag"]) == (304, b"", tag)
    assert api.call("GET", path, headers={"If-None-Match": '"other"'}).content == whole.content


def test_what_may_still_change_is_not(api: World) -> None:
    pending = api.call("POST", "/v1/artifacts?kind=ninfer&name=p", content=b"pending").json()
    for listing in ("pending", "unreadable"):  # what could not be read once may be read later
        with api.parts.database.write() as session:
            artifact = content.find_artifact(session, "default", pending["digest"])
            assert artifact is not None
            artifact.listing = listing
        answer = api.call("GET", pending["links"]["self"])
        assert answer.json()["listing"] == listing
        assert "etag" not in answer.headers
        assert answer.headers["cache-control"] == "no-store"


def test_formats_are_those_of_the_command_line(api: World) -> None:
    told = subprocess.run(
        [str(COMMAND), "formats", "--json", "-"], capture_output=True, text=True, check=True
    ).stdout
    assert get(api, "/v1/formats") == json.loads(told)


def test_a_slip_of_the_pen_never_reads_as_nothing_comes_from_it(fresh: World) -> None:
    for kind, wrong, right in (
        ("encoder_profile", "MAXABS_F16_RECIP_RNE_V2", "MAXABS_F16_RECIP_RNE_V1"),
        ("format", "Q4G64_F16", "Q4G64_F16S"),
    ):
        problem = fresh.call("GET", "/v1/provenance", params={kind: wrong})
        assert (problem.status_code, problem.json()["code"]) == (422, "invalid_request")
        assert problem.json()["where"] == {"in": "query", "path": kind}
        assert right in problem.json()["faults"][0]["message"]
        assert fresh.call("GET", "/v1/provenance", params={kind: right}).status_code == 200
    for kind in ("recipe", "target", "checkpoint", "tool_version"):
        assert fresh.call("GET", "/v1/provenance", params={kind: "nothing"}).json()["items"] == []
    fresh.push(examples.CONTENT)
    digest = fresh.call("POST", "/v1/artifacts", json=examples.ARTIFACT).json()["digest"]
    with fresh.parts.database.write() as session:
        artifact = content.find_artifact(session, P, digest)
        assert artifact is not None
        provenance.save(session, artifact, "claimed", artifact.id, [Fact("format", "OF_ELSEWHERE")])
    found = fresh.call("GET", "/v1/provenance", params={"format": "OF_ELSEWHERE"}).json()["items"]
    assert [item["artifact"] for item in found] == [digest]


def test_encoder_profiles(api: World) -> None:
    profiles = get(api, "/v1/encoder-profiles")["items"]
    assert sorted(profile["name"] for profile in profiles) == [
        "MAXABS_BF16S_RECIP_E4M3FN_RNE_V1",
        "MAXABS_F16_RECIP_RNE_V1",
    ]
    assert profiles[0]["formats"]


def test_artifacts_are_found_by_parts_of_their_names(api: World) -> None:
    push_files(api, "ninfer", "needle-in-hay.ninfer")
    found = get(api, "/v1/artifacts", q="NEEDLE")["items"]
    assert [item["entry"] for item in found] == ["needle-in-hay.ninfer"]
    assert get(api, "/v1/artifacts", q="needle", kind="safetensors")["items"] == []


@pytest.mark.parametrize(
    ("query", "path"),
    [
        ({"limit": "0"}, "limit"),
        ({"limit": "101"}, "limit"),
        ({"limit": "x"}, "limit"),
        ({"cursor": "nothing"}, "cursor"),
        ({"cursor": "x" * 5000}, "cursor"),
        ({"state": "queued"}, "state"),
    ],
)
def test_parameters_of_lists(api: World, query: dict[str, str], path: str) -> None:
    problem = api.call("GET", "/v1/artifacts", params=query).json()
    assert problem["code"] == "invalid_request"
    assert problem["where"] == {"in": "query", "path": path}


def test_bodies_are_strict(api: World) -> None:
    def send(text: bytes, kind: str = "application/json; charset=utf-8") -> Any:
        return api.call("POST", "/v1/jobs", content=text, headers={"Content-Type": kind}).json()

    assert send(b"\xff")["code"] == "json_malformed"
    assert send(b"[NaN]")["code"] == "json_malformed"
    assert send(b'{"type": "\\ud800"}')["code"] == "json_malformed"
    assert send(b"")["code"] == "json_malformed"
    duplicate = send(b'{"type": "verify", "checkpoints": {"a": 1, "a": 2}}')
    assert (duplicate["code"], duplicate["where"]["path"]) == ("json_member_duplicate", "$.checkpoints.a")
    assert send(b"[" * 100_000)["code"] == "body_too_large"
    assert send(b"[" * 10_000)["code"] == "json_too_deep"
    assert send(b"{}", "application/x-www-form-urlencoded")["code"] == "media_type_unsupported"
    assert send(b'{"type": 1' + b"0" * 5_000 + b"}")["code"] == "invalid_request"


def test_many_small_values_cost_no_memory(tmp_path: Path, sqlite_url: str) -> None:
    with world(tmp_path / "data", sqlite_url, max_json_bytes=16 << 20) as made:
        many = b"[" + b"[]," * 5_000_000 + b"[]]"
        for path in ("/v1/jobs", "/v1/recipes"):
            answer = made.call("POST", path, content=many, headers={"Content-Type": "application/json"})
            assert answer.json()["code"] == "body_too_large"
        files = {"kind": "ninfer", "files": [0] * 200_000}
        problem = made.call("POST", "/v1/artifacts", json=files).json()
        assert (problem["code"], len(problem["faults"])) == ("invalid_request", 1)


TEXTS = ("\0", "a\0b", "%", "_", "\\", "'", "\U0001f600", "\x1a", "x" * 2_000)


def test_any_text_may_be_looked_for(fresh: World) -> None:
    seed(fresh)
    for path, name, text in (
        (path, *case) for path, names in LISTS.items() for case in product(names, TEXTS)
    ):
        answer = fresh.call("GET", path, params={name: text})
        assert answer.status_code in (200, 422), f"{path} {name}={text!r} {answer.text}"
        if answer.is_success:
            assert answer.json()["items"] == [], f"{path} {name}={text!r}"


def test_other_addresses_and_methods(api: World) -> None:
    nowhere = api.call("GET", "/v1/nothing")
    assert (nowhere.status_code, nowhere.json()["code"]) == (404, "route_not_found")
    assert api.call("GET", "/v1/jobs/").status_code == 404
    wrong = api.call("PUT", "/v1/jobs")
    assert (wrong.status_code, wrong.json()["code"]) == (405, "method_not_allowed")
    assert "POST" in wrong.headers["allow"]
    page = api.call("GET", "/v1/nothing", headers={"Accept": "text/html"})
    assert page.json()["code"] == "route_not_found"
    person = api.call("GET", "/nothing", headers={"Accept": "text/html"})
    assert (person.status_code, person.headers["content-type"].partition(";")[0]) == (404, "text/html")


@pytest.mark.parametrize("path", ["/docs", "/redoc"])
def test_no_page_loads_scripts_from_elsewhere(api: World, path: str) -> None:
    assert api.call("GET", path).status_code == 404


@pytest.mark.parametrize("scheme", ["", "Bearer", "Basic", "bearer wrong", "Bearer \xe9"])
def test_nothing_is_open_without_the_token(api: World, scheme: str) -> None:
    headers = {"Authorization": scheme.encode("latin-1")}
    for path in ("/v1/jobs", "/openapi.json", f"/v1/runs/{DONE}/report"):
        answer = api.http.get(path, headers=headers)  # type: ignore[arg-type]
        assert (answer.status_code, answer.json()["code"]) == (401, "unauthorized")
        assert answer.headers["www-authenticate"].startswith("Bearer")


def test_health_needs_no_token_and_says_little(api: World) -> None:
    nobody_works = "no worker is alive that takes work: jobs wait"
    for path, more in (("/healthz", {}), ("/readyz", {"warnings": [nobody_works]})):
        answer = api.http.get(path, headers={"Authorization": ""})
        assert (answer.status_code, answer.json()) == (200, {"status": "ok", **more})


def test_readiness_says_what_is_missing_and_no_more(api: World) -> None:
    incoming = api.parts.blobs.root / "incoming"
    incoming.rename(incoming.with_name("away"))
    try:
        answer = api.call("GET", "/readyz")
    finally:
        incoming.with_name("away").rename(incoming)
    assert (answer.status_code, answer.json()["reasons"]) == (503, ["the content store cannot be used"])
    assert str(api.parts.blobs.root) not in answer.text


def test_every_answer_is_marked(api: World) -> None:
    for path in ("/healthz", "/v1/jobs", "/v1/nothing"):
        assert api.call("GET", path).headers["x-content-type-options"] == "nosniff"
