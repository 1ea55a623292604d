"""`ninfer-gate campaign`: campaigns of a running service started, listed, looked at and cancelled."""

import re
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from ninfer_core.errors import Usage
from service.cli.failures import Task, guarded
from service.cli.output import CAMPAIGNS_SCHEMA, JsonTarget, json_target, no_document
from service.cli.remote import connected
from service.text import clean, number, plural, shorten

if TYPE_CHECKING:
    from service.client import Client, Document

_STATES: Final = ("queued", "running", "passed", "failed", "incomplete", "error", "cancelled")
_BAD: Final = ("failed", "incomplete", "error")
_ID: Final = re.compile(r"[0-9a-f]{32}")
_MOST_LISTED: Final = 200
_MOST_BAD: Final = 20
_LONGEST_NAME: Final = 16  # of a name in the list: id, state and counts stand beside it


def start(
    name: str,
    query: dict[str, Any],
    verify: dict[str, Any],
    dry_run: bool,
    url: str | None,
    json: str | None,
) -> int:
    """0 after it runs, or after it was said how many artifacts there are."""
    body = {"name": name, "query": _given(query), "verify": _given(verify), "dry_run": dry_run}

    def work(client: "Client", target: JsonTarget | None) -> int:
        answer = client.request("POST", "/v1/campaigns", json=body)
        if dry_run:
            _tell(target, {"artifacts": answer["artifacts"]}, plural(answer["artifacts"], "artifact"))
        else:
            _tell(target, {"campaigns": [answer]}, f"campaign {answer['id']}: {_progress(answer)}")
        return 0

    return _speak("start", "starting a campaign", url, json, work)


def list_campaigns(url: str | None, json: str | None) -> int:
    """0 after they are listed."""

    def work(client: "Client", target: JsonTarget | None) -> int:
        from service.cli.screen import console, hung

        found = list(islice(client.items("/v1/campaigns"), _MOST_LISTED))
        if target is not None:
            target.write({"schema": CAMPAIGNS_SCHEMA, "campaigns": found})
            if target.alone:
                return 0
        if not found:
            print(
                "No campaign was started yet; `ninfer-gate campaign start NAME --dry-run` says what one would verify."
            )
            return 0
        out = console()
        table = [("campaign", "name", "state", "so far")]
        table += [
            (row["id"], shorten(clean(row["name"]), _LONGEST_NAME), row["state"], _progress(row))
            for row in found
        ]
        for index, line in enumerate(hung(table, (False,) * 4, out, gap=2)):
            line.style = "dim" if index == 0 else ""
            out.print(line)
        return 0

    return _speak("list", "listing campaigns", url, json, work)


def show(campaign: str, url: str | None, json: str | None) -> int:
    """0 when nothing has failed so far, 1 when something has."""

    def work(client: "Client", target: JsonTarget | None) -> int:
        path = _path(campaign)
        found = client.request("GET", path)
        bad = [
            job
            for state in _BAD
            if found["jobs"][state]
            for job in islice(client.items(f"{path}/jobs", state=state), _MOST_BAD)
        ]
        lines = [f"{clean(found['name'])}: {found['state']}, {_progress(found)}"]
        lines += [f"  {job['state']:<10}  {job['artifact']}  job {job['id']}" for job in bad]
        if found["last_refusal"] is not None:
            refusal = found["last_refusal"]
            lines.append(f"  refused     {refusal['artifact']}  {clean(refusal['detail'])}")
        _tell(target, {"campaigns": [found], "not_passed": bad}, "\n".join(lines))
        return 1 if bad or found["refused"] else 0

    return _speak("show", "looking at a campaign", url, json, work)


def cancel(campaign: str, url: str | None) -> int:
    """0 after it is over."""

    def work(client: "Client", target: JsonTarget | None) -> int:
        found = client.request("POST", f"{_path(campaign)}/cancel")
        _tell(target, {"campaigns": [found]}, f"{found['state']}: {_progress(found)}")
        return 0

    return _speak("cancel", "cancelling a campaign", url, None, work)


def _speak(
    command: str,
    doing: str,
    url: str | None,
    json: str | None,
    work: Callable[["Client", JsonTarget | None], int],
) -> int:
    stdout = JsonTarget(None) if json == "-" else None
    task = Task(
        f"campaign {command}",
        doing,
        "What the service was told before, it does.",
        partial(no_document, CAMPAIGNS_SCHEMA),
        stdout,
    )

    def run() -> int:
        target = json_target(json)

        def speak() -> int:
            with connected(url) as client:
                return work(client, target)

        return guarded(replace(task, target=target), speak)

    return guarded(task, run)


def _tell(target: JsonTarget | None, document: "Document", text: str) -> None:
    if target is not None:
        target.write({"schema": CAMPAIGNS_SCHEMA, **document})
    if target is None or not target.alone:
        print(text, flush=True)


def _progress(campaign: "Document") -> str:
    counts = [f"{number(campaign['jobs'][state])} {state}" for state in _STATES if campaign["jobs"][state]]
    refused = [f"{number(campaign['refused'])} refused"] if campaign["refused"] else []
    whole = plural(campaign["total"], "artifact")
    done = campaign["selected"] == campaign["total"]
    begun = whole if done else f"{number(campaign['selected'])} of {whole} begun"
    return ", ".join([begun, *counts, *refused])


def _given(members: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in members.items() if value is not None}


def _path(campaign: str) -> str:
    if not _ID.fullmatch(campaign):
        raise Usage("a campaign is named by 32 hex digits; `ninfer-gate campaign list` shows them")
    return f"/v1/campaigns/{campaign}"
