"""The command `ninfer-gate`. Commands import what they need when they run, so that listing and help stay quick."""

import gc
import os
import sys
from contextlib import suppress
from typing import TextIO

EXIT_ERROR = 2
EXIT_INTERRUPTED = 130

_OBJECTS_BETWEEN_COLLECTIONS = 100_000  # imports and directories make many objects and hardly any garbage


def main() -> int:
    """Run the command line on `sys.argv`; returns the exit code."""
    gc.set_threshold(_OBJECTS_BETWEEN_COLLECTIONS)
    # Nothing here multiplies matrices: numpy need not start a thread for each processor.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    # A daemon may start us without these streams; what nobody can read goes nowhere.
    sys.stdin = sys.stdin or open(os.devnull)  # noqa: SIM115  open until the process ends
    sys.stdout = sys.stdout or open(os.devnull, "w")  # noqa: SIM115
    sys.stderr = sys.stderr or open(os.devnull, "w")  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        _never_refuse_a_character(stream)
    try:
        from service.cli import app

        code = app.run(sys.argv[1:])
        sys.stdout.flush()
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        from service.cli.screen import drop_output

        drop_output()
        return EXIT_ERROR
    except Exception as error:
        if "--debug" in sys.argv:
            raise
        print(f"Error: {type(error).__name__}: {error}. Run with --debug for the traceback.", file=sys.stderr)
        return EXIT_ERROR
    return code


def _never_refuse_a_character(stream: TextIO) -> None:
    # A terminal that knows ASCII only shows escapes where it would otherwise end the program.
    with suppress(AttributeError):
        stream.reconfigure(errors="backslashreplace")  # type: ignore[attr-defined]  # text files of the system have it
