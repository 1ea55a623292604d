"""The commands `kernels` and `selfcheck`."""

from typing import Annotated, Literal

import typer

from service.cli.app import app
from service.cli.options import Json


@app.command("kernels")
def kernels_command(
    json: Json = None,
    only: Annotated[
        str | None,
        typer.Option("--only", metavar="GLOB", help="Only kernels of such names.", show_default="all"),
    ] = None,
) -> int:
    """List the whitelist of kernels, and what self-checks on this machine have proved of each.

    What is not in it is refused: no other kernel stands in. Outcomes count only while kernel, device, driver and compiler
    are those that were checked.
    """
    from service.cli.kernels import kernels

    return kernels(json, only)


@app.command("selfcheck")
def selfcheck_command(
    device: Annotated[
        str,
        typer.Option("--device", metavar="cpu|cuda:N|all", help="What to check; all is every device here."),
    ] = "cpu",
    full: Annotated[
        bool,
        typer.Option(
            "--full/--quick",
            help="Every word of the small types, a million drawn weights a kernel, matrices beyond 2**31 elements, and "
            "throughput; or the known answers and some of each kind of question, in seconds.",
        ),
    ] = False,
    only: Annotated[
        str | None,
        typer.Option("--only", metavar="GLOB", help="Only kernels of such names.", show_default="all"),
    ] = None,
    seed: Annotated[
        int, typer.Option("--seed", metavar="N", min=0, help="Of drawn words: the same seed, the same words.")
    ] = 0,
    library: Annotated[
        str | None,
        typer.Option(
            "--library",
            metavar="FILE.so",
            help="Check kernels of your own in a shared library; docs/conformance.md has the interface.",
            show_default=False,
        ),
    ] = None,
    kernels: Annotated[
        str | None,
        typer.Option(
            "--kernels",
            metavar="MODULE:OBJECT",
            help="Check kernels of your own in Python; the code runs with your rights.",
            show_default=False,
        ),
    ] = None,
    require: Annotated[
        list[str] | None,
        typer.Option(
            "--require",
            metavar="GLOB",
            help="Of kernels of your own: without those of such names the check is incomplete. May be repeated.",
            show_default=False,
        ),
    ] = None,
    json: Json = None,
) -> int:
    """Prove on this machine that every kernel gives the words that its oracle gives.

    Exit codes: 0 passed, 1 a kernel failed, 2 could not, 3 incomplete (a kernel was not checked, or not in full).
    """
    from service.cli.selfcheck import Request, selfcheck

    level: Literal["quick", "full"] = "full" if full else "quick"
    return selfcheck(Request(device, level, only, seed, json, library, kernels, tuple(require or ())))
