"""The command `struct` and what stands under it."""

from typing import Annotated

import typer

from service.cli.app import app
from service.cli.options import Json

struct_app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Typed structures over byte buffers: types as documents, with sizes, leaves and payloads.",
    epilog="docs/structs.md describes the document.",
)
app.add_typer(struct_app, name="struct")


@struct_app.command("check")
def check_command(
    path: Annotated[
        str,
        typer.Argument(
            metavar="FILE.json",
            help="A document of struct types, or a file of cases, accepted and refused ones.",
            show_default=False,
        ),
    ],
    payload: Annotated[
        str | None,
        typer.Option(
            "--payload",
            metavar="FILE",
            help="The bytes of the value, in place of those that the document has or names.",
            show_default=False,
        ),
    ] = None,
    limits: Annotated[
        str | None,
        typer.Option(
            "--limits",
            metavar="JSON",
            help='How much a type may ask for, such as {"nesting": 32}; what is not named stays.',
            show_default="the setting",
        ),
    ] = None,
    limit: Annotated[
        int | None,
        typer.Option(
            "--limit", metavar="N", min=0, help="List at most N leaves or cases.", show_default="40 or 20"
        ),
    ] = None,
    json: Json = None,
) -> int:
    """Check struct types and the value over them: every fault with its code, sizes, leaves, payload.

    Of a file of cases each is checked, and what is refused must be refused with the code that it names.

    Exit codes: 0 passed, 1 failed, 2 no answer, 3 incomplete (a payload that the document names was not
    found, or there is nothing to check).
    """
    from service.cli.struct_check import check

    return check(path, payload, limits, limit, json)
