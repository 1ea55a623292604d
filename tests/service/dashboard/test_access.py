"""Logging in and out, who may post, and where a login leads."""

import re
from http.cookies import SimpleCookie

import httpx
import pytest
from sqlalchemy.orm import Session

from service import auth
from service.records import jobs
from tests.service.dashboard.app import Browser, Served
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
    headers = {"Origin": world.address, "Cookie": f"{auth.COOKIE}={secret}"}
    with Browser(base_url=world.address, headers=headers) as client:
        assert client.get("/").status_code == 200
        assert client.post("/logout", data={"csrf": ""}).status_code == 403
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


def test_forms_of_other_sessions_do_nothing(world: World) -> None:
    job = world.scene.running.job_id
    origin = {"Origin": world.address}
    with world.visitor() as client, world.visitor() as other:
        mine, theirs = client.csrf(), other.csrf()
        assert mine != theirs
        assert mine == client.csrf()
        for csrf in ("", theirs, mine[:-1], mine + "0", "é"):
            for path in (
                f"/jobs/{job}/cancel",
                "/selfchecks",
                f"/artifacts/{world.scene.large.digest}/compare",
                "/logout",
            ):
                response = client.post(path, data={"csrf": csrf}, headers=origin)
                assert response.status_code == 403, (path, csrf)
                assert "another session" in response.text
        assert client.get("/").status_code == 200
    with world.parts.database.read() as session:
        assert not asked_to_stop(session, job)


def test_who_may_only_look_is_offered_nothing_else(world: World) -> None:
    scene, origin = world.scene, {"Origin": world.address}
    job = scene.running.job_id
    pages = [
        "/selfchecks",
        f"/artifacts/{scene.large.digest}",
        f"/runs/{scene.running.id}",
        "/uploads",
        "/queue",
    ]
    with world.visitor("read") as reader, world.visitor("submit") as submitter:
        for path in pages:
            forms = re.findall(r'<form[^>]* method="post"[^>]* action="([^"]*)"', reader.get(path).text)
            assert forms == ["/logout"], path
        assert f'action="/jobs/{job}/cancel"' in submitter.get(pages[2]).text
        for path in (f"/jobs/{job}/cancel", "/selfchecks", f"/artifacts/{scene.large.digest}/compare"):
            response = reader.post(path, headers=origin)
            assert response.status_code == 403, path
            assert "may look" in response.text
    with world.parts.database.read() as session:
        assert not asked_to_stop(session, job)


def test_a_form_with_more_members_than_ours_is_refused(world: World) -> None:
    with world.visitor() as client:
        many = {f"m{number}": "" for number in range(100)}
        for path in ("/logout", "/login", "/selfchecks"):
            response = client.post(path, data={**many, "x": "1"}, headers={"Origin": world.address})
            assert response.status_code == 400
            assert "more members" in response.text


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
