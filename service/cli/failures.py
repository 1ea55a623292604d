"""Reasons why there is no answer: one paragraph for a person, one JSON document for a program, exit code 2."""

import sys
import traceback
from collections.abc import Callable
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from ninfer_core.errors import NameTaken, NinferError
from service.cli import EXIT_ERROR, interrupts
from service.cli.output import JsonTarget
from service.text import clean

DEBUG: ContextVar[bool] = ContextVar("debug", default=False)  # whether tracebacks are shown

_ADVICE = {
    "cannot_read": "Check that the path is there, that it is a file or folder of the right kind, and that you may read it.",
    "leads_outside": "Put the file itself into the folder, or name the folder that it really lies in.",
    "cannot_write": "Check that the folder exists and has room, and that you may write to it.",
    "cut_short": "The file became shorter while it was read; try again when nobody writes to it.",
}


@dataclass(frozen=True, slots=True)
class Task:
    """What a command is doing and to what; `failed` makes the JSON document that says why there is no answer."""

    command: str
    doing: str
    kept: str  # what an interruption leaves behind
    failed: Callable[[str, str, str], dict[str, Any]] | None = None  # of verdict, code, message
    target: JsonTarget | None = None


def guarded(task: Task, work: Callable[[], int]) -> int:
    """The exit code of `work`; whatever it raises is explained and gives 2, an interruption 130 or so."""
    try:
        return work()
    except KeyboardInterrupt as interrupt:
        interrupts.ignore()  # what is left takes no time
        how = f"{interrupts.described(interrupt)} while {task.doing}"
        kept = interrupt.kept if isinstance(interrupt, interrupts.Interrupted) else None
        tell(f"{how[0].upper()}{how[1:]}. {kept or task.kept}")
        _publish(task, "cancelled", "cancelled", f"{how}. {kept}" if kept else how)
        return interrupts.exit_code(interrupt)
    except NinferError as error:
        _trace()
        tell(" ".join(filter(None, (f"Error while {task.doing}: {sentence(error)}", _advice(task, error)))))
        _publish(task, "error", error.code, str(error))
        return EXIT_ERROR
    except OSError as error:
        _trace()
        what = f"{error.strerror or error}" + (f" ({error.filename})" if error.filename else "")
        tell(f"Error while {task.doing}: {sentence(what)} Check the path and that you may use it.")
        _publish(task, "error", "cannot_read", what)
        return EXIT_ERROR
    except MemoryError:
        _trace()
        tell(f"Error while {task.doing}: there is not enough memory. Free some, or try fewer --threads.")
        _publish(task, "error", "out_of_memory", "not enough memory")
        return EXIT_ERROR
    except Exception as error:  # noqa: BLE001  the last line of defence: a person never meets a traceback unasked
        _trace()
        what = f"{type(error).__name__}: {error}"
        tell(
            f"Error while {task.doing}: {sentence(what)} This is a fault of ninfer-gate, not an answer about the file. "
            f"Run `ninfer-gate --debug {task.command} ...` for the traceback and report it."
        )
        _publish(task, "error", "internal", what)
        return EXIT_ERROR


def _advice(task: Task, error: NinferError) -> str:
    """The next step; empty where the message is one already."""
    if isinstance(error, NameTaken):
        return "Name another file, or move that one away."
    said = getattr(error, "advice", None)  # of who refused it, who knows best
    return str(said) if said else _ADVICE.get(error.code, f"See `ninfer-gate {task.command} --help`.")


def _publish(task: Task, verdict: str, code: str, message: str) -> None:
    if task.target is None or task.failed is None:
        return
    try:
        task.target.write(task.failed(verdict, code, clean(message)))
    except (NinferError, OSError) as error:
        tell(f"The JSON document could not be written either: {sentence(error)}")


def tell(message: str) -> None:
    """One cleaned line on standard error, where somebody still reads it."""
    with suppress(OSError):  # a terminal that hung up
        print(clean(message), file=sys.stderr)


def sentence(text: object) -> str:
    """`text` with a full stop, unless it has one."""
    return str(text) if str(text).endswith((".", "!", "?")) else f"{text}."


def _trace() -> None:
    if DEBUG.get():
        traceback.print_exc()
