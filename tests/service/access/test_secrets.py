"""Secrets stay where they are (B40): with canaries for tokens, over every address and command, nothing repeats one."""

import contextlib
import io
import logging
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import structlog
from sqlalchemy import select

from ninfer_core.errors import NinferError
from service import auth, logs
from service.api import examples
from service.api.openapi import operations
from service.cli.app import run
from service.client import Client
from service.records import tokens
from service.records.models import Base
from tests.service.access.conftest import OFTEN, Tenants, path_of, tenants_of
from tests.service.access.issuer import issuer
from tests.service.api.world import seed, world
from tests.service.records.build import P
from worker.start import start

GOOD = "ng_CANARY7f3a" + "x" * 32
BAD = "ng_CANARYbad0" + "y" * 32
CANARY = "CANARY"


@pytest.fixture(scope="module")
def heard() -> Iterator[io.StringIO]:
    """Everything that is logged, as `serve` writes it."""
    stream = io.StringIO()
    before = logging.getLogger().handlers[:]
    with contextlib.redirect_stderr(stream):
        logs.configure(as_json=False)
    logging.getLogger().setLevel(logging.DEBUG)
    try:
        yield stream
    finally:
        logging.getLogger().handlers[:] = before
        logging.getLogger().setLevel(logging.WARNING)
        structlog.reset_defaults()


@pytest.fixture(scope="module")
def tenants(
    tmp_path_factory: pytest.TempPathFactory, sqlite_template: Path, heard: io.StringIO
) -> Iterator[Tenants]:
    """A service that knows the first canary."""
    folder = tmp_path_factory.mktemp("secrets")
    shutil.copyfile(sqlite_template, folder / "records.sqlite")
    more = {**OFTEN, "outbound_private": ("127.0.0.0/8",)}
    with world(folder / "data", f"sqlite:///{folder / 'records.sqlite'}", **more) as made:
        seed(made)
        with made.parts.database.write() as session:
            tokens.add(session, P, auth.hashed(GOOD), "api", name="canary", scopes="admin", created_by="test")
        with tenants_of(made) as known:
            yield known


def clean(text: str) -> None:
    """No canary, not even a part of one."""
    assert CANARY not in text, text[max(0, text.index(CANARY) - 200) :][:400] if CANARY in text else ""


@pytest.mark.parametrize(
    "sent",
    [
        f"Bearer {BAD}",
        f"Bearer  {GOOD}",
        f"Basic {GOOD}",
        f"Bearer {GOOD}{GOOD}",
        GOOD,
        f"bearer {GOOD}",
    ],
    ids=["invalid", "two spaces", "basic", "twice", "bare", "lower case"],
)
def test_every_address(tenants: Tenants, heard: io.StringIO, sent: str) -> None:
    """Whoever is refused is not quoted, and whoever is let in neither; what fails inside says nothing either."""
    for path, method, operation in operations(tenants.document):
        if operation.get("security") and (method, path) != ("delete", "/v1/project"):
            answer = tenants.http.request(method, path_of(tenants, path), headers={"Authorization": sent})
            clean(answer.text + str(answer.headers))
            assert answer.status_code < 500, path
            if CANARY + "bad" in sent or "Basic" in sent or sent.count(CANARY) > 1 or sent == GOOD:
                assert answer.status_code == 401, path
    clean(heard.getvalue())


def test_where_a_token_does_not_belong(tenants: Tenants, heard: io.StringIO) -> None:
    """In an address, a parameter, a body, a cookie, an id: it may be named wrong, and is not logged."""
    headers = {"Authorization": f"Bearer {GOOD}"}
    with tenants.world.with_database(_Away()):
        for path in ("/v1/jobs", "/readyz"):
            clean(tenants.http.get(path, headers=headers).text)
    for path in (f"/v1/jobs/{GOOD}", f"/v1/tokens/{GOOD}", f"/{GOOD}", f"/v1/jobs?token={GOOD}"):
        tenants.http.get(path, headers=headers)
    tenants.http.get("/v1/jobs", headers=headers | {"X-Request-Id": GOOD})
    tenants.http.get("/", headers={"Cookie": f"{auth.COOKIE}={GOOD}", "Accept": "text/html"})
    same = {"Sec-Fetch-Site": "same-origin", "Accept": "text/html"}
    for token in (BAD, f"{GOOD}\n"):
        clean(tenants.http.post("/login", data={"token": token}, headers=same).text)
    clean(heard.getvalue())


class _Away:
    """A database whose driver puts what it was given into its error."""

    def read(self) -> Any:
        """Raises it."""
        raise RuntimeError(f"connection to postgresql://user:{CANARY}@host failed for Bearer {GOOD}")

    write = read


