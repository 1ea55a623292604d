"""The CUDA simulator in a process of its own: its setting is read on import and must not reach any other test.

`Simulated` forwards the methods of a processor to that process and copies what was written into arrays back.
"""

import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

ROOT = Path(__file__).parents[3]


def arrays(value: Any) -> Iterator[np.ndarray[Any, Any]]:
    """Every array in an argument, in the same order on both sides."""
    if isinstance(value, np.ndarray):
        yield value
    elif isinstance(value, list | tuple):
        for one in value:
            yield from arrays(one)
    elif is_dataclass(value):
        for one in fields(value):
            yield from arrays(getattr(value, one.name))


class Simulated:
    """`Gpu` on the simulated device; one process serves all that are made from one another."""

    def __init__(self, most_bytes: int | None = None, parent: "Simulated | None" = None) -> None:
        self._most, self._lock = most_bytes, parent._lock if parent else threading.Lock()
        self._process = (
            parent._process
            if parent
            else subprocess.Popen(
                [sys.executable, "-W", "error", "-m", "tests.kernels.gpu.simulator"],
                cwd=ROOT,
                env={**os.environ, "NUMBA_ENABLE_CUDASIM": "1"},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
            )
        )

    def limited(self, most_bytes: int) -> "Simulated":
        """The same with so little memory."""
        return Simulated(most_bytes, self)

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        assert self._process.wait(30) == 0
        assert self._process.stdout is not None
        self._process.stdout.close()

    def call(self, method: str, *args: Any) -> Any:
        """What the method returns or raises."""
        with self._lock:
            assert self._process.stdin is not None
            assert self._process.stdout is not None
            pickle.dump((self._most, method, args), self._process.stdin)
            self._process.stdin.flush()
            raised, answer, written = pickle.load(self._process.stdout)  # noqa: S301  our own child
        if raised:
            raise answer
        for mine, theirs in zip(arrays(args), written, strict=True):
            if mine.flags.writeable:
                np.copyto(mine, theirs)
        return answer

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        if name == "device":
            return self.call("device")
        return lambda *args: self.call(name, *args)


def serve(requests: BinaryIO, answers: BinaryIO) -> None:
    """Answer until the other side closes."""
    from ninfer_core.kernels.devices import find_device
    from ninfer_core.kernels.gpu import Gpu

    processors: dict[int | None, Gpu] = {}
    while True:
        try:
            most, method, args = pickle.load(requests)  # noqa: S301  our own parent
        except EOFError:
            return
        processor = processors.setdefault(most, Gpu(find_device("cuda:0"), most))
        try:
            member = getattr(processor, method)
            answer = member(*args) if callable(member) else member
            reply = (False, answer, list(arrays(args)))
        except Exception as error:  # noqa: BLE001  the other side raises it
            reply = (True, error, [])
        pickle.dump(reply, answers)
        answers.flush()


if __name__ == "__main__":
    serve(sys.stdin.buffer, sys.stdout.buffer)
