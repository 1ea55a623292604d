"""`ninfer-gate token` and `project`: on the database itself, for who runs the service."""

import io
import json
import re
from collections.abc import Iterator
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from service import auth
from service.cli import screen
from service.cli.app import run
from service.records import audit, projects
from service.records.database import Database
from tests.service.access.conftest import Tenants
from tests.service.api.world import world
from tests.service.records.build import P


@pytest.fixture
def data(tmp_path: Path, sqlite_template: Path) -> Path:
    """The folder of a service."""
    (tmp_path / "records.sqlite").write_bytes(sqlite_template.read_bytes())
    return tmp_path


@pytest.fixture
def opened(data: Path) -> Iterator[Database]:
    """Its records."""
    database = Database(f"sqlite:///{data / 'records.sqlite'}")
    yield database
    database.close()


def test_tokens(
    data: Path,
    opened: Database,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    at = ["--data", str(data)]
    assert (
        run(["token", "create", "--scope", "submit", "--name", "nightly", "--expires-in-days", "2", *at]) == 0
    )
    told = capsys.readouterr()
    secret = told.out.removesuffix("\n")
    assert re.fullmatch(r"ng_[A-Za-z0-9_-]{43}", secret)  # alone, so that a script can take it
    assert secret not in told.err
    caller = auth.authenticate(opened, secret)
    assert caller.scopes == {"read", "submit"}
    assert caller.expires_at is not None
    session = auth.open_session(opened, secret)
    assert run(["token", "list", "--json", "-", *at]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["schema"] == "ninfer-gate/tokens/1"
    assert {(row["kind"], row["name"]) for row in document["tokens"]} == {
        ("api", "nightly"),
        ("session", "browser"),
    }
    assert run(["token", "list", *at]) == 0
    listed = capsys.readouterr().out
    assert caller.token_id is not None
    assert caller.token_id in listed
    assert secret not in listed
    narrow = Console(file=StringIO(), width=80, force_terminal=True, color_system=None)
    monkeypatch.setattr(screen, "console", lambda: narrow)
    assert run(["token", "list", *at]) == 0
    lines = narrow.file.getvalue().splitlines()  # type: ignore[attr-defined]  # the one given above
    assert len(lines) == 4  # titles, two tokens, and what has no room
    assert re.search(rf"{caller.token_id}  nightly  submit  \d{{4}}-\d\d-\d\d", "\n".join(lines))
    assert run(["token", "revoke", caller.token_id, *at]) == 0
    for given, look in ((secret, auth.authenticate), (session.secret, auth.session_caller)):
        with pytest.raises(auth.Unauthorized):
            look(opened, given)
    assert run(["token", "revoke", caller.token_id, *at]) == 2
    with opened.read() as records:
        actions = [row.action for row in audit.entries(records, P, limit=9).items]
    assert actions == ["token.revoked", "session.opened", "token.created"]


class Terminal(io.StringIO):
    """A person who types this, and then nothing more."""

    def isatty(self) -> bool:
        """It is one."""
        return True


def test_projects(
    data: Path, opened: Database, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    at = ["--data", str(data)]
    assert run(["project", "add", "vision", "--quota", "2TB", "--max-running-jobs", "3", *at]) == 0
    assert run(["project", "add", "vision", *at]) == 2
    assert run(["project", "set", "vision", "--quota", "512MiB", *at]) == 0
    with opened.read() as records:
        made = projects.by_name(records, "vision")
    assert made is not None
    assert (made.quota_bytes, made.max_running_jobs) == (512 << 20, 3)
    assert run(["project", "set", "vision", "--max-running-jobs", "none", *at]) == 0
    capsys.readouterr()
    assert run(["token", "create", "--project", "vision", *at]) == 0
    secret = capsys.readouterr().out.strip()
    assert auth.authenticate(opened, secret).project_id == made.id
    for wrong in ([], ["--confirm", "another"]):
        assert run(["project", "delete", "vision", *wrong, *at]) == 2
        auth.authenticate(opened, secret)
    for typed, said in (("", "was not said"), ("another\n", "say its name once more")):
        monkeypatch.setattr("sys.stdin", Terminal(typed))
        assert run(["project", "delete", "vision", *at]) == 2
        assert said in capsys.readouterr().err
    assert run(["project", "delete", "default", "--confirm", "default", *at]) == 2
    assert run(["project", "delete", "vision", "--confirm", "vision", *at]) == 0
    with pytest.raises(auth.Unauthorized):
        auth.authenticate(opened, secret)
    capsys.readouterr()
    assert run(["project", "list", "--json", "-", *at]) == 0
    rows = {row["name"]: row for row in json.loads(capsys.readouterr().out)["projects"]}
    assert rows["default"]["deleted_at"] is None
    assert rows["vision"]["deleted_at"] is not None
    assert rows["vision"]["max_running_jobs"] is None
    assert run(["project", "add", "vision", *at]) == 2  # until all of it is gone
    with opened.read() as records:
        log = [(row.action, row.actor) for row in audit.entries(records, made.id, limit=9).items]
    assert ("project.deleted", "command line") in log
    assert [action for action, _ in log if action.startswith("project")] == [
        "project.deleted",
        "project.changed",
        "project.changed",
        "project.added",
    ]


@pytest.mark.parametrize(
    "command",
    [
        ["token", "create", "--scope", "root"],
        ["token", "create", "--name", " "],
        ["token", "create", "--project", "nobody"],
        ["token", "create", "--expires-in-days", "0"],
        ["token"],
        ["project", "add", "Vision"],
        ["project", "add", "../x"],
        ["project", "add", "x", "--quota", "-1"],
        ["project", "add", "x", "--quota", "many"],
        ["project", "add", "x", "--quota", "99999999TB"],
        ["project", "add", "x", "--max-running-jobs", "0"],
        ["project", "set", "default"],
        ["project", "set", "nobody", "--quota", "1"],
    ],
    ids=" ".join,
)
def test_what_is_refused(data: Path, command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*command, *([] if len(command) == 1 else ["--data", str(data)])]) == 2
    assert "Traceback" not in capsys.readouterr().err


def test_nothing_is_made_where_no_service_is(tmp_path: Path) -> None:
    for command in (["token", "create"], ["token", "list"], ["project", "add", "x"], ["project", "list"]):
        assert run([*command, "--data", str(tmp_path / "none")]) == 2
    assert run(["backup", "--to", str(tmp_path / "copy"), "--data", str(tmp_path / "none")]) == 2
    assert run(["restore", "--from", str(tmp_path / "copy"), "--data", str(tmp_path / "none")]) == 2
    assert list(tmp_path.iterdir()) == []


def test_a_deleted_project_is_shut_at_once(tenants: Tenants) -> None:
    """Over HTTP, by its administrator, who has to say its name; others are told that there is nothing."""
    other = tenants.other
    reader = auth.new_token(tenants.world.parts.database, "other", ("read",))
    assert tenants.call(reader, "DELETE", "/v1/project", params={"confirm": "other"}).status_code == 404
    assert tenants.call(other, "DELETE", "/v1/project", params={"confirm": "default"}).status_code == 422
    assert tenants.call(other, "DELETE", "/v1/project", params={"confirm": "other"}).status_code == 204
    for token in (other, reader):
        assert tenants.call(token, "GET", "/v1/project").status_code == 401
    assert tenants.call(tenants.tokens["admin"], "GET", "/v1/project").status_code == 200


def test_trusts(
    tmp_path: Path, sqlite_url: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with world(tmp_path / "data", sqlite_url) as made:
        monkeypatch.setenv("NINFER_GATE_URL", made.address)
        monkeypatch.setenv("NINFER_GATE_TOKEN", made.token)
        workflow = "example/example/.github/workflows/release.yml@*"
        github = ["--repository", "example/example", "--workflow-ref", workflow, "--scope", "gate"]
        assert run(["trust", "add", "releases", "--audience", "https://gate.example", *github]) == 0
        other = [
            "--issuer",
            "https://ci.example",
            "--claim",
            "ref=main",
            "--claim",
            "ref=next",
            "--claim",
            "a=b",
        ]
        assert run(["trust", "add", "ours", "--audience", "here", *other, "--json", "-"]) == 0
        capsys.readouterr()
        assert run(["trust", "list", "--json", "-"]) == 0
        found = json.loads(capsys.readouterr().out)["trusts"]
        assert [(row["name"], row["claims"], row["scopes"]) for row in found] == [
            ("ours", {"ref": ["main", "next"], "a": "b"}, ["read", "submit"]),
            ("releases", {"repository": "example/example", "workflow_ref": workflow}, ["read", "gate"]),
        ]
        assert run(["trust", "list"]) == 0
        assert "https://ci.example" in capsys.readouterr().out
        for wrong in (
            [],
            ["--issuer", "https://ci.example"],
            [*other, "--ref", "main"],
            ["--repository", "a/b"],
        ):
            assert run(["trust", "add", "no", "--audience", "here", *wrong]) == 2
        assert run(["trust", "remove", found[0]["id"]]) == 0
        assert run(["trust", "remove", found[0]["id"]]) == 2
        assert [row["name"] for row in made.call("GET", "/v1/trusts").json()["items"]] == ["releases"]
