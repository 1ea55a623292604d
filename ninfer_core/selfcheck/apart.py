"""Calls into foreign kernels in a process of their own: what goes wrong there comes back as `ForeignFailed`.

Input and output lie in shared memory between guard bytes. A kernel that writes outside of its output, changes its
input, crashes, ends its process or does not come back is told from one that is merely wrong.
"""

import json
import mmap
import os
import select
import signal
import subprocess
import sys
import tempfile
import weakref
from contextlib import suppress
from dataclasses import asdict
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ninfer_core.layouts.base import align_up
from ninfer_core.selfcheck.protocol import Call, ForeignFailed, Hung, Reply

Bytes = NDArray[np.uint8]
GUARD: Final = 0xA5
GUARD_BYTES: Final = 4096
SECONDS: Final = 20.0  # for loading and for one call,
SECONDS_A_WEIGHT: Final = 1e-4  # and as many more for each of its weights: none takes a slow kernel as long
_PAGE: Final = 1 << 20


class Apart:
    """The process that runs the kernels, started when it is needed and again after it died.

    `inside` are the seconds that all calls together have spent in the kernels themselves.
    """

    def __init__(self, kind: str, target: str, seconds: float = SECONDS) -> None:
        self._command = [sys.executable, "-P", "-m", "ninfer_core.selfcheck.host", kind, target]
        self._seconds = seconds
        self.inside = 0.0
        self._number = 0  # of the last call: a reply bears that of its own
        self._child: subprocess.Popen[bytes] | None = None
        self._requests = self._replies = -1
        self._map: mmap.mmap | None = None
        self._memory = _memory()
        self._finalizer = weakref.finalize(self, os.close, self._memory)

    def start(self) -> None:
        """Load the kernels. Raises: ForeignFailed when they cannot be."""
        if self._child is not None:
            return
        ours, theirs = os.pipe(), os.pipe()
        kept = (ours[0], theirs[1], self._memory)
        command = [*self._command, *map(str, kept)]
        self._child = subprocess.Popen(  # noqa: S603  no shell
            command, pass_fds=kept, stdin=subprocess.DEVNULL, start_new_session=True
        )
        os.close(ours[0])
        os.close(theirs[1])
        self._requests, self._replies = ours[1], theirs[0]
        unusable = self._line("loading", SECONDS)["unusable"]
        if unusable is not None:
            self.close()
            raise ForeignFailed(unusable)

    def call(
        self, function: str, fmt: str, dtype: str, shape: tuple[int, ...], given: NDArray[Any], room: int
    ) -> tuple[Reply, Bytes]:
        """The reply and the output of `room` bytes, a view that holds until the next call. Raises: ForeignFailed."""
        flat = np.ascontiguousarray(given).reshape(-1).view(np.uint8)
        first, second, end = _places(flat.size, room)
        memory = self._grown(end)
        memory[:first], memory[first : first + flat.size], memory[first + flat.size : end] = (
            GUARD,
            flat,
            GUARD,
        )
        places = (first, flat.size), (second, room), align_up(end, _PAGE)
        call = Call(function, fmt, dtype, shape[0], shape[1], *places)
        self.start()
        reply = Reply(**self._asked(call))
        self.inside += reply.seconds
        if (memory[first : first + flat.size] != flat).any():
            raise ForeignFailed(f"{call}: it changed its input")
        for guard in (memory[:first], memory[first + flat.size : second], memory[second + room : end]):
            if (guard != GUARD).any():
                raise ForeignFailed(f"{call}: it wrote outside of its output of {room:,} bytes")
        return reply, memory[second : second + room]

    def _asked(self, call: Call) -> dict[str, Any]:
        self._number += 1
        line = json.dumps({"number": self._number, "call": asdict(call)}).encode() + b"\n"
        with suppress(BrokenPipeError):  # it died since: reading says how
            os.write(self._requests, line)
        document = self._line(str(call), self._seconds + SECONDS_A_WEIGHT * call.rows * call.columns)
        if document["number"] != self._number:
            raise self._confused(str(call))
        reply: dict[str, Any] = document["reply"]
        return reply

    def _confused(self, what: str) -> ForeignFailed:
        self.close()
        return ForeignFailed(f"{what}: its process, or another that it made, answered more than once")

    def _line(self, what: str, seconds: float) -> dict[str, Any]:
        """One line of the child. Raises: ForeignFailed when there is none."""
        line = b""
        waiting = select.poll()
        waiting.register(self._replies, select.POLLIN | select.POLLHUP)
        while not line.endswith(b"\n"):
            if not waiting.poll(seconds * 1000):
                self.close()
                raise Hung(f"{what}: it did not come back within {seconds:.0f} s")
            piece = os.read(self._replies, 1 << 16)
            if not piece:
                raise ForeignFailed(f"{what}: {self._death()}")
            line += piece
        if line.count(b"\n") > 1:
            raise self._confused(what)
        document: dict[str, Any] = json.loads(line)
        return document

    def _death(self) -> str:
        child = self._child
        code = 0 if child is None else child.wait()
        self.close()
        if code < 0:
            with suppress(ValueError):
                return f"it crashed with {signal.Signals(-code).name}"
        return f"it ended its process with code {code}"

    def _grown(self, size: int) -> Bytes:
        if self._map is None or len(self._map) < size:
            size = align_up(size, _PAGE)
            os.ftruncate(self._memory, size)
            self._map = mmap.mmap(self._memory, size)  # views of the old map keep it until they are gone
        return np.frombuffer(self._map, np.uint8)

    def close(self) -> None:
        """End the process; the next call starts another."""
        child, self._child = self._child, None
        if child is not None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(child.pid, signal.SIGKILL)  # and whatever it has started
            child.wait()
            os.close(self._requests)
            os.close(self._replies)


def _places(given: int, room: int) -> tuple[int, int, int]:
    """Where input and output begin, both aligned to a page, and where the last guard ends."""
    second = align_up(GUARD_BYTES + given + GUARD_BYTES, GUARD_BYTES)
    return GUARD_BYTES, second, second + room + GUARD_BYTES


def _memory() -> int:
    if hasattr(os, "memfd_create"):
        return os.memfd_create("ninfer-kernels")
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())
