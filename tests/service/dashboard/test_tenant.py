"""The pages of a project: tokens made, shown once and revoked; trusts; uploads given up; campaigns counted, started, ended."""

import re
from pathlib import Path

import httpx
import pytest
from sqlalchemy import func, select

from service import auth
from service.dashboard.render import CONTENT_SECURITY
from service.records import audit, projects
from service.records.models import DEFAULT_PROJECT, Audit, Campaign, Project, Token, Trust, Upload
from service.records.types import new_id, now
from tests.service.dashboard.app import Served, served
from tests.service.dashboard.conftest import World
from tests.service.dashboard.markup import Reader
from tests.service.dashboard.seed import Seed
from tests.service.dashboard.tenant import tenant
from tests.service.dashboard.test_pages import PAGES, read

HERE = {"Sec-Fetch-Site": "same-origin"}
SECRET = re.compile(r"ng_[A-Za-z0-9_-]{40,}")


def count(served_: Served, model: type) -> int:
    with served_.parts.database.read() as session:
        return session.scalar(select(func.count()).select_from(model)) or 0


def actions(served_: Served) -> list[str]:
    """What the log says, oldest first."""
    with served_.parts.database.read() as session:
        return list(session.scalars(select(Audit.action).order_by(Audit.id)))


def test_a_token_is_shown_once_and_opens_what_it_says_until_it_is_revoked(empty: Served) -> None:
    with empty.visitor() as visitor, empty.client() as api:
        form = {"name": " ci <b> ", "read": "on", "submit": "on", "days": "30"}
        made = visitor.post("/project/tokens", data=form, headers=HERE)
        assert made.status_code == 200
        assert made.headers["cache-control"] == "no-store"
        assert made.headers["content-security-policy"] == CONTENT_SECURITY
        assert Reader(made.text).problems == []
        (secret,) = set(SECRET.findall(made.text))
        again = visitor.get("/project").text
        assert not SECRET.search(again)
        assert "ci &lt;b&gt;" in again
        assert "in 29 days" in again

        bearer = {"Authorization": f"Bearer {secret}"}
        assert api.get("/v1/jobs", headers=bearer).status_code == 200
        assert api.get("/v1/tokens", headers=bearer).status_code == 404  # an administrator's business
        session = auth.open_session(empty.parts.database, secret).secret
        cookie = {"Cookie": f"{auth.COOKIE}={session}"}
        assert api.get("/runs", headers=cookie).status_code == 200

        with empty.parts.database.read() as records:
            token = records.scalars(select(Token).where(Token.name == "ci <b>")).one()
        gone = visitor.post(f"/project/tokens/{token.id}/revoke", headers=HERE)
        assert (gone.status_code, gone.headers["location"]) == (303, "/project#tokens")
        assert api.get("/v1/jobs", headers=bearer).status_code == 401
        assert api.get("/runs", headers=cookie).status_code == 303
        assert visitor.post(f"/project/tokens/{token.id}/revoke", headers=HERE).status_code == 404
        log = visitor.get("/project").text
        assert "token.revoked" in log
        assert "scopes read submit" in read(visitor, "/project").text  # in words
        assert secret not in log
    assert [one for one in actions(empty) if one.startswith("token.")][-2:] == [
        "token.created",
        "token.revoked",
    ]


@pytest.mark.parametrize(
    ("form", "says"),
    [
        ({"name": "", "read": "on"}, "Say what the token is for"),
        ({"name": "x" * 101, "read": "on"}, "Say what the token is for"),
        ({"name": "x"}, "at least one of the scopes"),
        ({"name": "x", "read": "on", "days": "soon"}, "ends in 1 to 3,650 days"),
        ({"name": "x", "read": "on", "days": "0"}, "ends in 1 to 3,650 days"),
        ({"name": "x", "read": "on", "days": "9" * 4_000}, "ends in 1 to 3,650 days"),
        ({"name": "x", "read": "on", "days": "\u0663"}, None),  # a digit all the same: three days
    ],
)
def test_a_token_that_cannot_be_made_is_said_beside_its_form(
    empty: Served, form: dict[str, str], says: str | None
) -> None:
    with empty.visitor() as visitor:
        before = count(empty, Token)
        answer = visitor.post("/project/tokens", data=form, headers=HERE)
        if says is None:
            assert answer.status_code == 200
            return
        assert answer.status_code == 422
        assert says in answer.text
        assert Reader(answer.text).problems == []
        assert count(empty, Token) == before
        if form["name"] == "x":
            assert 'name="name" required maxlength="100" value="x"' in answer.text


