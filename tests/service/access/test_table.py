"""Who may do what: every address of the API and every kind of caller, in one table."""

import shutil
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest
from fastapi.routing import APIRoute, iter_route_contexts

from service.api.openapi import scopes_needed
from tests.service.access.conftest import OFTEN, Tenants, path_of, tenants_of
from tests.service.api.world import seed, world

OPEN = "open"  # to anybody, with or without a token
READ, SUBMIT, GATE, ADMIN = "read", "submit", "gate", "admin"
MAY = {READ: {READ}, SUBMIT: {READ, SUBMIT}, GATE: {READ, GATE}, ADMIN: {READ, SUBMIT, GATE, ADMIN}}

TABLE = """
open   GET /healthz
open   GET /readyz
own    GET /metrics
read   GET /openapi.json
submit POST /v1/blobs
read   GET /v1/blobs/{digest}
read   HEAD /v1/blobs/{digest}
read   OPTIONS /v1/uploads
submit POST /v1/uploads
read   GET /v1/uploads
submit POST /v1/uploads/parts
submit GET /v1/uploads/{upload}/parts
submit POST /v1/uploads/{upload}/complete
read   GET /v1/imports
read   GET /v1/imports/{id}
read   OPTIONS /v1/uploads/{upload}
read   GET /v1/uploads/{upload}
read   HEAD /v1/uploads/{upload}
submit PATCH /v1/uploads/{upload}
submit DELETE /v1/uploads/{upload}
submit POST /v1/artifacts
read   GET /v1/artifacts
read   GET /v1/artifacts/{digest}
read   GET /v1/artifacts/{digest}/objects
read   GET /v1/artifacts/{digest}/runs
submit POST /v1/checkpoints
read   GET /v1/checkpoints
read   GET /v1/checkpoints/{checkpoint}
submit POST /v1/recipes
read   GET /v1/recipes
read   GET /v1/recipes/{digest}
submit POST /v1/targets
read   GET /v1/targets
read   GET /v1/targets/{digest}
submit POST /v1/jobs
read   GET /v1/jobs
read   GET /v1/jobs/{job}
submit POST /v1/jobs/{job}/cancel
read   GET /v1/jobs/{job}/events
read   GET /v1/runs
read   GET /v1/runs/{run}
read   GET /v1/runs/{run}/objects
read   GET /v1/runs/{run}/findings
read   GET /v1/runs/{run}/report
read   GET /v1/conversions/{conversion}
read   GET /v1/conversions/{conversion}/objects
read   GET /v1/conversions/{conversion}/findings
read   GET /v1/conversions/{conversion}/report
read   GET /v1/conversions/{conversion}/provenance
read   HEAD /v1/conversions/{conversion}/provenance
read   GET /v1/comparisons/{comparison}
read   GET /v1/comparisons/{comparison}/objects
read   GET /v1/comparisons/{comparison}/findings
read   GET /v1/comparisons/{comparison}/report
read   GET /v1/selfchecks
read   GET /v1/selfchecks/{selfcheck}
read   GET /v1/kernels
read   GET /v1/schemes
read   GET /v1/schemes/{name}
submit POST /v1/struct-checks
read   GET /v1/scheme-checks
read   GET /v1/scheme-checks/{check}
read   GET /v1/provenance
read   GET /v1/provenance/artifacts/{digest}
read   GET /v1/provenance/artifacts/{digest}/object
read   GET /v1/provenance/tensors/{identity}
submit POST /v1/campaigns
read   GET /v1/campaigns
read   GET /v1/campaigns/{campaign}
read   GET /v1/campaigns/{campaign}/jobs
submit POST /v1/campaigns/{campaign}/cancel
read   GET /v1/formats
read   GET /v1/encoder-profiles
read   GET /v1/project
admin  DELETE /v1/project
admin  POST /v1/tokens
admin  GET /v1/tokens
admin  DELETE /v1/tokens/{token}
admin  POST /v1/trusts
admin  GET /v1/trusts
admin  DELETE /v1/trusts/{trust}
admin  GET /v1/audit
open   POST /v1/oidc/token
"""
ROWS = {(method, path): who for who, method, path in (line.split() for line in TABLE.strip().splitlines())}
CALLERS = ("none", "bad", "expired", "revoked", READ, SUBMIT, GATE, ADMIN)


