"""The commands that run the service, and their options; each is a change to one setting."""

from pathlib import Path
from typing import Annotated

import typer

from service.cli.app import app

Data = Annotated[
    Path | None,
    typer.Option(
        "--data",
        metavar="DIR",
        help="Folder of the content store and of the SQLite databases.",
        show_default="ninfer-gate-data",
    ),
]
DatabaseUrl = Annotated[
    str | None,
    typer.Option(
        "--database-url",
        metavar="URL",
        help="sqlite:///FILE or postgresql://USER:PASSWORD@HOST/NAME.",
        show_default="SQLite in the data folder",
    ),
]
Threads = Annotated[
    int | None,
    typer.Option(
        "--threads",
        metavar="N",
        min=1,
        help="Shards that a worker runs at a time.",
        show_default="one for each processor",
    ),
]

Device = Annotated[
    str | None,
    typer.Option(
        "--device",
        metavar="auto|cpu|cuda:N",
        help="What a worker's kernels run on; cuda:N is required then.",
        show_default="auto",
    ),
]


@app.command("serve")
def serve_command(
    data: Data = None,
    host: Annotated[
        str | None,
        typer.Option("--host", metavar="ADDRESS", help="Where to listen.", show_default="127.0.0.1"),
    ] = None,
    port: Annotated[
        int | None,
        typer.Option(
            "--port", metavar="N", min=0, max=65535, help="The port; 0 takes a free one.", show_default="8000"
        ),
    ] = None,
    database_url: DatabaseUrl = None,
    threads: Threads = None,
    device: Device = None,
    worker: Annotated[
        bool, typer.Option("--worker/--no-worker", help="Run a worker process beside the API.")
    ] = True,
) -> int:
    """Serve the API and the pages, with one worker process.

    Makes or updates the databases, prints the address, and at the first start the token that opens everything.
    Every setting can be given as NINFER_GATE_<NAME> in the environment too.

    Exit codes: 0 stopped by a signal, 2 could not start.
    """
    from service.cli.serve import Request, serve

    changes = {"data": data, "host": host, "port": port, "database_url": database_url}
    changes |= {"threads": threads, "device": device}
    return serve(Request(changes, worker))


@app.command("worker")
def worker_command(
    data: Data = None, database_url: DatabaseUrl = None, threads: Threads = None, device: Device = None
) -> int:
    """Run one more worker on the same databases and content store, once its device has passed the quick self-check.

    Exit codes: 0 stopped by a signal, 2 could not start, 75 taken for dead by another worker: start it again.
    """
    from service.cli.worker import worker

    return worker({"data": data, "database_url": database_url, "threads": threads, "device": device})


@app.command("migrate")
def migrate_command(data: Data = None, database_url: DatabaseUrl = None) -> int:
    """Make the databases, or bring them up to date. `serve` does it too.

    Exit codes: 0 up to date, 2 could not.
    """
    from service.cli.migrate import migrate

    return migrate({"data": data, "database_url": database_url})
