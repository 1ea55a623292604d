"""Logging in and out, who may post, and where a login leads."""

from http.cookies import SimpleCookie

import httpx
import pytest
from sqlalchemy.orm import Session

from service import auth
from service.records import jobs
from tests.service.dashboard.app import Served
from tests.service.dashboard.conftest import World
from tests.service.dashboard.seed import Seed


def cookie(response: httpx.Response) -> SimpleCookie:
    return SimpleCookie(response.headers["set-cookie"])


@pytest.mark.parametrize(
    "path",
    ["/", "/artifacts/x", "/runs", "/runs/x", "/jobs", "/jobs/x", "/findings", "/findings/x", "/formats", "/runs/x/objects.csv"],
)  # fmt: skip
def test_nothing_is_shown_without_a_session(world: World, path: str) -> None:
    with world.client() as client:
        for headers in (
            {},
            {"Cookie": f"{auth.COOKIE}=ng_guess"},
            {"Cookie": f"{auth.COOKIE}={world.token}"},
        ):
            response = client.get(path, headers=headers)
            assert response.status_code == 303
            assert response.headers["location"] == ("/login" if path == "/" else f"/login?next={path}")


def asked_to_stop(session: Session, job_id: str) -> bool:
    """Whether somebody wants the job to end."""
    job = jobs.get(session, job_id)
    return job is not None and job.cancel_requested


def test_login_leads_to_what_was_asked_for(world: World) -> None:
    with world.client(headers={"Origin": world.address}) as client:
        asked = client.get("/runs?state=failed").headers["location"]
        assert asked == "/login?next=/runs%3Fstate%3Dfailed"
        page = client.get(asked)
        assert 'name="next" value="/runs?state=failed"' in page.text
        response = client.post("/login", data={"token": f" {world.token}\n", "next": "/runs?state=failed"})
        assert (response.status_code, response.headers["location"]) == (303, "/runs?state=failed")
        made = cookie(response)[auth.COOKIE]
        assert made["httponly"]
        assert made["samesite"] == "strict"
        assert made["path"] == "/"
        assert not made["secure"]
        assert made["expires"]
        assert client.get("/runs?state=failed").status_code == 200
        assert client.get("/login?next=/jobs").headers["location"] == "/jobs"


def test_a_wrong_token_opens_nothing(world: World) -> None:
    with world.client(headers={"Origin": world.address}) as client:
        for token in ("", "ng_wrong", "x" * 900):
            response = client.post("/login", data={"token": token})
            assert response.status_code == 403
            assert "opens nothing here" in response.text
            assert "set-cookie" not in response.headers


@pytest.mark.parametrize(
    "target", ["//evil.example", "https://evil.example", "/\\evil.example", "/\t/evil.example", "javascript:alert(1)", "\\\\evil"]
)  # fmt: skip
def test_login_leads_nowhere_else(world: World, target: str) -> None:
    with world.client(headers={"Origin": world.address}) as client:
        response = client.post("/login", data={"token": world.token, "next": target})
        assert response.headers["location"] == "/"


def test_logging_out_ends_the_session(world: World) -> None:
    secret = world.session()
    with world.client(headers={"Origin": world.address, "Cookie": f"{auth.COOKIE}={secret}"}) as client:
        assert client.get("/").status_code == 200
        response = client.post("/logout")
        assert response.headers["location"] == "/login"
        assert cookie(response)[auth.COOKIE].value == ""
        assert client.get("/").status_code == 303


FOREIGN = (
    {},
    {"Origin": "null"},
    {"Origin": "https://evil.example"},
    {"Sec-Fetch-Site": "cross-site"},
    {"Sec-Fetch-Site": "same-site"},
    {"Sec-Fetch-Site": "none"},
)


@pytest.mark.parametrize("headers", FOREIGN, ids=str)
def test_forms_of_other_sites_do_nothing(world: World, headers: dict[str, str]) -> None:
    job = world.scene.running.job_id
    with world.visitor() as client:
        for path in ("/logout", f"/jobs/{job}/cancel", "/login"):
            response = client.post(path, data={"token": world.token}, headers=headers)
            assert response.status_code == 403
            assert "another site" in response.text
        assert client.get("/").status_code == 200
    with world.parts.database.read() as session:
        assert not asked_to_stop(session, job)


def test_cancelling_needs_a_session(world: World) -> None:
    with world.client(headers={"Origin": world.address}) as client:
        response = client.post(f"/jobs/{world.scene.running.job_id}/cancel")
        assert (response.status_code, response.headers["location"][:6]) == (303, "/login")
    with world.parts.database.read() as session:
        assert not asked_to_stop(session, world.scene.running.job_id)


def test_cancelling_a_job(empty: Served) -> None:
    seed = Seed(empty.parts.database)
    artifact = seed.artifact("a.ninfer", ["a"])
    waiting, running = seed.run(artifact, "queued"), seed.run(artifact, "running")
    with empty.visitor() as client:
        for run in (waiting, running):
            response = client.post(f"/jobs/{run.job_id}/cancel", headers={"Origin": empty.address})
            assert response.status_code == 303
        assert '<h1 id="verdict">cancelled</h1>' in client.get(f"/runs/{waiting.id}").text
        page = client.get(f"/runs/{running.id}").text
        assert "stopping" in page
        assert "<button disabled>Stopping</button>" in page
        assert client.post(f"/jobs/{'0' * 32}/cancel", headers={"Origin": empty.address}).status_code == 404


def test_links_from_other_sites_reach_who_is_logged_in(world: World) -> None:
    path = f"/runs/{world.scene.failed.id}"
    with world.client() as client:
        response = client.get(path, headers={"Sec-Fetch-Site": "cross-site"})
        assert response.status_code == 200
        assert f'<meta http-equiv="refresh" content="0; url=/login?next={path}">' in response.text
        assert world.scene.failed.artifact_id not in response.text


def test_what_the_login_needs_is_open_and_kept_for_a_year(world: World) -> None:
    with world.client() as client:
        page = client.get("/login").text
        for name, kind in (
            ("pages.css", "text/css"),
            ("pages.js", "text/javascript"),
            ("icon.svg", "image/svg+xml"),
        ):
            address = page.partition(f"/static/{name}")[2].partition('"')[0]
            response = client.get(f"/static/{name}{address}")
            assert response.status_code == 200
            assert response.headers["content-type"].startswith(kind)
            assert "immutable" in response.headers["cache-control"]
            assert response.headers["x-content-type-options"] == "nosniff"
