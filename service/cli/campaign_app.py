"""The commands of `campaign`, which speak to a running service."""

from typing import Annotated, Literal

import typer

from service.cli.app import app
from service.cli.options import Json
from service.cli.push_app import Address

campaign_app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Verify again what a service holds: artifacts that a query finds, on the bulk lane, a few at a time.",
    epilog="Try: campaign start monthly --format NVFP4 --not-verified-for 30 --dry-run.",
)
app.add_typer(campaign_app, name="campaign")

CampaignId = Annotated[
    str, typer.Argument(metavar="ID", help="The campaign, as `campaign list` shows it.", show_default=False)
]


def _condition(name: str, metavar: str, says: str) -> typer.models.OptionInfo:
    option: typer.models.OptionInfo = typer.Option(name, metavar=metavar, help=says, show_default=False)
    return option


@campaign_app.callback()
def campaign_command() -> None:
    """See the help of the group."""


@campaign_app.command("start")
def start_command(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME", help="What people call it; of one name only one runs.", show_default=False
        ),
    ],
    encoder_profile: Annotated[
        str | None, _condition("--encoder-profile", "NAME", "An object was made by this profile.")
    ] = None,
    recipe: Annotated[str | None, _condition("--recipe", "DIGEST", "Made by this recipe.")] = None,
    target: Annotated[
        str | None, _condition("--target", "DIGEST|MODEL/WEIGHTS", "Filled this target.")
    ] = None,
    checkpoint: Annotated[
        str | None, _condition("--checkpoint", "DIGEST", "Made of this checkpoint.")
    ] = None,
    format: Annotated[  # noqa: A002  as the option
        str | None, _condition("--format", "NAME", "An object has this format.")
    ] = None,
    tool_version: Annotated[
        str | None, _condition("--tool-version", "TEXT", "Made or checked by this version.")
    ] = None,
    kind: Annotated[
        Literal["ninfer", "safetensors"] | None,
        typer.Option("--kind", help="Artifacts of this kind.", show_default=False),
    ] = None,
    older_than: Annotated[
        int | None,
        typer.Option("--older-than", metavar="DAYS", min=0, help="Held for so long.", show_default=False),
    ] = None,
    not_verified_for: Annotated[
        int | None,
        typer.Option(
            "--not-verified-for",
            metavar="DAYS",
            min=0,
            help="No run of it came to a verdict in so long.",
            show_default=False,
        ),
    ] = None,
    checks: Annotated[
        str | None,
        typer.Option(
            "--checks", metavar="a,b", help="Only these checks.", show_default="the usual ones of its kind"
        ),
    ] = None,
    reuse: Annotated[
        bool, typer.Option("--reuse", help="Take over what earlier runs have measured.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only say how many artifacts there are.")
    ] = False,
    url: Address = None,
    json: Json = None,
) -> int:
    """Verify again every artifact for which all of these hold; without any, all that the project holds.

    Exit codes: 0 it runs, 2 could not.
    """
    from service.cli.campaign import start

    query = {
        "encoder_profile": encoder_profile,
        "recipe": recipe,
        "target": target,
        "checkpoint": checkpoint,
        "format": format,
        "tool_version": tool_version,
        "kind": kind,
        "older_than_days": older_than,
        "not_verified_for_days": not_verified_for,
    }
    verify = {"checks": None if checks is None else checks.split(","), "full": not reuse}
    return start(name, query, verify, dry_run, url, json)


@campaign_app.command("list")
def list_command(url: Address = None, json: Json = None) -> int:
    """List campaigns, the newest first, and how far each of them is.

    Exit codes: 0 listed, 2 could not.
    """
    from service.cli.campaign import list_campaigns

    return list_campaigns(url, json)


@campaign_app.command("show")
def show_command(campaign: CampaignId, url: Address = None, json: Json = None) -> int:
    """Say how far a campaign is, and which of its artifacts did not pass.

    Exit codes: 0 nothing has failed so far, 1 something has, 2 could not.
    """
    from service.cli.campaign import show

    return show(campaign, url, json)


@campaign_app.command("cancel")
def cancel_command(campaign: CampaignId, url: Address = None) -> int:
    """Make no further job of a campaign, and cancel those that are open.

    Exit codes: 0 it is over, 2 could not.
    """
    from service.cli.campaign import cancel

    return cancel(campaign, url)
