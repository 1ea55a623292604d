"""The command `vectors` and what stands under it."""

from typing import Annotated

import typer

from service.cli.app import app
from service.cli.options import Json

vectors_app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help="The conformance vectors: known answers that any implementation of the formats can be tested with.",
    epilog="docs/conformance.md describes the archive, and how your own kernels run the same vectors.",
)
app.add_typer(vectors_app, name="vectors")


@vectors_app.command("export")
def export_command(
    out: Annotated[
        str,
        typer.Argument(
            metavar="OUT.zip",
            help="The new archive; it must not exist yet.",
            show_default="ninfer-gate-vectors-VERSION.zip",
        ),
    ] = "",
) -> int:
    """Write the vectors of this version as one archive, with schema, origin and digests.

    The same version is the same bytes on every machine.

    Exit codes: 0 written, 2 could not.
    """
    from service.cli.vectors import export

    return export(out or None)


@vectors_app.command("verify")
def verify_command(
    archive: Annotated[
        str,
        typer.Argument(
            metavar="ARCHIVE.zip", help="An exported archive.", show_default="what is installed here"
        ),
    ] = "",
    json: Json = None,
) -> int:
    """Hold an archive to its digests and its schema, and to the vectors that are installed here.

    Exit codes: 0 sound, 1 it is not what it should be, 2 no answer.
    """
    from service.cli.vectors import verify

    return verify(archive or None, json)
