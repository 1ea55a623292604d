"""How to get every error that the OpenAPI document declares: one request for each (method, path, code)."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from functools import partial
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import httpx
from sqlalchemy.exc import OperationalError

from service import auth
from service.api import examples
from service.records.database import Database
from tests.service.api.upload_provocations import UPLOADS, begin_upload
from tests.service.api.world import World

Provocation = Callable[[World], httpx.Response]

NO_DIGEST: Final = f"sha256:{'0' * 64}"
NO_ID: Final = "0" * 32
JSON: Final = {"Content-Type": "application/json"}


def example_call(
    api: World,
    operation: dict[str, Any],
    method: str,
    path: str,
    kind: str | None = None,
    body: Any = None,
) -> httpx.Response:
    """The request that an operation's examples make."""
    query: dict[str, str] = {}
    headers: dict[str, str] = {} if kind is None else {"Content-Type": kind}
    for parameter in operation.get("parameters", ()):
        given = parameter["schema"].get("examples") or [parameter.get("example")]
        match parameter["in"]:
            case "path":
                path = path.replace(f"{{{parameter['name']}}}", given[0])
            case "query" if given[0] is not None:
                query[parameter["name"]] = str(given[0])
            case "header" if given[0] is not None:
                headers[parameter["name"]] = given[0]
    if kind == "application/json":
        return api.call(method, path, json=body, headers=headers, params=query)
    return api.call(method, path, content=body, headers=headers, params=query)


