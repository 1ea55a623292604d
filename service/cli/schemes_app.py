"""The command `schemes` and what stands under it."""

from typing import Annotated

import typer

from service.cli.app import app
from service.cli.options import Json

schemes_app = typer.Typer(
    invoke_without_command=True,
    no_args_is_help=False,
    rich_markup_mode=None,
    help="The catalogue of foreign quantization schemes. Alone it lists them. None of its names is a format of .ninfer.",
    epilog="Try: schemes show Q4_K. docs/schemes.md has every scheme.",
)
app.add_typer(schemes_app, name="schemes")

Form = Annotated[
    str,
    typer.Argument(
        metavar="NAME",
        help="A form, as `schemes show` names it, or a scheme whose files have one form.",
        show_default=False,
    ),
]
Parts = Annotated[
    list[str] | None,
    typer.Option(
        "--in",
        metavar="[PART=]FILE[#ARRAY]",
        help="A .safetensors, .npz or .npy file, or the bytes alone; repeat with PART= for one file a part, "
        "and with #ARRAY where an archive calls it otherwise.",
        show_default=False,
    ),
]
Prefix = Annotated[
    str,
    typer.Option(
        "--prefix",
        metavar="TEXT",
        help="What stands before the names of the parts in the file, such as model.layers.0.mlp.up_proj. (with the dot).",
        show_default=False,
    ),
]
ShapeOption = Annotated[
    str | None,
    typer.Option(
        "--shape",
        metavar="AxB",
        help="The shape of the decoded tensor, such as 4096x4096.",
        show_default="what the parts imply",
    ),
]
Params = Annotated[
    list[str] | None,
    typer.Option(
        "--params",
        metavar="NAME=VALUE",
        help="A parameter of the form; repeat for each, or give one JSON object.",
        show_default=False,
    ),
]


@schemes_app.callback()
def schemes_command(context: typer.Context, json: Json = None) -> int:
    """See the help of the group."""
    if context.invoked_subcommand is not None:
        if json is not None:
            raise typer.BadParameter(f"put --json after {context.invoked_subcommand}")
        return 0
    from service.cli.schemes import list_schemes

    return list_schemes(None, None, json)


@schemes_app.command("list")
def list_command(
    kind: Annotated[
        str | None,
        typer.Option(
            "--kind",
            metavar="PROFILE",
            help="Only schemes of this profile, such as codebook, linear or tiling.",
            show_default=False,
        ),
    ] = None,
    match: Annotated[
        str | None,
        typer.Option(
            "--match",
            metavar="TEXT",
            help="Only schemes with this in a name, a title or a form.",
            show_default=False,
        ),
    ] = None,
    json: Json = None,
) -> int:
    """List the schemes: bits per weight claimed, declared and real, and what can be encoded.

    Exit codes: 0 listed, 2 no answer.
    """
    from service.cli.schemes import list_schemes

    return list_schemes(kind, match, json)


@schemes_app.command("show")
def show_command(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME", help="A scheme, a spelling of the seed, or a form.", show_default=False
        ),
    ],
    shape: Annotated[
        str | None,
        typer.Option(
            "--shape", metavar="AxB", help="Sizes and layout for this shape.", show_default="an example"
        ),
    ] = None,
    params: Params = None,
    onnx: Annotated[
        bool,
        typer.Option("--onnx", help="Print the decoder of one form as an ONNX function, and nothing else."),
    ] = False,
    encoder: Annotated[
        bool, typer.Option("--encoder", help="With --onnx: print the encoder in place of the decoder.")
    ] = False,
    json: Json = None,
) -> int:
    """Show a scheme: its forms with their parts, parameters and layout, and what the seed, the page behind the catalogue, gets wrong about it.

    Exit codes: 0 shown, 2 no answer.
    """
    from service.cli.schemes import show_scheme

    return show_scheme(name, shape, params or [], onnx, json, encoder)


@schemes_app.command("decode")
def decode_command(
    name: Form,
    out: Annotated[
        str,
        typer.Option(
            "--out", metavar="x.npy", help="The new NumPy file; it must not exist yet.", show_default=False
        ),
    ],
    inputs: Parts = None,
    prefix: Prefix = "",
    shape: ShapeOption = None,
    params: Params = None,
) -> int:
    """Write the values of stored arrays as a NumPy file, in binary32.

    Words that `check` objects to, such as the scale NaN, are decoded and shown beside the outcome; what has no
    value at all is refused.

    Exit codes: 0 written, 1 refused with findings, 2 could not, 130 interrupted.
    """
    from service.cli.schemes_values import Given, decode

    return decode(Given(name, inputs or [], prefix, shape, params or []), out)


@schemes_app.command("encode")
def encode_command(
    name: Form,
    values: Annotated[
        str,
        typer.Option(
            "--in", metavar="x.npy", help="The values, in binary32 or a narrower float.", show_default=False
        ),
    ],
    out: Annotated[
        str,
        typer.Option(
            "--out",
            metavar="FILE",
            help="The new file: an .npz with every part, or of a form of one part its bytes; it must not exist yet.",
            show_default=False,
        ),
    ],
    params: Params = None,
) -> int:
    """Write values as a form stores them, where a rule says how.

    `schemes show` says which forms have an encoder, and what it promises.

    Exit codes: 0 written, 1 refused with findings, 2 could not, 130 interrupted.
    """
    from service.cli.schemes_values import encode

    return encode(name, values, params or [], out)


@schemes_app.command("check")
def check_command(
    name: Form,
    inputs: Parts = None,
    prefix: Prefix = "",
    shape: ShapeOption = None,
    params: Params = None,
    reference: Annotated[
        str | None,
        typer.Option(
            "--reference",
            metavar="x.npy",
            help="What the parts must decode to, word for word in the type of this file.",
            show_default=False,
        ),
    ] = None,
    within: Annotated[
        float,
        typer.Option(
            "--within",
            metavar="X",
            min=0,
            help="With --reference: how far apart two values may be.",
            show_default="every word",
        ),
    ] = 0.0,
    source: Annotated[
        str | None,
        typer.Option(
            "--source",
            metavar="x.npy",
            help="The values before quantization: the error is measured, and conventions are tried on them.",
            show_default=False,
        ),
    ] = None,
    json: Json = None,
) -> int:
    """Check stored arrays: that they fit, that every word is legal, that the label's convention holds.

    With a reference also that every value is right.

    Exit codes: 0 passed, 1 failed, 2 no answer, 130 interrupted.
    """
    from service.cli.schemes_values import Given, check

    return check(Given(name, inputs or [], prefix, shape, params or []), reference, within, source, json)
