"""The command `push`."""

from typing import Annotated, Literal

import typer

from service.cli.app import app
from service.cli.options import Json

Address = Annotated[
    str | None,
    typer.Option(
        "--url",
        metavar="URL",
        help="Where the service is; its token is read from NINFER_GATE_TOKEN.",
        show_default="NINFER_GATE_URL, or http://127.0.0.1:8000",
    ),
]


@app.command("push")
def push_command(
    paths: Annotated[
        list[str],
        typer.Argument(
            metavar="PATHS...", help="Files, and folders whose files are meant.", show_default=False
        ),
    ],
    kind: Annotated[
        Literal["ninfer", "safetensors"] | None,
        typer.Option(
            "--kind", help="Make an artifact of this kind of the files.", show_default="content alone"
        ),
    ] = None,
    checkpoint: Annotated[
        bool, typer.Option("--checkpoint", help="Make a checkpoint of the files instead.")
    ] = False,
    repository: Annotated[
        str | None,
        typer.Option(
            "--repository", metavar="NAME", help="What is claimed of the checkpoint.", show_default=False
        ),
    ] = None,
    revision: Annotated[
        str | None,
        typer.Option("--revision", metavar="NAME", help="Likewise.", show_default=False),
    ] = None,
    verify: Annotated[
        bool, typer.Option("--verify", help="Verify the artifact there, and wait for the verdict.")
    ] = False,
    parallel: Annotated[
        int, typer.Option("--parallel", metavar="N", min=1, max=32, help="Files that are sent at a time.")
    ] = 4,
    via: Annotated[
        Literal["auto", "tus", "parts"],
        typer.Option(
            "--via",
            help="tus goes through the service, parts straight to its S3 store; auto takes parts where they are offered.",
        ),
    ] = "auto",
    patience: Annotated[
        float,
        typer.Option(
            "--patience", metavar="SECONDS", min=0, help="How long to try while not one byte gets on."
        ),
    ] = 300.0,
    url: Address = None,
    json: Json = None,
) -> int:
    """Send files to a service; what it holds already is not sent, and what broke off goes on.

    After an interruption, or a crash of either side, the same command continues.

    Exit codes: 0 there (and passed), 1 the verification failed, 2 could not, 3 it is incomplete, 130 interrupted.
    """
    from service.cli.push import Request, push

    return push(
        Request(paths, kind, checkpoint, repository, revision, verify, parallel, via, patience, url, json)
    )