class _Broken:
    """A database that fails in this way."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    def read(self) -> AbstractContextManager[Any]:
        """Raises it."""
        raise self._error

    write = read


@contextmanager
def _without_token(api: World) -> Iterator[None]:
    token = api.http.headers.pop("Authorization")
    try:
        yield
    finally:
        api.http.headers["Authorization"] = token


def _with_broken_database(error: Exception, api: World) -> AbstractContextManager[None]:
    return api.with_database(_Broken(error))


@contextmanager
def _with_token_that_may_read(api: World) -> Iterator[None]:
    before = api.http.headers["Authorization"]
    api.http.headers["Authorization"] = f"Bearer {auth.new_token(api.parts.database, scopes=('read',))}"
    try:
        yield
    finally:
        api.http.headers["Authorization"] = before


@contextmanager
def _with_one_request_a_day(api: World) -> Iterator[None]:
    with api.with_settings(rate_limit="1/day"):
        api.call("GET", "/v1/project").raise_for_status()
        yield


def shared() -> dict[str, Callable[[World], AbstractContextManager[None]]]:
    """What makes a route of the API answer with an error that all of them share, or all that do more than read."""
    away = OperationalError("SELECT 1", {}, Exception("gone"))
    return {
        "unauthorized": _without_token,
        "scope_missing": _with_token_that_may_read,
        "rate_limited": _with_one_request_a_day,
        "internal": partial(_with_broken_database, RuntimeError("a fault of ours")),
        "unavailable": partial(_with_broken_database, away),
    }


def get(path: str, method: str = "GET", **more: Any) -> Provocation:
    """A request without a body."""
    return lambda api: api.call(method, path, **more)


def post(path: str, json: Any = None, **more: Any) -> Provocation:
    """A request with a JSON body."""
    return lambda api: api.call("POST", path, json=json, **more)


def raw(path: str, content: bytes, **headers: str) -> Provocation:
    """A request with a body as it is."""
    return lambda api: api.call("POST", path, content=content, headers=headers)


def _bodies(path: str, good: dict[str, Any], wrong: Any) -> dict[str, Provocation]:
    """What every JSON body can get wrong."""
    return {
        "json_malformed": lambda api: api.call("POST", path, content=b"{", headers=JSON),
        "json_too_deep": lambda api: api.call("POST", path, content=b"[" * 17 + b"]" * 17, headers=JSON),
        "json_member_duplicate": lambda api: api.call(
            "POST", path, content=b'{"type": 1, "type": 2}', headers=JSON
        ),
        "body_too_large": post(path, {**good, "more": "x" * 20_000}),
        "media_type_unsupported": raw(path, b"{}", **{"Content-Type": "text/plain"}),
        "invalid_request": post(path, wrong),
    }


def _files(path: str, good: dict[str, Any]) -> dict[str, Provocation]:
    """What every list of files can get wrong."""
    one = good["files"][0]
    return {
        "too_many_files": post(path, {**good, "files": [{**one, "name": f"{i}"} for i in range(4)]}),
        "blobs_missing": post(path, {**good, "files": [{**one, "digest": NO_DIGEST}]}),
    }


def _content_lost(method: str, api: World) -> httpx.Response:
    """Somebody removed it from the disk."""
    content = api.call("POST", "/v1/blobs", content=b"about to be lost").json()
    api.parts.blobs.path(content["digest"].removeprefix("sha256:")).unlink()
    return api.call(method, f"/v1/blobs/{content['digest']}")


def _paused(path: str, content_type: str) -> Provocation:
    """A body that stops in the middle: one byte of ten comes, and then nothing until the service has had enough."""

    def provoke(api: World) -> httpx.Response:
        at = urlsplit(api.address)
        with closing(HTTPConnection(at.hostname or "", at.port, timeout=30)) as connection:
            connection.putrequest("POST", path)
            connection.putheader("Authorization", f"Bearer {api.token}")
            connection.putheader("Content-Type", content_type)
            connection.putheader("Content-Length", "10")
            connection.endheaders()
            connection.send(b" ")
            answer = connection.getresponse()
            return httpx.Response(answer.status, headers=answer.getheaders(), content=answer.read())

    return provoke


def _storage_failed(send: Provocation) -> Provocation:
    """The folder for incoming content is gone, and a file in its place."""

    def provoke(api: World) -> httpx.Response:
        incoming = api.parts.blobs.scratch / "incoming"
        aside = incoming.rename(incoming.with_name("aside"))
        incoming.touch()
        try:
            return send(api)
        finally:
            incoming.unlink()
            aside.rename(incoming)

    return provoke


def _kind_conflict(api: World) -> httpx.Response:
    files = [{"name": "model.safetensors", "digest": examples.CONTENT_DIGEST}]
    return api.call("POST", "/v1/artifacts", json={"kind": "safetensors", "files": files})


def _key_reused(api: World) -> httpx.Response:
    headers = {"Idempotency-Key": "provoked"}
    api.call("POST", "/v1/jobs", json=examples.VERIFY, headers=headers).raise_for_status()
    return api.call("POST", "/v1/jobs", json=examples.VERIFY_PARITY, headers=headers)


def _no_report(path: str, body: dict[str, Any], method: str = "GET") -> Provocation:
    """The report of a job that was cancelled before it ran."""

    def provoke(api: World) -> httpx.Response:
        job = api.call("POST", "/v1/jobs", json=body).json()
        api.call("POST", f"/v1/jobs/{job['id']}/cancel").raise_for_status()
        return api.call(method, path.format(job["id"]))

    return provoke


def _not_final(path: str, body: dict[str, Any], method: str = "GET") -> Provocation:
    def provoke(api: World) -> httpx.Response:
        return api.call(method, path.format(api.call("POST", "/v1/jobs", json=body).json()["id"]))

    return provoke


def _not_ready(api: World) -> httpx.Response:
    with api.with_database(Database(f"sqlite:///{Path(api.parts.blobs.root, 'nothing', 'there')}")):
        return api.call("GET", "/readyz")


def _unknown_and_malformed(
    code: str, path: str, nothing: str, method: str = "GET"
) -> dict[tuple[str, str, str], Provocation]:
    """For a path that ends in, or goes through, the name of a thing: another thing, and no name at all."""
    begin, rest = path.split("{", 1)
    end = rest.split("}", 1)[1]
    return {
        (method.lower(), path, code): get(f"{begin}{nothing}{end}", method),
        (method.lower(), path, "invalid_request"): get(f"{begin}nothing{end}", method),
    }


OBJECT: Final = "/v1/provenance/artifacts/{digest}/object"
CONVERT: Final = {**examples.CONVERT, "recipe": examples.RECIPE_DIGEST}
JOBS: Final[dict[str, Provocation]] = {
    **_bodies("/v1/jobs", examples.VERIFY, {**examples.VERIFY, "unknown": 1}),
    "check_unknown": post("/v1/jobs", {**examples.VERIFY, "checks": ["nothing"]}),
    "reference_unknown": post("/v1/jobs", {**examples.VERIFY, "artifact": NO_DIGEST}),
    "blobs_missing": post("/v1/jobs", {**examples.VERIFY, "inputs": {"a": NO_DIGEST}}),
    "recipe_faulty": post("/v1/jobs", {**CONVERT, "recipe": {"schema": "another"}}),
    "recipe_mismatch": post("/v1/jobs", {**CONVERT, "checkpoints": {"other": examples.CHECKPOINT_ID}}),
    "idempotency_key_reused": _key_reused,
}
CAMPAIGNS: Final[dict[str, Provocation]] = {
    **_bodies("/v1/campaigns", examples.CAMPAIGN, {**examples.CAMPAIGN, "unknown": 1}),
    "check_unknown": post("/v1/campaigns", {"name": "n", "verify": {"checks": ["nothing"]}}),
    "reference_unknown": post("/v1/campaigns", {"name": "n", "verify": {"checkpoints": {"base": NO_ID}}}),
    "blobs_missing": post("/v1/campaigns", {"name": "n", "verify": {"inputs": {"a": NO_DIGEST}}}),
    "recipe_mismatch": post(
        "/v1/campaigns",
        {
            "name": "n",
            "verify": {"recipe": examples.RECIPE_DIGEST, "checkpoints": {"other": examples.CHECKPOINT_ID}},
        },
    ),
    "campaign_running": lambda api: [
        api.call("POST", "/v1/campaigns", json={"name": "n", "priority": priority}) for priority in (1, 2)
    ][1],
}
ARTIFACTS: Final[dict[str, Provocation]] = {
    **_bodies("/v1/artifacts", examples.ARTIFACT, {"kind": "gguf", "files": []}),
    **_files("/v1/artifacts", examples.ARTIFACT),
    "digest_header_malformed": raw(
        "/v1/artifacts?kind=ninfer&name=a.ninfer", b"x", **{"Repr-Digest": "sha-256"}
    ),
    "digest_mismatch": raw(
        "/v1/artifacts?kind=ninfer&name=a.ninfer", b"x", **{"Repr-Digest": examples.REPR_DIGEST}
    ),
    "entry_unclear": raw("/v1/artifacts?kind=safetensors&name=a.ninfer", b"x"),
    "artifact_kind_conflict": _kind_conflict,
    "storage_failed": _storage_failed(raw("/v1/artifacts?kind=ninfer&name=a.ninfer", b"never kept")),
}
BLOBS: Final[dict[str, Provocation]] = {
    "digest_header_malformed": raw("/v1/blobs", b"x", **{"Repr-Digest": "sha-256=x"}),
    "body_too_large": raw("/v1/blobs", bytes((9 << 20) + 1)),
    "media_type_unsupported": raw("/v1/blobs", b"x", **{"Content-Encoding": "gzip"}),
    "digest_mismatch": raw("/v1/blobs", b"x", **{"Repr-Digest": examples.REPR_DIGEST}),
    "storage_failed": _storage_failed(raw("/v1/blobs", b"never kept")),
}
PAGES: Final = (
    "/v1/artifacts",
    "/v1/checkpoints",
    "/v1/recipes",
    "/v1/targets",
    "/v1/provenance",
    "/v1/jobs",
    "/v1/runs",
    "/v1/selfchecks",
    "/v1/kernels",
    "/v1/schemes",
    "/v1/scheme-checks",
    "/v1/campaigns",
    "/v1/tokens",
    "/v1/trusts",
    "/v1/audit",
    "/v1/uploads",
    "/v1/imports",
)
ACCESS: Final = {
    "/v1/tokens": _bodies("/v1/tokens", examples.TOKEN, {"name": "n", "scopes": ["everything"]}),
    "/v1/trusts": _bodies("/v1/trusts", examples.TRUST_OIDC, {**examples.TRUST_OIDC, "claims": {"iss": "x"}}),
    "/v1/oidc/token": {
        **_bodies("/v1/oidc/token", {}, {"token": 1}),
        "identity_refused": post("/v1/oidc/token", examples.IDENTITY_SENT),
    },
}

PROVOCATIONS: Final[dict[tuple[str, str, str], Provocation]] = {
    **UPLOADS,
    ("post", "/v1/uploads", "storage_failed"): _storage_failed(begin_upload),
    **{
        ("post", "/v1/uploads/parts", code): provoke
        for code, provoke in _bodies(
            "/v1/uploads/parts", examples.PARTS, {**examples.PARTS, "unknown": 1}
        ).items()
    },
    **{("post", "/v1/blobs", code): provoke for code, provoke in BLOBS.items()},
    **{("post", "/v1/artifacts", code): provoke for code, provoke in ARTIFACTS.items()},
    **{
        ("post", "/v1/checkpoints", code): provoke
        for code, provoke in {
            **_bodies("/v1/checkpoints", examples.CHECKPOINT, {"files": []}),
            **_files("/v1/checkpoints", examples.CHECKPOINT),
        }.items()
    },
    **{
        ("post", path, code): provoke
        for path, provocations in ACCESS.items()
        for code, provoke in provocations.items()
    },
    **_unknown_and_malformed("token_not_found", "/v1/tokens/{token}", NO_ID, "DELETE"),
    **_unknown_and_malformed("trust_not_found", "/v1/trusts/{trust}", NO_ID, "DELETE"),
    ("delete", "/v1/project", "invalid_request"): get("/v1/project", "DELETE"),
    ("delete", "/v1/project", "project_protected"): get(
        "/v1/project", "DELETE", params={"confirm": "default"}
    ),
    ("post", "/v1/recipes", "body_too_large"): post("/v1/recipes", {"more": "x" * 20_000}),
    ("post", "/v1/recipes", "media_type_unsupported"): raw("/v1/recipes", b"{}"),
    ("post", "/v1/recipes", "recipe_faulty"): post("/v1/recipes", {}),
    ("post", "/v1/recipes", "target_not_found"): post(
        "/v1/recipes", examples.RECIPE, params={"target": NO_DIGEST}
    ),
    ("post", "/v1/recipes", "invalid_request"): post(
        "/v1/recipes", examples.RECIPE, params={"target": "nothing"}
    ),
    ("post", "/v1/targets", "body_too_large"): post("/v1/targets", {"more": "x" * 20_000}),
    ("post", "/v1/targets", "media_type_unsupported"): raw("/v1/targets", b"{}"),
    ("post", "/v1/targets", "target_faulty"): post("/v1/targets", {}),
    ("post", "/v1/struct-checks", "body_too_large"): post("/v1/struct-checks", {"more": "x" * 20_000}),
    ("post", "/v1/struct-checks", "media_type_unsupported"): raw("/v1/struct-checks", b"{}"),
    ("get", "/v1/schemes/{name}", "scheme_not_found"): get("/v1/schemes/Q4G64_F16S"),
    ("get", "/v1/schemes/{name}", "invalid_request"): get("/v1/schemes/gptq", params={"shape": "4096 x 1"}),
    **{("post", "/v1/jobs", code): provoke for code, provoke in JOBS.items()},
    **{("post", "/v1/campaigns", code): provoke for code, provoke in CAMPAIGNS.items()},
    **_unknown_and_malformed("campaign_not_found", "/v1/campaigns/{campaign}", NO_ID),
    **_unknown_and_malformed("campaign_not_found", "/v1/campaigns/{campaign}/jobs", NO_ID),
    **_unknown_and_malformed("campaign_not_found", "/v1/campaigns/{campaign}/cancel", NO_ID, "POST"),
    **{("get", path, "invalid_request"): get(path, params={"unknown": "1"}) for path in PAGES},
    **_unknown_and_malformed("blob_not_found", "/v1/blobs/{digest}", NO_DIGEST, "HEAD"),
    **_unknown_and_malformed("blob_not_found", "/v1/blobs/{digest}", NO_DIGEST),
    ("post", "/v1/blobs", "too_slow"): _paused("/v1/blobs", "application/octet-stream"),
    **{
        ("post", path, "too_slow"): _paused(path, JSON["Content-Type"])
        for path in (
            "/v1/artifacts",
            "/v1/checkpoints",
            "/v1/recipes",
            "/v1/targets",
            "/v1/jobs",
            "/v1/campaigns",
            "/v1/struct-checks",
            *ACCESS,
        )
    },
    ("get", "/v1/blobs/{digest}", "content_lost"): partial(_content_lost, "GET"),
    ("head", "/v1/blobs/{digest}", "content_lost"): partial(_content_lost, "HEAD"),
    ("get", "/v1/blobs/{digest}", "range_not_satisfiable"): get(
        f"/v1/blobs/{examples.CONTENT_DIGEST}", headers={"Range": "bytes=1000000-"}
    ),
    **_unknown_and_malformed("artifact_not_found", "/v1/artifacts/{digest}", NO_DIGEST),
    **_unknown_and_malformed("artifact_not_found", "/v1/artifacts/{digest}/objects", NO_DIGEST),
    **_unknown_and_malformed("artifact_not_found", "/v1/artifacts/{digest}/runs", NO_DIGEST),
    **_unknown_and_malformed("checkpoint_not_found", "/v1/checkpoints/{checkpoint}", NO_ID),
    **_unknown_and_malformed("recipe_not_found", "/v1/recipes/{digest}", NO_DIGEST),
    **_unknown_and_malformed("target_not_found", "/v1/targets/{digest}", NO_DIGEST),
    **_unknown_and_malformed("artifact_not_found", "/v1/provenance/artifacts/{digest}", NO_DIGEST),
    ("get", OBJECT, "artifact_not_found"): get(OBJECT.format(digest=NO_DIGEST), params={"name": "a"}),
    ("get", OBJECT, "object_not_found"): get(
        OBJECT.format(digest=examples.CONTENT_DIGEST), params={"name": "not there"}
    ),
    ("get", OBJECT, "invalid_request"): get(OBJECT.format(digest=examples.CONTENT_DIGEST)),
    ("get", "/v1/provenance/tensors/{identity}", "invalid_request"): get("/v1/provenance/tensors/nothing"),
    **_unknown_and_malformed("job_not_found", "/v1/jobs/{job}", NO_ID),
    **_unknown_and_malformed("job_not_found", "/v1/jobs/{job}/events", NO_ID),
    **_unknown_and_malformed("job_not_found", "/v1/jobs/{job}/cancel", NO_ID, "POST"),
    **_unknown_and_malformed("run_not_found", "/v1/runs/{run}", NO_ID),
    **_unknown_and_malformed("run_not_found", "/v1/runs/{run}/objects", NO_ID),
    **_unknown_and_malformed("run_not_found", "/v1/runs/{run}/findings", NO_ID),
    **_unknown_and_malformed("run_not_found", "/v1/runs/{run}/report", NO_ID),
    **_unknown_and_malformed("conversion_not_found", "/v1/conversions/{conversion}", NO_ID),
    **_unknown_and_malformed("conversion_not_found", "/v1/conversions/{conversion}/objects", NO_ID),
    **_unknown_and_malformed("conversion_not_found", "/v1/conversions/{conversion}/findings", NO_ID),
    **_unknown_and_malformed("conversion_not_found", "/v1/conversions/{conversion}/report", NO_ID),
    **_unknown_and_malformed("conversion_not_found", "/v1/conversions/{conversion}/provenance", NO_ID),
    ("get", "/v1/conversions/{conversion}/provenance", "not_final"): _not_final(
        "/v1/conversions/{}/provenance", CONVERT
    ),
    ("get", "/v1/conversions/{conversion}/provenance", "no_report"): _no_report(
        "/v1/conversions/{}/provenance", CONVERT
    ),
    **_unknown_and_malformed(
        "conversion_not_found", "/v1/conversions/{conversion}/provenance", NO_ID, "HEAD"
    ),
    ("head", "/v1/conversions/{conversion}/provenance", "not_final"): _not_final(
        "/v1/conversions/{}/provenance", CONVERT, "HEAD"
    ),
    ("head", "/v1/conversions/{conversion}/provenance", "no_report"): _no_report(
        "/v1/conversions/{}/provenance", CONVERT, "HEAD"
    ),
    **_unknown_and_malformed("selfcheck_not_found", "/v1/selfchecks/{selfcheck}", NO_ID),
    **_unknown_and_malformed("scheme_check_not_found", "/v1/scheme-checks/{check}", NO_ID),
    **_unknown_and_malformed("comparison_not_found", "/v1/comparisons/{comparison}", NO_ID),
    **_unknown_and_malformed("comparison_not_found", "/v1/comparisons/{comparison}/objects", NO_ID),
    **_unknown_and_malformed("comparison_not_found", "/v1/comparisons/{comparison}/findings", NO_ID),
    **_unknown_and_malformed("comparison_not_found", "/v1/comparisons/{comparison}/report", NO_ID),
    ("get", "/v1/comparisons/{comparison}/report", "not_final"): _not_final(
        "/v1/comparisons/{}/report", examples.COMPARE
    ),
    ("get", "/v1/comparisons/{comparison}/report", "no_report"): _no_report(
        "/v1/comparisons/{}/report", examples.COMPARE
    ),
    ("get", "/v1/runs/{run}/report", "not_final"): _not_final("/v1/runs/{}/report", examples.VERIFY),
    ("get", "/v1/runs/{run}/report", "no_report"): _no_report("/v1/runs/{}/report", examples.VERIFY),
    ("get", "/v1/conversions/{conversion}/report", "not_final"): _not_final(
        "/v1/conversions/{}/report", CONVERT
    ),
    ("get", "/v1/conversions/{conversion}/report", "no_report"): _no_report(
        "/v1/conversions/{}/report", CONVERT
    ),
    ("get", "/readyz", "not_ready"): _not_ready,
    ("get", "/metrics", "route_not_found"): lambda api: api.http.get(
        "/metrics", headers={"Authorization": ""}
    ),
}
