"""`ninfer-gate backup` and `restore`, and their options."""

from pathlib import Path
from typing import Annotated

import typer

from service.cli.app import app
from service.cli.service_app import Data, DatabaseUrl


@app.command("backup")
def backup_command(
    to: Annotated[
        Path,
        typer.Option(
            "--to", metavar="DIR", help="Where it goes; a folder with a backup is brought up to date."
        ),
    ],
    data: Data = None,
    database_url: DatabaseUrl = None,
    content: Annotated[
        bool | None,
        typer.Option(
            "--content/--no-content",
            help="Copy the content too.",
            show_default="yes; no where it lies in a bucket",
        ),
    ] = None,
) -> int:
    """Copy every row and all content into a folder, while the service runs, on SQLite and PostgreSQL alike.

    Content is hashed on its way; what is in the folder already is not copied again.

    Exit codes: 0 whole, 1 content is missing or damaged in the store, 2 could not.
    """
    from service.cli.backup import backup

    return backup({"data": data, "database_url": database_url}, to, content)


@app.command("restore")
def restore_command(
    source: Annotated[Path, typer.Option("--from", metavar="DIR", help="A folder that `backup` wrote.")],
    data: Data = None,
    database_url: DatabaseUrl = None,
) -> int:
    """Make a service of a backup: fill an empty database, of either kind, and put the content into the store.

    So a service moves from SQLite to PostgreSQL too. Open jobs begin anew; uploads that were under way are over.

    Exit codes: 0 restored, 1 restored but for content that is damaged in the backup, 2 could not.
    """
    from service.cli.backup import restore

    return restore({"data": data, "database_url": database_url}, source)
