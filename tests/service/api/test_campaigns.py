"""Campaigns over HTTP, and by the command that speaks it."""

import json
from typing import Any

import pytest

from service import campaigning
from service.api import examples
from service.cli.app import run
from service.records import audit
from tests.service.api.world import P, World


@pytest.fixture
def command(api: World, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    """The exit code and the document or text of a command that speaks to this service."""
    monkeypatch.setenv("NINFER_GATE_URL", api.address)
    monkeypatch.setenv("NINFER_GATE_TOKEN", f"{api.token}\n")

    def call(*words: str) -> tuple[int, Any]:
        code = run(["campaign", *words])
        told = capsys.readouterr()
        assert api.token not in told.out + told.err
        return code, json.loads(told.out) if told.out.startswith("{") else told.out + told.err

    return call


def test_a_campaign_from_its_start_to_its_end(api: World) -> None:
    asked = {
        "name": "whole",
        "query": {"format": "FP32", "kind": "ninfer"},
        "verify": {"checks": ["structure"]},
    }
    counted = api.call("POST", "/v1/campaigns", json={**asked, "dry_run": True})
    assert (counted.status_code, counted.json()) == (200, {"artifacts": 1})
    answer = api.call("POST", "/v1/campaigns", json=asked)
    assert answer.status_code == 202
    where, started = answer.headers["Location"], answer.json()
    assert started["query"] == asked["query"]
    assert started["verify"] == {"checks": ["structure"], "canonical": False, "full": True}
    assert (started["total"], started["selected"], started["state"]) == (1, 0, "running")
    campaigning.advance(api.parts)
    one = api.call("GET", where).json()
    assert (one["selected"], one["jobs"]["queued"]) == (1, 1)
    listed = api.call("GET", f"{where}/jobs", params={"state": "queued"}).json()["items"]
    assert [(job["artifact"], job["lane"], job["campaign"]) for job in listed] == [
        (examples.CONTENT_DIGEST, "bulk", one["id"])
    ]
    over = api.call("POST", f"{where}/cancel").json()
    assert (over["state"], over["jobs"]["queued"], over["jobs"]["cancelled"]) == ("cancelled", 0, 1)
    assert over["finished_at"] is not None
    with api.parts.database.read() as session:
        done = [row.action for row in audit.entries(session, P, limit=99).items if row.subject == one["id"]]
    assert done == ["campaign.cancelled", "campaign.started"]


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"name": ""}, "$.name"),
        ({"name": "a\nb"}, "$.name"),
        ({"name": "x" * 101}, "$.name"),
        ({"priority": 101}, "$.priority"),
        ({"query": {"older_than_days": -1}}, "$.query.older_than_days"),
        ({"query": {"older_than_days": 10**30}}, "$.query.older_than_days"),
        ({"query": {"format": "nothing"}}, "$.query.format"),
        ({"verify": {"artifact": examples.CONTENT_DIGEST}}, "$.verify.artifact"),
        ({"verify": {"recipe": examples.RECIPE}}, "$.verify.recipe"),
    ],
)
def test_a_faulty_member_is_named(api: World, change: dict[str, Any], path: str) -> None:
    answer = api.call("POST", "/v1/campaigns", json={"name": "faulty", **change})
    assert answer.status_code == 422
    assert [fault["path"] for fault in answer.json()["faults"]] == [path]


def test_the_command_starts_looks_and_cancels(command: Any) -> None:
    assert command("start", "by hand", "--format", "FP32", "--dry-run") == (0, "1 artifact\n")
    code, document = command("start", "by hand", "--format", "FP32", "--checks", "structure", "--json", "-")
    assert code == 0
    (made,) = document["campaigns"]
    code, text = command("list")
    assert code == 0
    assert made["id"] in text
    assert "0 of 1 artifact begun" in text
    assert command("show", made["id"])[0] == 0
    assert command("cancel", made["id"])[0] == 0
    code, document = command("show", made["id"], "--json", "-")
    assert (code, document["campaigns"][0]["state"]) == (0, "cancelled")


def test_the_command_says_what_is_wrong(command: Any) -> None:
    for words, said in (
        (("show", "nothing"), "32 hex digits"),
        (("show", "0" * 32), "campaign_not_found"),
        (("start", "x", "--format", "nothing"), "invalid_request"),
        (("start", "x", "--checks", "nothing"), "check_unknown"),
    ):
        code, text = command(*words)
        assert code == 2
        assert said in text, text