def test_every_route_has_its_line(tenants: Tenants) -> None:
    """And the line says what the route asks for. Pages have a table of their own."""
    app = tenants.world.app
    pages = "service.dashboard."
    routes = {
        (method, context.path)
        for context in iter_route_contexts(app.routes)
        if isinstance(context.original_route, APIRoute)
        and not context.original_route.endpoint.__module__.startswith(pages)
        for method in context.original_route.methods
    }
    assert routes == set(ROWS)
    needed = scopes_needed(app)
    assert {row: who for row, who in ROWS.items() if who in MAY} == needed


@pytest.mark.parametrize("row", [row for row in ROWS if ROWS[row] in MAY], ids=" ".join)
def test_who_may(tenants: Tenants, row: tuple[str, str]) -> None:
    for caller in CALLERS:
        answer = asked(tenants, caller, row)
        assert verdict(answer) == expected(caller, ROWS[row]), (caller, answer.status_code, answer.text[:300])


@pytest.mark.parametrize(
    "row", [row for row in ROWS if row[0] in ("POST", "PATCH") and ROWS[row] in MAY], ids=" ".join
)
def test_refused_before_a_byte_of_the_body_is_read(tenants: Tenants, row: tuple[str, str]) -> None:
    """Ten bytes are announced and none is sent: who may not is told at once."""
    for caller in ("none", READ):
        answer = unsent(tenants, tenants.tokens[caller], *row)
        assert answer in ((401, 401) if caller == "none" else (403, 404)), caller


@pytest.fixture(scope="module")
def open_to_all(tmp_path_factory: pytest.TempPathFactory, sqlite_template: Path) -> Iterator[Tenants]:
    """The same with a project that anybody may read."""
    folder = tmp_path_factory.mktemp("open")
    shutil.copyfile(sqlite_template, folder / "records.sqlite")
    url = f"sqlite:///{folder / 'records.sqlite'}"
    with world(folder / "data", url, anonymous_read="default", **OFTEN) as made:
        seed(made)
        with tenants_of(made) as known:
            yield known


def test_anonymous_readers(open_to_all: Tenants) -> None:
    """They may read and no more, see nothing of another project, and a wrong token is no missing one."""
    for row, who in ROWS.items():
        if who in MAY:
            wanted = {READ: "yes", ADMIN: "not there"}.get(who, "not known")
            assert verdict(asked(open_to_all, "none", row)) == wanted, row
            assert verdict(asked(open_to_all, "bad", row)) == "not known", row
    assert open_to_all.call(None, "GET", "/v1/project").json()["you"] == {
        "actor": "anonymous",
        "scopes": ["read"],
        "expires_at": None,
    }


def asked(tenants: Tenants, caller: str, row: tuple[str, str]) -> httpx.Response:
    """A request without a body: whoever is let in hears what else is wrong with it."""
    method, path = row
    return tenants.call(tenants.tokens[caller], method, path_of(tenants, path))


def expected(caller: str, needed: str) -> str:
    """What the table says."""
    if caller not in MAY:
        return "not known"
    if needed in MAY[caller]:
        return "yes"
    return "not there" if needed == ADMIN else "not allowed"


def verdict(answer: httpx.Response) -> str:
    """What an answer says of its caller."""
    if answer.status_code in (401, 403):
        return {401: "not known", 403: "not allowed"}[answer.status_code]
    is_problem = answer.headers.get("content-type", "").startswith("application/problem")
    code = answer.json()["code"] if is_problem and answer.content else ""
    return "not there" if code == "route_not_found" else "yes"


def unsent(tenants: Tenants, token: str | None, method: str, path: str) -> int:
    """The status of a request whose body does not come."""
    at = urlsplit(tenants.world.address)
    connection = HTTPConnection(at.hostname or "", at.port, timeout=0.5)
    try:
        connection.putrequest(method, path_of(tenants, path))
        connection.putheader("Content-Type", "application/json")
        connection.putheader("Content-Length", "10")
        if token is not None:
            connection.putheader("Authorization", f"Bearer {token}")
        connection.endheaders()
        return connection.getresponse().status
    finally:
        connection.close()
