"""The commands `token` and `project`, for who runs the service: they work on its database."""

from typing import Annotated

import typer

from service.cli.app import app
from service.cli.options import Json
from service.cli.service_app import Data, DatabaseUrl

token_app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Tokens of a project, by whoever may write to the service's database.",
    epilog="Try: token create --scope submit --name ci. Administrators of a project make tokens over HTTP or on "
    "the page of the project too. docs/access.md says who may do what.",
)
project_app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Projects: what each holds is seen by its own tokens alone.",
    epilog="Try: project add vision --quota 2TB, then token create --project vision.",
)
app.add_typer(token_app, name="token")
app.add_typer(project_app, name="project")

Project = Annotated[str, typer.Option("--project", metavar="NAME", help="The project that it is for.")]
Name = Annotated[str, typer.Argument(metavar="NAME", help="The project.", show_default=False)]
Quota = Annotated[
    str | None,
    typer.Option(
        "--quota",
        metavar="BYTES|none",
        help="Most bytes that it may hold, such as 500GB; none for what the settings say.",
        show_default=False,
    ),
]
Running = Annotated[
    str | None,
    typer.Option(
        "--max-running-jobs",
        metavar="N|none",
        help="Most of its jobs that run at a time; none for what the settings say.",
        show_default=False,
    ),
]


@token_app.callback()
def token_command() -> None:
    """See the help of the group."""


@token_app.command("create")
def create_command(
    project: Project = "default",
    name: Annotated[str, typer.Option("--name", metavar="TEXT", help="What it is for.")] = "made by hand",
    scope: Annotated[
        list[str] | None,
        typer.Option(
            "--scope",
            metavar="read|submit|gate|admin",
            help="What it may do; repeat for more.",
            show_default="admin",
        ),
    ] = None,
    days: Annotated[
        int | None,
        typer.Option(
            "--expires-in-days",
            metavar="N",
            min=1,
            max=3_650,
            help="When it ends.",
            show_default="it does not",
        ),
    ] = None,
    data: Data = None,
    database_url: DatabaseUrl = None,
) -> int:
    """Make a token and print it: once, alone on standard output. Tokens made before stay.

    Exit codes: 0 made, 2 could not.
    """
    from service.cli.token import Asked, create

    asked = Asked(project, name, tuple(scope or ("admin",)), days)
    return create({"data": data, "database_url": database_url}, asked)


@token_app.command("list")
def list_command(
    project: Project = "default", json: Json = None, data: Data = None, database_url: DatabaseUrl = None
) -> int:
    """List tokens, identities that were let in and browser sessions, without their texts.

    Exit codes: 0 listed, 2 could not.
    """
    from service.cli.token import list_tokens

    return list_tokens({"data": data, "database_url": database_url}, project, json)


@token_app.command("revoke")
def revoke_command(
    id_: Annotated[str, typer.Argument(metavar="ID", help="As `list` shows it.", show_default=False)],
    project: Project = "default",
    data: Data = None,
    database_url: DatabaseUrl = None,
) -> int:
    """End a token, and every browser session that was opened with it.

    Exit codes: 0 ended, 2 could not.
    """
    from service.cli.token import revoke

    return revoke({"data": data, "database_url": database_url}, project, id_)


@project_app.callback()
def project_command() -> None:
    """See the help of the group."""


@project_app.command("add")
def add_command(
    name: Name,
    quota: Quota = None,
    running: Running = None,
    data: Data = None,
    database_url: DatabaseUrl = None,
) -> int:
    """Make a project, which nobody can open before it has a token.

    Exit codes: 0 made, 2 could not.
    """
    from service.cli.project import add

    return add({"data": data, "database_url": database_url}, name, quota, running)


@project_app.command("list")
def projects_command(json: Json = None, data: Data = None, database_url: DatabaseUrl = None) -> int:
    """List every project with its bounds, those that are being deleted included.

    Exit codes: 0 listed, 2 could not.
    """
    from service.cli.project import list_projects

    return list_projects({"data": data, "database_url": database_url}, json)


@project_app.command("set")
def set_command(
    name: Name,
    quota: Quota = None,
    running: Running = None,
    data: Data = None,
    database_url: DatabaseUrl = None,
) -> int:
    """Change the bounds of a project; what is not given stays.

    Exit codes: 0 changed, 2 could not.
    """
    from service.cli.project import change

    return change({"data": data, "database_url": database_url}, name, quota, running)


@project_app.command("delete")
def delete_command(
    name: Name,
    confirm: Annotated[
        str | None,
        typer.Option(
            "--confirm", metavar="NAME", help="The name once more; asked for otherwise.", show_default=False
        ),
    ] = None,
    data: Data = None,
    database_url: DatabaseUrl = None,
) -> int:
    """Delete a project with all that it holds, evidence included. Nothing brings it back.

    Exit codes: 0 deleted: nothing opens it any more, and workers remove what it holds; 2 could not.
    """
    from service.cli.project import delete

    return delete({"data": data, "database_url": database_url}, name, confirm)