def test_who_is_no_administrator_sees_usage_and_nothing_of_access(world: World) -> None:
    with world.visitor("submit") as visitor:
        page = read(visitor, "/project")
        assert "of the quota" in visitor.get("/project").text
        assert "200 GB" in page.text
        for word in ("Tokens", "ci-nightly", "Trusted issuers", "release workflow", "What was done"):
            assert word not in page.text, word
        with world.parts.database.read() as session:
            token = session.scalars(select(Token).where(Token.name == "ci-nightly")).one().id
            trust = session.scalars(select(Trust)).one().id
        before = count(world, Token)
        for path in ("/project/tokens", f"/project/tokens/{token}/revoke", f"/project/trusts/{trust}/remove"):
            data = {"name": "x", "read": "on"}
            assert visitor.post(path, data=data, headers=HERE).status_code == 404, path
    assert (count(world, Token), count(world, Trust)) == (before, 1)


def test_a_trust_is_trusted_no_longer(empty: Served) -> None:
    seed = Seed(empty.parts.database)
    tenant(seed, empty.parts.blobs.scratch, seed.artifact("a.ninfer", ["a"]))
    with empty.visitor() as visitor:
        (path,) = re.findall(r'action="(/project/trusts/[0-9a-f]{32}/remove)"', visitor.get("/project").text)
        assert visitor.post(path, headers=HERE).status_code == 303
        assert "No issuer is trusted." in read(visitor, "/project").text
        assert visitor.post(path, headers=HERE).status_code == 404


def test_the_log_is_paged(empty: Served) -> None:
    with empty.parts.database.write() as session:
        for number in range(120):
            audit.add(session, DEFAULT_PROJECT, "somebody", "thing.done", f"no. {number}")
        audit.add(session, new_id(), "somebody else", "thing.done", "of another project")
    seen: list[str] = []
    with empty.visitor() as visitor:
        address = "/project"
        for _ in range(5):
            page = visitor.get(address)
            seen += re.findall(r"no\. (\d+)<", page.text.replace("<wbr>", ""))
            assert "another project" not in page.text
            following = [link for link in Reader(page.text).links if "log=" in link]
            if not following:
                break
            address = following[-1].partition("#")[0]
    assert len(seen) == 120
    assert {int(number) for number in seen} == set(range(120))


def test_a_quota_that_is_used_up_is_said(empty: Served) -> None:
    seed = Seed(empty.parts.database)
    tenant(seed, empty.parts.blobs.scratch, seed.artifact("a.ninfer", ["a"]))
    with empty.parts.database.write() as session:
        project = session.get(Project, DEFAULT_PROJECT)
        assert project is not None
        project.quota_bytes = 56_000_000_000
    with empty.visitor("read") as visitor:
        page = read(visitor, "/project")
        assert "56.0 GB 100 % used" in page.text
        assert "nothing more comes in" in page.text
    with empty.parts.database.write() as session:
        project = session.get(Project, DEFAULT_PROJECT)
        assert project is not None
        project.quota_bytes = 1
    with empty.visitor("read") as visitor:
        assert 'width="100.0%"' in visitor.get("/project").text  # more than all does not stick out


def test_the_queue_says_where_jobs_stand_and_who_works(world: World) -> None:
    with world.visitor() as admin, world.visitor("read") as reader:
        page = read(admin, "/queue")
        for words in (
            "bulk 0 0 1",
            "alive", "draining", "silent", "gate-worker-2", "0.3.0",
            "store_away the store did not answer in time 4 times",
            "gave_up a worker died at it five times",
        ):  # fmt: skip
            assert words in page.text, words
        assert "gate-worker" not in read(reader, "/queue").text  # names of machines are the administrator's


def test_uploads_say_how_far_they_are_and_are_given_up(empty: Served) -> None:
    seed = Seed(empty.parts.database)
    seeded = tenant(seed, empty.parts.blobs.scratch, seed.artifact("a.ninfer", ["a"]))
    file = empty.parts.blobs.scratch / "incoming" / seeded.receiving.id
    path = f"/uploads/{seeded.receiving.id}/give-up"
    with empty.visitor("submit") as visitor, empty.visitor("read") as reader:
        assert "37.5 % · 20.2 GB of 54.0 GB" in read(visitor, "/uploads").text
        assert "the bytes are not what was declared" in read(visitor, "/uploads?state=failed").text
        assert reader.post(path, headers=HERE).status_code == 403
        assert file.exists()
        assert visitor.post(path, headers=HERE).status_code == 303
        assert not file.exists()
        assert "20.2 GB" not in read(visitor, "/uploads").text
        assert visitor.post(path, headers=HERE).status_code == 404


