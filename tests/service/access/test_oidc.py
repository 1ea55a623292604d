"""Signed identities of a CI, against an issuer on this machine: who is let in, for how long, and everybody who is not."""

import base64
import json
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import jwt
import pytest

from service import auth, issuers, trusts
from service.records import projects
from service.records.models import Project
from service.records.types import now
from tests.service.access.conftest import OFTEN
from tests.service.access.issuer import AUDIENCE, CLAIMS, Issuer, issuer, private_key, public_jwk
from tests.service.api.world import World, world

LOCAL = {"outbound_private": ("127.0.0.0/8",)}
HOUR = timedelta(hours=1)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory, sqlite_template: Path) -> Iterator[World]:
    """A service that may ask addresses of this machine."""
    folder = tmp_path_factory.mktemp("oidc")
    (folder / "records.sqlite").write_bytes(sqlite_template.read_bytes())
    with world(folder / "data", f"sqlite:///{folder / 'records.sqlite'}", **LOCAL, **OFTEN) as running:
        yield running


@pytest.fixture
def ci() -> Iterator[Issuer]:
    """An issuer that nobody has asked yet."""
    with issuer() as running:
        yield running


def until(true: Callable[[], object]) -> None:
    """Wait for it, for a few seconds."""
    end = time.monotonic() + 5
    while not true():
        assert time.monotonic() < end
        time.sleep(0.01)


def trusted(made: World, ci: Issuer, **changes: Any) -> str:
    """The id of a new trust."""
    answer = made.call("POST", "/v1/trusts", json=ci.trust(**changes))
    assert answer.status_code == 201, answer.text
    return str(answer.json()["id"])


def shown(made: World, identity: str, **more: str) -> httpx.Response:
    """The identity is shown, without any token."""
    body = {"token": identity, **more}
    return made.http.post("/v1/oidc/token", json=body, headers={"Authorization": ""})


def test_let_in_for_an_hour_with_the_scopes_of_the_trust(made: World, ci: Issuer) -> None:
    trust = trusted(made, ci)
    answer = shown(made, ci.sign())
    assert answer.status_code == 201, answer.text
    told = answer.json()
    assert (told["project"], told["scopes"]) == ("default", ["read", "submit"])
    left = datetime.fromisoformat(told["expires_at"]) - now()
    assert timedelta(minutes=59) < left <= HOUR
    headers = {"Authorization": f"Bearer {told['token']}"}
    you = made.call("GET", "/v1/project", headers=headers).json()["you"]
    assert you["scopes"] == ["read", "submit"]
    assert you["actor"].startswith("identity repo:example/example:ref:refs/heads/main (")
    assert made.call("GET", "/v1/tokens", headers=headers).status_code == 404
    with pytest.raises(auth.Unauthorized):
        auth.open_session(made.parts.database, told["token"])  # no person, no pages
    entry = made.call("GET", "/v1/audit", params={"action": "identity.admitted"}).json()["items"][0]
    assert entry["actor"] == you["actor"]
    assert entry["detail"]["repository"] == "example/example"
    assert entry["request_id"]
    assert made.call("DELETE", f"/v1/trusts/{trust}").status_code == 204
    assert made.call("GET", "/v1/project", headers=headers).status_code == 401
    assert shown(made, ci.sign()).status_code == 401


@pytest.mark.parametrize("algorithm", ["RS512", "PS256", "ES256", "ES384", "ES512", "EdDSA"])
def test_algorithms(made: World, ci: Issuer, algorithm: str) -> None:
    trusted(made, ci)
    ci.keys = [public_jwk(private_key(algorithm), "one", algorithm)]
    assert shown(made, ci.sign(algorithm)).status_code == 201


