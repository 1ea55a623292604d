"""The commands and their options; what they do is in the module of the same name, imported when it is asked for."""

import sys
from collections.abc import Sequence
from io import StringIO
from itertools import pairwise
from typing import Annotated

import typer
from typer.exceptions import TyperException
from typer.main import get_command

from service.cli import EXIT_ERROR
from service.cli.failures import DEBUG
from service.cli.interrupts import given_back
from service.cli.options import ArtifactPath, FilledTarget, Inputs, Json, Limit, Threads
from service.cli.output import DOCUMENT_BEGUN
from service.text import clean

app = typer.Typer(
    name="ninfer-gate",
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Proves quantized weight files right, value by value, and says where their numbers came from.",
    epilog="Exit codes: 0 passed or done, 1 failed, 2 no answer, 3 incomplete, 130 interrupted (128 and the number of any signal).",
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)


def _print_version(asked: bool) -> None:
    if asked:
        version_command()
        raise typer.Exit


@app.callback()
def options(
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """Options that stand before the command."""
    DEBUG.set(debug)


@app.command("inspect")
def inspect_command(
    path: ArtifactPath,
    json: Json = None,
    limit: Limit = None,
) -> int:
    """List what a file holds; no payload is read.

    Exit codes: 0 the structure is right, 1 it is not, 2 no answer.
    """
    from service.cli.inspect import inspect

    return inspect(path, json, limit)


@app.command("verify")
def verify_command(
    path: ArtifactPath,
    source: Annotated[
        list[str] | None,
        typer.Option(
            "--source",
            "--checkpoint",
            metavar="[ROLE=]DIR",
            help="The checkpoint of a role of the recipe (base unless named); repeat for each role.",
            show_default=False,
        ),
    ] = None,
    inputs: Inputs = None,
    recipe: Annotated[
        str | None,
        typer.Option(
            "--recipe",
            metavar="FILE|ID|auto",
            help="The recipe that says what each object is made of: a file, a registered one, or the registered one "
            "of the artifact's identity.",
            show_default=False,
        ),
    ] = None,
    target: Annotated[
        str | None,
        typer.Option(
            "--target",
            metavar="auto|MODEL/WEIGHTS|FILE",
            help="The closed list of objects that the artifact must hold; auto picks it by the artifact's identity.",
            show_default=False,
        ),
    ] = None,
    canonical: Annotated[
        bool,
        typer.Option("--canonical", help="Make the target's order and tight placement a demand."),
    ] = False,
    sample: Annotated[
        str | None,
        typer.Option(
            "--sample",
            metavar="SHARE",
            help="Compare only this share of the rows with the source, such as 1%; the report says what that can find.",
            show_default="all rows",
        ),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(
            "--seed",
            metavar="N",
            min=0,
            help="Of the sample: the same seed, the same rows.",
            show_default="0",
        ),
    ] = None,
    expect: Annotated[
        str | None,
        typer.Option(
            "--expect",
            metavar="sha256:HEX",
            help="The digest that the artifact must have; of other bytes nothing is said.",
            show_default=False,
        ),
    ] = None,
    checks: Annotated[
        str | None,
        typer.Option(
            "--checks",
            metavar="a,b",
            help="Only these checks, of structure, layout, values, statistics, restrictions, inventory, relations, "
            "source and parity; structure and inventory alone read no object.",
            show_default="all that apply",
        ),
    ] = None,
    json: Json = None,
    threads: Threads = None,
) -> int:
    """Check every byte of an artifact.

    A target tells whether it is complete; a recipe adds what its words and objects must say of each other; with the
    sources it proves where every word came from.

    Exit codes: 0 passed, 1 failed, 2 no answer, 3 incomplete (something asked was not checked), 130 interrupted.
    """
    from service.cli.verify import Request, verify

    return verify(
        Request(
            path,
            source or [],
            inputs or [],
            recipe,
            target,
            canonical,
            sample,
            seed,
            expect,
            checks,
            json,
            threads,
        )
    )


@app.command("convert")
def convert_command(
    checkpoint: Annotated[
        list[str] | None,
        typer.Option(
            "--checkpoint",
            "--source",
            metavar="[ROLE=]DIR",
            help="The checkpoint of a role of the recipe (base unless named); repeat for each role.",
            show_default=False,
        ),
    ] = None,
    recipe: Annotated[
        str | None,
        typer.Option(
            "--recipe",
            metavar="FILE|ID",
            help="The recipe, a file or a registered one: it alone chooses encoders, formats and identity.",
            show_default=False,
        ),
    ] = None,
    out: Annotated[
        str | None,
        typer.Option(
            "--out", metavar="FILE", help="The new file; it must not exist yet.", show_default=False
        ),
    ] = None,
    target: FilledTarget = None,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run",
            help="Only say what would be written, and every fault of recipe and sources that shows without encoding; "
            "without --checkpoint, of the recipe alone.",
        ),
    ] = False,
    inputs: Inputs = None,
    revision: Annotated[
        int,
        typer.Option("--revision", metavar="2|3", min=2, max=3, help="The framing revision to write."),
    ] = 2,
    max_file_bytes: Annotated[
        int | None,
        typer.Option(
            "--max-file-bytes",
            metavar="N",
            min=1,
            help="Begin another part before a file would be larger (revision 3).",
            show_default="32000000000",
        ),
    ] = None,
    json: Json = None,
    threads: Threads = None,
) -> int:
    """Make a .ninfer artifact as a recipe says.

    The new file appears whole or not at all.

    Exit codes: 0 written, 1 refused with findings, 2 could not, 130 interrupted.
    """
    from service.cli.convert import Request, convert

    return convert(
        Request(
            checkpoint or [],
            inputs or [],
            recipe,
            out,
            target,
            dry_run,
            revision,
            max_file_bytes,
            json,
            threads,
        )
    )


