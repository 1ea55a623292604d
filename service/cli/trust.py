"""`ninfer-gate trust`: whose signed identities open a project, said to a running service."""

import re
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from ninfer_core.errors import Usage
from service.cli.failures import Task, guarded
from service.cli.output import TRUSTS_SCHEMA, JsonTarget, json_target, no_document
from service.cli.remote import connected
from service.text import clean

if TYPE_CHECKING:
    from service.client import Client, Document

_ID: Final = re.compile(r"[0-9a-f]{32}")


@dataclass(frozen=True, slots=True)
class Github:
    """What a job of GitHub Actions has to be."""

    repository: str | None
    workflow_ref: str | None
    job_workflow_ref: str | None
    ref: str | None
    environment: str | None


@dataclass(frozen=True, slots=True)
class Other:
    """What another issuer has to say, as `NAME=VALUE`; of a name given twice any value will do."""

    issuer: str | None
    claims: Sequence[str]


def add(
    name: str,
    audience: str,
    github: Github,
    other: Other,
    scopes: Sequence[str],
    url: str | None,
    json: str | None,
) -> int:
    """0 after it is trusted."""

    def work(client: "Client", target: JsonTarget | None) -> int:
        body = {"name": name, "audience": audience, "scopes": list(scopes), **_terms(github, other)}
        made = client.request("POST", "/v1/trusts", json=body)
        _tell(
            target, [made], f"trust {made['id']}: {clean(made['issuer'])}, scopes {' '.join(made['scopes'])}"
        )
        return 0

    return _speak("add", "adding a trust", url, json, work)


def list_trusts(url: str | None, json: str | None) -> int:
    """0 after they are listed."""

    def work(client: "Client", target: JsonTarget | None) -> int:
        found = list(client.items("/v1/trusts"))
        lines = [
            f"{row['id']}  {clean(row['name'])}\n    {clean(row['issuer'])}, for {clean(row['audience'])}; "
            f"scopes {' '.join(row['scopes'])}\n    {_claims(row)}"
            for row in found
        ]
        _tell(target, found, "\n".join(lines) or "Nobody is trusted but who has a token.")
        return 0

    return _speak("list", "listing trusts", url, json, work)


def remove(trust: str, url: str | None) -> int:
    """0 after it is trusted no longer."""

    def work(client: "Client", _target: JsonTarget | None) -> int:
        from service.client import refused

        if not _ID.fullmatch(trust):
            raise Usage("a trust is named by its id, 32 hex digits; `ninfer-gate trust list` shows it")
        answer = client.http.delete(f"/v1/trusts/{trust}")
        if answer.is_error:
            raise refused(answer)
        print("It is trusted no longer, and tokens that came by it open nothing any more.", flush=True)
        return 0

    return _speak("remove", "removing a trust", url, None, work)


def _terms(github: Github, other: Other) -> dict[str, Any]:
    """The rest of the body. Raises: Usage for what says nothing together."""
    pinned = {name: value for name, value in asdict(github).items() if value is not None}
    if other.issuer is None:
        if github.repository is None:
            raise Usage("say --repository, for jobs of GitHub Actions, or --issuer with --claim")
        if other.claims:
            raise Usage("--claim belongs to --issuer")
        return {"type": "github", **pinned}
    if pinned:
        raise Usage(
            f"--{next(iter(pinned)).replace('_', '-')} is of GitHub Actions; with --issuer use --claim"
        )
    claims: dict[str, Any] = {}
    for said in other.claims:
        name, equals, value = said.partition("=")
        if not equals or not name:
            raise Usage(f"--claim {said!r} is not NAME=VALUE")
        claims.setdefault(name, []).append(value)
    if not claims:
        raise Usage("--issuer needs a --claim: else all that it ever signs would be trusted")
    single = {name: values[0] if len(values) == 1 else values for name, values in claims.items()}
    return {"type": "oidc", "issuer": other.issuer, "claims": single}


def _speak(
    command: str,
    doing: str,
    url: str | None,
    json: str | None,
    work: Callable[["Client", JsonTarget | None], int],
) -> int:
    stdout = JsonTarget(None) if json == "-" else None
    kept = "`ninfer-gate trust list` says what the service has."
    task = Task(f"trust {command}", doing, kept, partial(no_document, TRUSTS_SCHEMA), stdout)

    def run() -> int:
        target = json_target(json)

        def speak() -> int:
            with connected(url) as client:
                return work(client, target)

        return guarded(replace(task, target=target), speak)

    return guarded(task, run)


def _tell(target: JsonTarget | None, rows: "list[Document]", text: str) -> None:
    if target is not None:
        target.write({"schema": TRUSTS_SCHEMA, "trusts": rows})
    if target is None or not target.alone:
        print(text, flush=True)


def _claims(row: "Document") -> str:
    pairs = sorted(row["claims"].items())
    return clean(", ".join(f"{name} = {value}" for name, value in pairs))