def refusals(ci: Issuer) -> dict[str, str]:
    """Identities that nobody should take, by what is wrong with them."""
    moment = datetime.now(UTC)
    good = ci.sign()
    header, payload, signature = good.split(".")

    def spelled(document: Any) -> str:
        return base64.urlsafe_b64encode(json.dumps(document).encode()).decode().rstrip("=")

    claims = jwt.decode(good, options={"verify_signature": False})
    public = json.dumps(ci.keys[0])
    changed = spelled({**claims, "repository": "example/example", "environment": "x"})
    return {
        "expired": ci.sign(exp=moment - timedelta(minutes=1)),
        "not yet": ci.sign(nbf=moment + timedelta(minutes=2)),
        "from the future": ci.sign(iat=moment + timedelta(minutes=2)),
        "never expires": ci.sign(exp=None),
        "no iat": ci.sign(iat=None),
        "no subject": ci.sign(sub=None),
        "no audience": ci.sign(aud=None),
        "another audience": ci.sign(aud="https://another.example"),
        "another issuer": ci.sign(iss="https://another.example"),
        "no issuer": ci.sign(iss=None),
        "an issuer that is no text": f"{header}.{spelled({**claims, 'iss': 1})}.{signature}",
        "another repository": ci.sign(repository="example/other"),
        "a longer repository": ci.sign(repository="example/example2"),
        "no repository": ci.sign(repository=None),
        "a repository of another type": ci.sign(repository=1),
        "another key": ci.sign(number=1),
        "an unknown key id": ci.sign(kid="two"),
        "a changed claim": f"{header}.{changed}.{signature}",
        "no signature": f"{header}.{payload}.",
        "none": f"{spelled({'alg': 'none', 'kid': 'one'})}.{payload}.",
        "None": f"{spelled({'alg': 'None', 'kid': 'one'})}.{payload}.",
        "the public key as a secret": jwt.encode(claims, "x" * 64, "HS256", {"kid": "one"}),
        "a key of its own": jwt.encode(
            claims, private_key("RS256", 1), "RS256", {"kid": "one", "jwk": json.loads(public)}
        ),
        "an address of keys": jwt.encode(
            claims, private_key("RS256", 1), "RS256", {"kid": "one", "jku": f"{ci.address}/keys"}
        ),
        "critical": jwt.encode(claims, private_key("RS256"), "RS256", {"kid": "one", "crit": ["exp"]}),
        "another algorithm than the key's": jwt.encode(claims, private_key("ES256"), "ES256", {"kid": "one"}),
        "an algorithm that is no text": f"{spelled({'alg': ['RS256'], 'kid': 'one'})}.{payload}.{signature}",
        "an issuer that is half a character": f"{header}.{spelled({**claims, 'iss': chr(0xD800)})}.{signature}",
        "a subject that is half a character": ci.sign(sub="\ud800"),
        "a reference that is half a character": ci.sign(ref="\ud800"),
        "a claim given twice": twice(ci),
        "two parts": f"{header}.{payload}",
        "five parts": f"{good}.x.y",
        "nothing": "x",
        "white space inside": f"{header} .{payload}.{signature}",
        "no text": "\ud7ff\0",
        "too long": ci.sign(more="x" * 12_100),
        "a number": f"{spelled(1)}.{spelled(1)}.{signature}",
        "nested": f"{spelled({'alg': 'RS256'})}.{base64.urlsafe_b64encode(b'[' * 9_000).decode()}.{signature}",
    }


def twice(ci: Issuer) -> str:
    """Signed, with a repository that one reader takes and another one that the next does."""

    class Twice(json.JSONEncoder):
        def encode(self, o: Any) -> str:
            whole = super().encode(o)
            return f'{whole[:-1]},"repository":"{CLAIMS["repository"]}"}}' if "repository" in o else whole

    claims = jwt.decode(ci.sign(repository="example/other"), options={"verify_signature": False})
    return jwt.encode(claims, private_key("RS256"), "RS256", {"kid": "one"}, Twice)


def test_what_an_identity_says_of_itself_is_harmless(made: World, ci: Issuer) -> None:
    trusted(made, ci)
    told = shown(made, ci.sign(sub="\0\x1b[2J\n\u202e" * 30, ref="\0" * 300, environment=10**30)).json()
    you = made.call("GET", "/v1/project", headers={"Authorization": f"Bearer {told['token']}"}).json()["you"]
    entry = made.call("GET", "/v1/audit", params={"action": "identity.admitted"}).json()["items"][0]
    for said in (you["actor"], *map(str, entry["detail"].values())):
        assert said.isprintable()
    assert len(you["actor"]) < 200


def test_a_body_of_somebody_unknown_is_small(made: World) -> None:
    assert shown(made, "x", project="y" * 70_000).status_code == 413


def test_nobody_else(made: World, ci: Issuer) -> None:
    trusted(made, ci)
    assert shown(made, ci.sign()).status_code == 201
    said = set()
    for why, identity in refusals(ci).items():
        answer = shown(made, identity)
        assert answer.status_code in ((401, 422) if why == "too long" else (401,)), (why, answer.text)
        if answer.status_code == 401:
            said.add(answer.text.replace(answer.json()["request_id"], "ID"))
        assert identity not in answer.text or len(identity) < 3, why
    assert len(said) == 1  # whatever is wrong, the same is said
    assert shown(made, ci.sign()).status_code == 201


