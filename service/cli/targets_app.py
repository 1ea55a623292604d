"""The command `targets` and what stands under it."""

from typing import Annotated

import typer

from service.cli.app import app
from service.cli.options import Json, Limit

targets_app = typer.Typer(
    invoke_without_command=True,
    no_args_is_help=False,
    rich_markup_mode=None,
    help="The contracts that say what an artifact of one identity holds. Alone it lists the registered ones.",
    epilog="Try: targets show qwen3.6-27b/groupwise-int. A target of your own is a file; `verify --target` takes "
    "both. docs/targets.md describes the document.",
)
app.add_typer(targets_app, name="targets")


@targets_app.callback()
def targets_command(context: typer.Context, json: Json = None) -> int:
    """See the help of the group."""
    if context.invoked_subcommand is not None:
        if json is not None:
            raise typer.BadParameter(f"put --json after {context.invoked_subcommand}")
        return 0
    from service.cli.targets import list_targets

    return list_targets(json)


@targets_app.command("list")
def list_command(json: Json = None) -> int:
    """List the registered targets.

    Exit codes: 0 listed, 2 no answer.
    """
    from service.cli.targets import list_targets

    return list_targets(json)


@targets_app.command("show")
def show_command(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME",
            help="MODEL/WEIGHTS of a registered target, or a file that holds one of your own.",
            show_default=False,
        ),
    ],
    json: Json = None,
    limit: Limit = None,
) -> int:
    """Show a target in full: objects, views, totals, recipe, and the hashes of its expansion.

    Exit codes: 0 shown, 1 the file is no sound target, 2 no answer.
    """
    from service.cli.targets import show_target

    return show_target(name, json, limit)


@targets_app.command("check")
def check_command(
    path: Annotated[
        str, typer.Argument(metavar="FILE", help="A document, schema ninfer-target/1.", show_default=False)
    ],
    json: Json = None,
) -> int:
    """Read a target of your own and name every fault of it at once.

    Exit codes: 0 everything fits, 1 it does not, 2 no answer.
    """
    from service.cli.targets import check_target

    return check_target(path, json)