def test_identities(tenants: Tenants, heard: io.StringIO) -> None:
    """A signed identity is a secret as long as it lives, whether it is taken or not."""
    admin = {"Authorization": f"Bearer {tenants.tokens['admin']}"}
    with issuer() as ci:
        tenants.http.post("/v1/trusts", json=ci.trust(), headers=admin).raise_for_status()
        for identity, status in (
            (ci.sign(), 201),
            (ci.sign(repository="x/y"), 401),
            (ci.sign(number=1), 401),
        ):
            answer = tenants.http.post("/v1/oidc/token", json={"token": identity})
            assert answer.status_code == status
            signature = identity.rpartition(".")[2]
            told = answer.text + heard.getvalue() + everything(tenants)
            assert signature not in told
            if status == 201:
                secret = answer.json()["token"]
                assert secret not in heard.getvalue() + everything(tenants)
        ci.keys = []
    answer = tenants.http.post(
        "/v1/trusts",
        json={**examples.TRUST_OIDC, "issuer": f"https://user:{CANARY}@ci.example"},
        headers=admin,
    )
    assert answer.status_code == 422
    clean(answer.text + heard.getvalue())


def everything(tenants: Tenants) -> str:
    """Every row of every table."""
    with tenants.world.parts.database.read() as session:
        return str(
            [tuple(row) for table in Base.metadata.sorted_tables for row in session.execute(select(table))]
        )


def test_rows_hold_none(tenants: Tenants) -> None:
    """Made, used and refused tokens have left their hashes alone, in the log of what was done too."""
    rows = everything(tenants)
    assert auth.hashed(GOOD) in rows
    for secret in (GOOD, BAD, *filter(None, tenants.tokens.values()), tenants.other, tenants.world.token):
        assert secret not in rows


def test_commands(
    tenants: Tenants, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A token at the wrong place of a command line, in a wrong address, or refused by the service."""
    data = str(tmp_path / "data")
    for command in (
        ["token", "revoke", GOOD, "--data", data],
        ["token", "list", "--project", GOOD, "--data", data],
        ["project", "add", GOOD, "--data", data],
        ["migrate", "--data", data, "--database-url", f"postgresql://user:{CANARY}@127.0.0.1:1/x"],
    ):
        assert run(command) == 2, command
        told = capsys.readouterr()
        clean(told.out + told.err)
    monkeypatch.setenv("NINFER_GATE_TOKEN", BAD)
    (tmp_path / "a.ninfer").write_bytes(b"x")
    for address in (
        tenants.world.address,
        "http://127.0.0.1:1",
        f"http://user:{CANARY}@127.0.0.1:1",
        f"{CANARY}",
    ):
        monkeypatch.setenv("NINFER_GATE_URL", address)
        assert run(["push", str(tmp_path / "a.ninfer"), "--patience", "1"]) == 2, address
        told = capsys.readouterr()
        clean(told.out + told.err)


def test_what_is_wrong_with_a_setting_prints_no_other(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("NINFER_GATE_METRICS_TOKEN", GOOD)
    monkeypatch.setenv("NINFER_GATE_DEAD_AFTER_SECONDS", "1")
    assert start(None) == 2
    assert run(["token", "list"]) == 2
    told = capsys.readouterr().err
    assert told.count("workers would kill one another") == 2
    assert CANARY not in told
    monkeypatch.delenv("NINFER_GATE_DEAD_AFTER_SECONDS")
    monkeypatch.setenv("NINFER_GATE_IMPORT_ROOTS", "/mnt/models")  # as a list in JSON it would be right
    assert run(["token", "list"]) == 2
    assert "import_roots: it is no JSON" in capsys.readouterr().err


def test_the_client_trims_or_refuses(tenants: Tenants) -> None:
    """White space around a token comes from the file that it was read from; inside it is none of ours."""
    with Client(tenants.world.address, f" {GOOD}\n") as client:
        assert client.request("GET", "/v1/project")["name"] == "default"
    for wrong in (f"{GOOD}\n{GOOD}", f"{GOOD} x", f"{GOOD}\0", "", "\n", f"{GOOD}\u00e9"):
        with pytest.raises(NinferError) as caught:
            Client(tenants.world.address, wrong)
        clean(str(caught.value))
    with Client("http://127.0.0.1:1", GOOD) as client:
        with pytest.raises(httpx.TransportError) as failed:
            client.request("GET", "/v1/project")
        clean(repr(failed.value))


def test_the_log_was_listened_to(tenants: Tenants, heard: io.StringIO) -> None:
    """Else nothing above could fail."""
    before = len(heard.getvalue())
    structlog.get_logger().info("heard", what="a word")
    tenants.http.get("/v1/jobs", headers={"Authorization": f"Bearer {GOOD}"})
    said = heard.getvalue()[before:]
    assert "a word" in said
    assert "request.done" in said
