"""The command `ninfer-gate`. Commands import what they need when they run, so that listing and help stay quick."""

import gc
import os
import sys
from contextlib import suppress
from itertools import pairwise
from typing import TextIO

from service.cli import interrupts

EXIT_ERROR = 2

_OBJECTS_BETWEEN_COLLECTIONS = 100_000  # imports and directories make many objects and hardly any garbage
_OPEN_FILES = 65_536  # an artifact may have thousands of parts


def main() -> int:
    """Run the command line on `sys.argv`; returns the exit code."""
    try:
        interrupts.install()
        code = _run()
        interrupts.ignore()  # the answer is given; the interpreter only has to end
    except KeyboardInterrupt as interrupt:
        interrupts.ignore()
        _interrupted(interrupt)
        return interrupts.exit_code(interrupt)
    return code


def _run() -> int:
    gc.set_threshold(_OBJECTS_BETWEEN_COLLECTIONS)
    # Nothing here multiplies matrices: numpy need not start a thread for each processor.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    _allow_many_files()
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
    except BrokenPipeError:
        from service.cli.screen import drop_output

        drop_output()
        return EXIT_ERROR
    except Exception as error:
        if "--debug" in sys.argv:
            raise
        from service.text import clean

        what = clean(f"{type(error).__name__}: {error}")
        print(f"Error: {what}. Run with --debug for the traceback.", file=sys.stderr)
        return EXIT_ERROR
    return code


def _interrupted(interrupt: KeyboardInterrupt) -> None:
    # The work itself explains its interruptions; this one came before it, or between it and the end.
    how = interrupts.described(interrupt)
    with suppress(OSError, AttributeError):
        print(f"{how[0].upper()}{how[1:]} before there was an answer. Nothing is kept.", file=sys.stderr)
    message = f"{how} before there was an answer"
    with suppress(OSError):
        try:
            from service.cli import app

            app.publish_no_answer(sys.argv[1:], "cancelled", "cancelled", message)
        except Exception:  # noqa: BLE001  a module whose import was stopped half-way may not be importable again
            _publish_without_help(message)


def _publish_without_help(message: str) -> None:
    arguments = sys.argv[1:]
    if "--json=-" not in arguments and ("--json", "-") not in pairwise(arguments):
        return
    document = (
        f'{{"schema": "ninfer-gate/report/1", "verdict": "cancelled", '
        f'"error": {{"code": "cancelled", "message": "{message}"}}}}'
    )
    print(document, flush=True)


def _allow_many_files() -> None:
    with suppress(ImportError, OSError, ValueError):
        import resource

        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        wanted = _OPEN_FILES if hard == resource.RLIM_INFINITY else min(hard, _OPEN_FILES)
        if soft != resource.RLIM_INFINITY and soft < wanted:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def _never_refuse_a_character(stream: TextIO) -> None:
    # A terminal that knows ASCII only shows escapes where it would otherwise end the program.
    with suppress(AttributeError):
        stream.reconfigure(errors="backslashreplace")  # type: ignore[attr-defined]  # text files of the system have it