@app.command("diff")
def diff_command(
    a: Annotated[
        str,
        typer.Argument(metavar="A", help="A .ninfer entry, or a folder that holds one.", show_default=False),
    ],
    b: Annotated[
        str, typer.Argument(metavar="B", help="The artifact that is held against it.", show_default=False)
    ],
    json: Json = None,
    worst: Annotated[
        int, typer.Option("--worst", metavar="N", min=0, help="List at most N objects that differ.")
    ] = 10,
    everything: Annotated[bool, typer.Option("--all", help="List every object, identical ones too.")] = False,
    threads: Threads = None,
) -> int:
    """Compare two .ninfer artifacts object by object.

    Says what was added, removed, changed, re-encoded, and by how much the values differ, across formats and revisions.

    Exit codes: 0 identical, 1 different (objects, or what a reader goes by beside them: identity, bindings, components,
    uses, metadata), 2 no answer (also where the rest is identical and something cannot be read), 130 interrupted.
    """
    from service.cli.diff import Request, diff

    return diff(Request(a, b, json, worst, everything, threads))


@app.command("decode")
def decode_command(
    path: ArtifactPath,
    name: Annotated[
        str, typer.Argument(metavar="OBJECT", help="The name of a tensor in it.", show_default=False)
    ],
    out: Annotated[
        str,
        typer.Option(
            "--out", metavar="x.npy", help="The new NumPy file; it must not exist yet.", show_default=False
        ),
    ],
    threads: Threads = None,
) -> int:
    """Write the values of one tensor as a NumPy file.

    Quantized formats give binary32 values in logical shape, direct formats their words.

    Exit codes: 0 written, 1 the words are not legal, 2 could not, 130 interrupted.
    """
    from service.cli.decode import decode

    return decode(path, name, out, threads)


@app.command("formats")
def formats_command(json: Json = None) -> int:
    """List the registered numeric formats."""
    from service.cli.formats import formats

    return formats(json)


