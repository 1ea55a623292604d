"""The command `recipe` and what stands under it."""

from typing import Annotated

import typer

from service.cli.app import app
from service.cli.options import FilledTarget, Inputs, Json, Limit

recipe_app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help="The documents that say what each object of an artifact is made of.",
    epilog="Try: recipe check recipe.json. docs/recipes.md describes the document.",
)
app.add_typer(recipe_app, name="recipe")


@recipe_app.callback()
def recipe_command() -> None:
    """See the help of the group."""


@recipe_app.command("check")
def check_command(
    recipe: Annotated[
        str,
        typer.Argument(
            metavar="FILE|ID",
            help="A document, schema ninfer-recipe/1, or the id of a registered recipe.",
            show_default=False,
        ),
    ],
    target: FilledTarget = None,
    checkpoint: Annotated[
        list[str] | None,
        typer.Option(
            "--checkpoint",
            "--source",
            metavar="[ROLE=]DIR",
            help="Also compare with the checkpoint of a role; repeat for each role.",
            show_default=False,
        ),
    ] = None,
    inputs: Inputs = None,
    json: Json = None,
    limit: Limit = None,
) -> int:
    """Read a recipe, name every fault of it at once, and list what it would make.

    Objects come with format, layout, shape, bytes, encoder, moves and sources, the file with its size in each revision.
    With the checkpoints it compares names, shapes, dtypes, configs, pinned files and shared tensors too. No tensor is
    encoded, and what only encoding can refuse is listed as not seen.

    Exit codes: 0 everything fits, 1 it does not, 2 no answer.
    """
    from service.cli.recipe import Request, check

    return check(Request(recipe, target, checkpoint or [], inputs or [], json, limit))