def test_a_published_secret_signs_nothing(made: World, ci: Issuer) -> None:
    """A symmetric key in an issuer's list, or one for encryption, or a short one, is passed over."""
    trusted(made, ci)
    secret = base64.urlsafe_b64encode(b"x" * 64).decode().rstrip("=")
    ci.keys = [
        {"kty": "oct", "k": secret, "kid": "one", "alg": "HS256", "use": "sig"},
        public_jwk(private_key("RS256"), "enc", "RS256", use="enc"),
        {"kty": "RSA", "n": "AQAB", "e": "AQAB", "kid": "short"},
        {"kty": "EC", "crv": "P-256", "x": "x", "y": "y", "kid": "broken"},
        {"kty": ["RSA"], "kid": 1},
        "nothing",
    ]
    claims = jwt.decode(ci.sign(), options={"verify_signature": False})
    assert shown(made, jwt.encode(claims, b"x" * 64, "HS256", {"kid": "one"})).status_code == 401
    assert shown(made, ci.sign(kid="enc")).status_code == 401
    assert shown(made, ci.sign(kid="short")).status_code == 401


def test_nobody_is_asked_whom_no_project_trusts(made: World, ci: Issuer) -> None:
    assert shown(made, ci.sign()).status_code == 401
    assert ci.asked == []


