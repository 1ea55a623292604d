"""Arguments and options that several commands share."""

from typing import Annotated

import typer

ArtifactPath = Annotated[
    str,
    typer.Argument(
        metavar="PATH",
        help="A .ninfer entry, a safetensors file or index, or a folder that holds one of them.",
        show_default=False,
    ),
]
Json = Annotated[
    str | None,
    typer.Option(
        "--json",
        metavar="FILE|-",
        help="Write everything as one JSON document; - means standard output and nothing else on it.",
        show_default=False,
    ),
]
Threads = Annotated[
    int | None,
    typer.Option(
        "--threads", metavar="N", min=1, help="Worker threads.", show_default="one for each processor"
    ),
]
Inputs = Annotated[
    list[str] | None,
    typer.Option(
        "--input",
        metavar="NAME=FILE",
        help="A file that the recipe names as an input; repeat for each.",
        show_default=False,
    ),
]
Limit = Annotated[
    int | None,
    typer.Option("--limit", metavar="N", min=0, help="List at most N objects.", show_default="all of them"),
]
FilledTarget = Annotated[
    str | None,
    typer.Option(
        "--target",
        metavar="MODEL/WEIGHTS|FILE",
        help="The target that the recipe must fill; it states the formats that rules leave out.",
        show_default="the registered one of its identity, where rules leave formats out",
    ),
]
