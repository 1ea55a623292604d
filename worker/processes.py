"""Processes of this machine as the kernel shows them: whether one is still the same, stopped or gone, and its end."""

import os
import signal
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

_PROC = Path("/proc")


@dataclass(frozen=True, slots=True)
class Process:
    """A process that no later one can be mistaken for: the number is given again, the start time is not."""

    machine: str  # within one machine, numbers of processes mean something
    pid: int
    started: int  # clock ticks between boot and its start


@dataclass(frozen=True, slots=True)
class Status:
    """What the kernel says of a process."""

    state: str  # R, S, D, T (stopped), Z (dead, not yet collected) ...
    started: int

    @property
    def ended(self) -> bool:
        """Whether it will never run again; what it held is let go."""
        return self.state in ("Z", "X", "x")

    @property
    def stopped(self) -> bool:
        """Whether a signal stopped it; it keeps its locks."""
        return self.state == "T"


Look = Callable[[int], Status | None]


def look(pid: int) -> Status | None:
    """The process with this number; None when there is none."""
    try:
        text = (_PROC / str(pid) / "stat").read_bytes()
    except OSError:
        return None
    # proc(5): the name stands in parentheses and may itself hold some; the fields are counted after it.
    fields = text[text.rindex(b")") + 2 :].split()
    return Status(fields[0].decode(), int(fields[19]))


def machine() -> str:
    """Boot and process namespace: two workers that share both see each other's processes."""
    boot = (_PROC / "sys" / "kernel" / "random" / "boot_id").read_text().strip()
    return f"{boot}/{os.stat(_PROC / 'self' / 'ns' / 'pid').st_ino}"


def this_process() -> Process:
    """This very process."""
    status = look(os.getpid())
    return Process(machine(), os.getpid(), 0 if status is None else status.started)


def kill(process: Process) -> bool:
    """End `process` of this machine, and no other that has its number now; whether it is gone, or about to be."""
    try:
        descriptor = os.pidfd_open(process.pid)
    except ProcessLookupError:
        return True
    except OSError:
        return False
    try:
        # Compared after it is held: from here on the number cannot be given to another.
        status = look(process.pid)
        if status is None or status.started != process.started:
            return True
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(descriptor, signal.SIGKILL)
    except PermissionError:
        return False
    finally:
        os.close(descriptor)
    return True
