"""The commands of `trust`, which speak to a running service."""

from typing import Annotated

import typer

from service.cli.app import app
from service.cli.options import Json
from service.cli.push_app import Address

trust_app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Whose signed identities open a project: jobs of a CI that need no secret. The token has to be an "
    "administrator's.",
    epilog="Try: trust add releases --repository OWNER/NAME --workflow-ref OWNER/NAME/.github/workflows/release.yml@* "
    "--audience URL. docs/access.md has a whole workflow.",
)
app.add_typer(trust_app, name="trust")


def _pinned(name: str, metavar: str, says: str) -> typer.models.OptionInfo:
    option: typer.models.OptionInfo = typer.Option(name, metavar=metavar, help=says, show_default=False)
    return option


@trust_app.callback()
def trust_command() -> None:
    """See the help of the group."""


@trust_app.command("add")
def add_command(
    name: Annotated[str, typer.Argument(metavar="NAME", help="What people call it.", show_default=False)],
    audience: Annotated[
        str,
        _pinned("--audience", "TEXT", "What the job asks its identity for, such as the service's address."),
    ],
    repository: Annotated[
        str | None, _pinned("--repository", "OWNER/NAME", "Jobs of GitHub Actions of this repository.")
    ] = None,
    workflow_ref: Annotated[
        str | None, _pinned("--workflow-ref", "TEXT", "And of this workflow; `@*` for any reference.")
    ] = None,
    job_workflow_ref: Annotated[
        str | None, _pinned("--job-workflow-ref", "TEXT", "The same of a reusable workflow.")
    ] = None,
    ref: Annotated[str | None, _pinned("--ref", "REF", "And of this branch or tag.")] = None,
    environment: Annotated[str | None, _pinned("--environment", "NAME", "And of this environment.")] = None,
    issuer: Annotated[str | None, _pinned("--issuer", "URL", "Another issuer, in place of GitHub.")] = None,
    claim: Annotated[
        list[str] | None,
        _pinned("--claim", "NAME=VALUE", "What it has to say, with --issuer; repeat for more."),
    ] = None,
    scope: Annotated[
        list[str] | None,
        typer.Option(
            "--scope", metavar="read|submit|gate", help="What it may do; repeat.", show_default="submit"
        ),
    ] = None,
    url: Address = None,
    json: Json = None,
) -> int:
    """Trust the jobs of a workflow, or whatever an issuer signs with these claims.

    Exit codes: 0 trusted, 2 could not.
    """
    from service.cli.trust import Github, Other, add

    github = Github(repository, workflow_ref, job_workflow_ref, ref, environment)
    return add(name, audience, github, Other(issuer, claim or []), scope or ["submit"], url, json)


@trust_app.command("list")
def list_command(url: Address = None, json: Json = None) -> int:
    """List whom the project trusts, the newest first.

    Exit codes: 0 listed, 2 could not.
    """
    from service.cli.trust import list_trusts

    return list_trusts(url, json)


@trust_app.command("remove")
def remove_command(
    trust: Annotated[str, typer.Argument(metavar="ID", help="As `trust list` shows it.", show_default=False)],
    url: Address = None,
) -> int:
    """Trust it no longer; tokens that came by it open nothing any more.

    Exit codes: 0 removed, 2 could not.
    """
    from service.cli.trust import remove

    return remove(trust, url)