@app.command("explain")
def explain_command(
    code: Annotated[
        str,
        typer.Argument(
            metavar="CODE",
            help="A finding code, a check, a format, a layout, an encoder or compute profile, a kernel, a shape "
            "regime, another `encode` or a restriction rule of a recipe, or a format name met elsewhere.",
            show_default=False,
        ),
    ],
) -> int:
    """Say what a finding or a name means, and what to do.

    A name that is not registered is explained too: why it is not.
    """
    from service.cli.explain import explain

    return explain(code)


@app.command("version")
def version_command() -> int:
    """Print the version."""
    from ninfer_core import __version__

    print(f"ninfer-gate {__version__}")
    return 0


def run(arguments: Sequence[str]) -> int:
    """The exit code of one command line; a mistake in the options is explained and gives 2."""
    from service.cli import (  # noqa: F401  add commands of their own
        access_app,
        backup_app,
        campaign_app,
        push_app,
        recipe_app,
        schemes_app,
        selfcheck_app,
        service_app,
        struct_app,
        targets_app,
        trust_app,
        vectors_app,
    )

    DOCUMENT_BEGUN.set(False)
    command = get_command(app)
    try:
        # Not `app(...)`, which would make a mere code of an interruption.
        with given_back(), command.make_context("ninfer-gate", list(arguments)) as context:
            code = command.invoke(context)
    except typer.Exit as end:
        return end.exit_code
    except TyperException as error:
        _show(error, arguments)
        publish_no_answer(arguments, "error", "usage", clean(error.format_message()))
        return EXIT_ERROR
    except typer.Abort:
        return EXIT_ERROR
    return code if isinstance(code, int) else 0


def _show(error: TyperException, arguments: Sequence[str]) -> None:
    show = getattr(error, "show", None)
    if show is None:
        print(f"Error: {clean(error.format_message())}", file=sys.stderr)
    elif not arguments:
        show()  # the help, which holds nothing from outside
    else:
        shown = StringIO()
        show(file=shown)
        message = error.format_message()
        head = shown.getvalue().replace(message, "").rstrip()  # usage and hint end with `Error:`
        lines = [clean(line) for line in head.split("\n")]
        print("\n".join(lines), clean(message), file=sys.stderr)


def publish_no_answer(arguments: Sequence[str], verdict: str, code: str, message: str) -> None:
    """The one document that `--json -` promises on standard output, also when the command never ran."""
    if "--json=-" not in arguments and ("--json", "-") not in pairwise(arguments):
        return
    from ninfer_core.compare import SCHEMA as COMPARISON_SCHEMA
    from ninfer_core.format_facts import FORMATS_SCHEMA
    from ninfer_core.schemes.catalogue import SCHEMES_SCHEMA
    from ninfer_core.schemes.struct_checking import STRUCT_CHECK_SCHEMA
    from service.cli.output import (
        CONVERSION_SCHEMA,
        INSPECTION_SCHEMA,
        KERNELS_SCHEMA,
        PUSH_SCHEMA,
        RECIPE_SCHEMA,
        SELFCHECK_SCHEMA,
        TARGETS_SCHEMA,
        VECTORS_SCHEMA,
        JsonTarget,
        no_document,
        no_report,
    )

    schemas = {
        "convert": CONVERSION_SCHEMA,
        "diff": COMPARISON_SCHEMA,
        "inspect": INSPECTION_SCHEMA,
        "formats": FORMATS_SCHEMA,
        "kernels": KERNELS_SCHEMA,
        "push": PUSH_SCHEMA,
        "recipe": RECIPE_SCHEMA,
        "schemes": SCHEMES_SCHEMA,
        "selfcheck": SELFCHECK_SCHEMA,
        "struct": STRUCT_CHECK_SCHEMA,
        "targets": TARGETS_SCHEMA,
        "vectors": VECTORS_SCHEMA,
    }
    schema = next((schemas[argument] for argument in arguments if argument in schemas), None)
    document = (
        no_report(verdict, code, message) if schema is None else no_document(schema, verdict, code, message)
    )
    JsonTarget(None).write(document)