def test_keys_that_change(made: World, ci: Issuer, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are asked for once; a key id that is not known asks once more, and not again for a while."""
    trusted(made, ci)
    for _ in range(3):
        assert shown(made, ci.sign()).status_code == 201
    assert len(ci.asked) == 2  # the discovery document and the keys
    ci.keys = [public_jwk(private_key("RS256", 1), "two", "RS256")]
    assert shown(made, ci.sign(kid="two", number=1)).status_code == 401  # too soon after the last time
    moment = issuers.time.monotonic()
    monkeypatch.setattr(issuers.time, "monotonic", lambda: moment + 31)
    assert shown(made, ci.sign(kid="two", number=1)).status_code == 201
    assert shown(made, ci.sign()).status_code == 401  # the old one is gone
    for number in range(20):
        assert shown(made, ci.sign(kid=f"made up {number}")).status_code == 401
    assert len(ci.asked) == 4
    monkeypatch.setattr(issuers.time, "monotonic", lambda: moment + 31 + 3_601)
    ci.keys = []
    assert shown(made, ci.sign(kid="two", number=1)).status_code == 401  # keys are not kept for ever
    assert len(ci.asked) == 6


def test_one_key_needs_no_name(made: World, ci: Issuer) -> None:
    trusted(made, ci)
    ci.keys = [public_jwk(private_key("RS256"), None, "RS256")]
    assert shown(made, ci.sign(kid=None)).status_code == 201


@pytest.mark.parametrize("spoiled", ["another issuer", "keys elsewhere", "redirect", "no keys"])
def test_an_issuer_that_is_no_use(made: World, ci: Issuer, spoiled: str) -> None:
    """Nothing follows where it may not: the answer is that the keys cannot be had."""
    trusted(made, ci)
    match spoiled:
        case "another issuer":
            ci.discovery = {"issuer": "https://another.example"}
        case "keys elsewhere":
            ci.discovery = {"jwks_uri": "http://169.254.169.254/latest/meta-data"}
        case "redirect":
            ci.redirect = "http://127.0.0.1:1/"
        case _:
            ci.discovery = {"jwks_uri": None}
    answer = shown(made, ci.sign())
    assert (answer.status_code, answer.json()["code"]) == (503, "unavailable")
    assert "169.254" not in answer.text
    asked = len(ci.asked)
    assert shown(made, ci.sign()).status_code == 503
    assert len(ci.asked) == asked  # not asked again at once


def test_pinned_claims(made: World, ci: Issuer) -> None:
    """A rest that is left open, a list of values, a claim that is a list."""
    trusted(
        made,
        ci,
        claims={
            "ref": "refs/tags/*",
            "environment": ["release", "staging"],
            "groups": "admins",
            "fork": False,
        },
    )
    good = {"ref": "refs/tags/v1", "environment": "staging", "groups": ["users", "admins"], "fork": False}
    assert shown(made, ci.sign(**good)).status_code == 201
    for name, wrong in (
        ("ref", "refs/heads/refs/tags/v1"),
        ("environment", "test"),
        ("groups", ["users"]),
        ("fork", True),
        ("fork", 0),
        ("ref", None),
    ):
        assert shown(made, ci.sign(**{**good, name: wrong})).status_code == 401, (name, wrong)


def test_several_projects(made: World, ci: Issuer) -> None:
    """One has to be named; another's name is like none."""
    trusted(made, ci)
    with made.parts.database.write() as session:
        projects.add(session, Project(id="beside", name="beside", created_at=now()))
    beside = {"Authorization": f"Bearer {auth.new_token(made.parts.database, 'beside')}"}
    made.call("POST", "/v1/trusts", json=ci.trust(scopes=["read"]), headers=beside).raise_for_status()
    unclear = shown(made, ci.sign())
    assert (unclear.status_code, unclear.json()["where"]["path"]) == (422, "$.project")
    assert shown(made, ci.sign(), project="beside").json()["scopes"] == ["read"]
    assert shown(made, ci.sign(), project="default").json()["scopes"] == ["read", "submit"]
    assert shown(made, ci.sign(), project="nothing").status_code == 401


def test_a_slow_issuer_of_one_project_holds_no_other_up(made: World, ci: Issuer) -> None:
    with made.parts.database.write() as session:
        projects.add(session, Project(id="slow", name="slow", created_at=now()))
    slowly = {"Authorization": f"Bearer {auth.new_token(made.parts.database, 'slow')}"}
    trusted(made, ci)
    with issuer() as slow, ThreadPoolExecutor(6) as pool:
        made.call("POST", "/v1/trusts", json=slow.trust(), headers=slowly).raise_for_status()
        slow.hold = threading.Event()
        identity = slow.sign()
        waiting = [pool.submit(shown, made, identity) for _ in range(6)]
        try:
            until(lambda: slow.asked)
            body = {"token": ci.sign()}
            answer = made.http.post("/v1/oidc/token", json=body, headers={"Authorization": ""}, timeout=4)
            assert answer.status_code == 201
        finally:
            slow.hold.set()
        assert {one.result().status_code for one in waiting} == {201}


@pytest.mark.parametrize(
    ("changes", "path"),
    [
        ({"issuer": "ftp://x.example"}, "$.issuer"),
        ({"issuer": "https://user:secret@x.example"}, "$.issuer"),
        ({"issuer": "https://x.example/?a=b"}, "$.issuer"),
        ({"claims": {}}, "$.oidc.claims"),
        ({"claims": {"aud": "x"}}, "$.claims.aud"),
        ({"claims": {"ref": "*"}}, "$.claims.ref"),
        ({"claims": {"ref": "refs/heads/main*"}}, "$.claims.ref"),
        ({"claims": {"ref": "refs/*/main"}}, "$.claims.ref"),
        ({"scopes": ["admin"]}, "$.oidc.scopes[0]"),
        ({"scopes": []}, "$.oidc.scopes"),
        ({"audience": ""}, "$.oidc.audience"),
        ({"repository": "a/b"}, "$.oidc.repository"),
    ],
)
def test_what_cannot_be_trusted(made: World, ci: Issuer, changes: dict[str, Any], path: str) -> None:
    answer = made.call("POST", "/v1/trusts", json=ci.trust(**changes))
    assert answer.status_code == 422, answer.text
    assert answer.json()["where"]["path"].removeprefix("$").lstrip(".") in (
        path[2:],
        path[2:].removeprefix("oidc."),
    ), answer.text
    assert "secret" not in answer.text


def test_the_preset_of_github(made: World) -> None:
    body = {
        "type": "github",
        "name": "releases",
        "audience": AUDIENCE,
        "repository": CLAIMS["repository"],
        "workflow_ref": CLAIMS["workflow_ref"],
        "environment": "release",
        "scopes": ["gate"],
    }
    trust = made.call("POST", "/v1/trusts", json=body).json()
    assert trust["issuer"] == "https://token.actions.githubusercontent.com"
    assert trust["claims"] == {**CLAIMS, "environment": "release"}
    assert trust["scopes"] == ["read", "gate"]
    alone = {name: value for name, value in body.items() if name != "workflow_ref"}
    assert made.call("POST", "/v1/trusts", json=alone).status_code == 422
    listed = made.call("GET", "/v1/trusts").json()["items"]
    assert trust in listed


def test_trusts_of_a_project_are_bounded(made: World, ci: Issuer, monkeypatch: pytest.MonkeyPatch) -> None:
    trusted(made, ci)
    monkeypatch.setattr(trusts, "_MOST", 1)
    answer = made.call("POST", "/v1/trusts", json=ci.trust())
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid_request")