def test_a_campaign_is_counted_started_and_cancelled(empty: Served) -> None:
    seed = Seed(empty.parts.database)
    for number in range(3):
        seed.artifact(f"{number}.ninfer", ["a"])
    form = {"name": "all again", "kind": "ninfer", "full": "on", "not_verified_for_days": "7"}
    with empty.visitor("submit") as visitor:
        counted = visitor.post("/campaigns", data={**form, "count": "1"}, headers=HERE)
        assert counted.status_code == 200
        assert "It would be about 3 artifacts. Nothing was started." in Reader(counted.text).text
        assert 'value="all again"' in counted.text
        assert count(empty, Campaign) == 0
        started = visitor.post("/campaigns", data=form, headers=HERE)
        assert started.status_code == 303
        address = started.headers["location"]
        page = read(visitor, address)
        assert "0 of 3 artifacts" in page.text
        assert "not verified for days 7" in page.text
        assert visitor.post("/campaigns", data=form, headers=HERE).headers["location"] == address
        other = visitor.post("/campaigns", data={**form, "kind": ""}, headers=HERE)
        assert other.status_code == 409
        assert "is running and asks for something else" in Reader(other.text).text
        assert visitor.post(f"{address}/cancel", headers=HERE).status_code == 303
        assert "cancelled" in read(visitor, address).text
        assert visitor.post(f"/campaigns/{'0' * 32}/cancel", headers=HERE).status_code == 404
    with empty.visitor("read") as reader:
        assert "Start one" not in read(reader, "/campaigns").text
        assert reader.post("/campaigns", data=form, headers=HERE).status_code == 403
    assert count(empty, Campaign) == 1


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"name": " "}, "Give the campaign a name"),
        ({"name": "a\x00b"}, "Give the campaign a name"),
        ({"older_than_days": "-1"}, "Days are a whole number"),
        ({"not_verified_for_days": "99999"}, "Days are a whole number"),
        ({"kind": "onnx"}, "is none of ninfer, safetensors"),
        ({"recipe": "x" * 1_001}, "too long"),
        ({"basis": "<i>"}, "is none of claimed, converted, verified"),
    ],
)
def test_a_campaign_that_cannot_be_is_said_beside_its_form(
    empty: Served, change: dict[str, str], says: str
) -> None:
    with empty.visitor() as visitor:
        answer = visitor.post("/campaigns", data={"name": "x", **change}, headers=HERE)
        assert answer.status_code == 422
        assert says in answer.text
        assert Reader(answer.text).problems == []
    assert count(empty, Campaign) == 0


def test_what_belongs_to_another_project_is_not_there(world: World) -> None:
    with world.parts.database.write() as session:
        other = Project(id=new_id(), name="other", created_at=now())
        projects.add(session, other)
    token = auth.new_token(world.parts.database, other.id)
    cookie = {"Cookie": f"{auth.COOKIE}={auth.open_session(world.parts.database, token).secret}"}
    scene = world.scene
    with world.client(headers=cookie) as stranger:
        for name in ("campaign", "large", "failed", "written", "self-check passed", "hostile scheme check"):
            if name in PAGES:
                assert stranger.get(PAGES[name](scene)).status_code == 404, name
        assert "after 0.4.0" not in stranger.get("/campaigns").text
        assert "qwen3.6" not in stranger.get("/uploads").text
        assert "gave_up" not in stranger.get("/queue").text
        assert "ci-nightly" not in stranger.get("/project").text
    with world.visitor() as mine:
        assert "after 0.4.0" in mine.get("/campaigns").text
    assert count(world, Upload) == 4


def test_who_has_not_logged_in_reads_where_the_settings_let_them(tmp_path: Path) -> None:
    with served(tmp_path, anonymous_read="default") as made:
        seed = Seed(made.parts.database)
        run = seed.run(seed.artifact("a.ninfer", ["a"]), "running")
        with made.client() as anybody:
            for path in (
                "/",
                f"/runs/{run.id}",
                "/queue",
                "/uploads",
                "/campaigns",
                "/project",
                "/selfchecks",
            ):
                page = anybody.get(path)
                assert page.status_code == 200, path
                assert 'method="post"' not in page.text, path
                assert f'href="/login?next={path.replace("/", "%2F")}"' in page.text, path
            for path in (f"/jobs/{run.job_id}/cancel", "/selfchecks", "/campaigns", "/project/tokens"):
                refused = anybody.post(path, headers={"Origin": made.address})
                assert (refused.status_code, refused.headers["location"][:6]) == (303, "/login"), path
            assert 'name="token"' in anybody.get("/login").text


def test_an_empty_project_teaches_how_to_begin(empty: Served) -> None:
    with empty.visitor() as visitor:
        for path, words in (
            ("/uploads", "Nothing is on its way in"),
            ("/campaigns", "No campaign yet"),
            ("/queue", "No worker has entered yet"),
        ):
            assert words in read(visitor, path).text
        assert f"export NINFER_GATE_URL={empty.address} " in read(visitor, "/uploads").text


def test_nothing_is_shown_without_a_session(world: World) -> None:
    with world.client() as client:
        for path in ("/queue", "/uploads", "/campaigns", "/project", "/campaigns/x"):
            response: httpx.Response = client.get(path)
            assert (response.status_code, response.headers["location"]) == (303, f"/login?next={path}")
