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
