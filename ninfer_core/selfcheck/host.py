"""The process in which foreign kernels run, so that their crash is a result and not the end of the command.

`python -m ninfer_core.selfcheck.host library|python TARGET REQUESTS REPLIES MEMORY`: descriptors of two pipes that carry
JSON lines and of the shared memory that carries the words. Ends when the requests do.
"""

import ctypes
import json
import mmap
import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict
from importlib import import_module
from operator import index
from time import (
    perf_counter,
)  # how long a foreign function took, which nobody outside of this process can see
from traceback import extract_tb
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from ninfer_core.selfcheck.drawn import WORDS
from ninfer_core.selfcheck.protocol import ABI, REFUSALS, Call, Refusal, Reply, Status

Bytes = NDArray[np.uint8]
Function = Callable[[Call, Bytes, Bytes], Reply]
_PR_SET_PDEATHSIG = 1


class _Unusable(Exception):
    """A target that cannot be loaded; the message goes to the caller."""


def main(arguments: list[str]) -> None:
    """Serve the calls of the parent until it closes the pipe."""
    kind, target, *descriptors = arguments
    requests, replies, memory = map(int, descriptors)
    _end_with_parent()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # whoever asked decides what an interruption means
    os.dup2(2, 1)  # standard output may be somebody's document; what kernels print goes to standard error
    with os.fdopen(requests, "rb") as asked, os.fdopen(replies, "wb", buffering=0) as answered:
        try:
            function = _library(target) if kind == "library" else _python(target)
        except _Unusable as error:
            answered.write(json.dumps({"unusable": str(error)}).encode() + b"\n")
            return
        answered.write(b'{"unusable": null}\n')
        mapped = _Mapped(memory)
        for line in asked:
            document = json.loads(line)
            call = _call(document["call"])
            reply = function(call, mapped.part(call, *call.given), mapped.part(call, *call.room))
            answer = {"number": document["number"], "reply": asdict(reply)}
            answered.write(json.dumps(answer).encode() + b"\n")


def _call(document: dict[str, Any]) -> Call:
    return Call(**{**document, "given": tuple(document["given"]), "room": tuple(document["room"])})


def _end_with_parent() -> None:
    """A kernel that never returns must not outlive whoever asked for it."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


class _Mapped:
    """The shared memory, mapped anew when it has grown."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._map: mmap.mmap | None = None

    def part(self, call: Call, offset: int, size: int) -> Bytes:
        """`size` bytes at `offset`."""
        if self._map is None or len(self._map) < call.mapped:
            if self._map is not None:
                with suppress(BufferError):  # a kernel that keeps what it was lent keeps the old map alive
                    self._map.close()
            self._map = mmap.mmap(self._descriptor, call.mapped)
        return np.frombuffer(self._map, np.uint8, size, offset)


def _library(path: str) -> Function:
    try:
        library = ctypes.CDLL(path)
    except OSError as error:
        raise _Unusable(f"it cannot be loaded: {error}") from error
    try:
        abi = int(library.ninfer_abi())
    except AttributeError:
        raise _Unusable("it has no function ninfer_abi") from None
    if abi != ABI:
        raise _Unusable(f"it speaks version {abi} of the interface, this is version {ABI}")
    functions = {name: getattr(library, f"ninfer_{name}", None) for name in ("encode", "decode")}
    if not any(functions.values()):
        raise _Unusable("it has neither ninfer_encode nor ninfer_decode")

    def run(call: Call, given: Bytes, room: Bytes) -> Reply:
        function = functions[call.function]
        if function is None:
            return Reply(Status.UNSUPPORTED)
        fmt, dtype = call.format.encode(), call.dtype.encode()
        rows, columns = ctypes.c_uint64(call.rows), ctypes.c_uint64(call.columns)
        source, out = ctypes.c_void_p(given.ctypes.data), ctypes.c_void_p(room.ctypes.data)
        refused = (ctypes.c_uint64 * 2)()
        if call.function == "encode":
            begin = perf_counter()
            status = function(fmt, dtype, source, rows, columns, out, ctypes.c_uint64(room.size), refused)
        else:
            begin = perf_counter()
            status = function(fmt, source, ctypes.c_uint64(given.size), rows, columns, dtype, out)
        return Reply(int(status), int(refused[0]), int(refused[1]), perf_counter() - begin)

    return run


def _python(target: str) -> Function:
    module, _, name = target.partition(":")
    sys.path.insert(0, os.getcwd())  # only now: a file there must not stand in for a module of ours
    try:
        kernels: Any = import_module(module)
        for part in filter(None, name.split(".")):
            kernels = getattr(kernels, part)
        if isinstance(kernels, type):
            kernels = kernels()
    except Exception as error:
        raise _Unusable(f"it cannot be imported: {type(error).__name__}: {error}") from error
    if not any(callable(getattr(kernels, one, None)) for one in ("encode", "decode")):
        raise _Unusable("it has neither a method encode nor a method decode")

    def run(call: Call, given: Bytes, room: Bytes) -> Reply:
        function = getattr(kernels, call.function, None)
        if function is None:
            return Reply(Status.UNSUPPORTED)
        given.flags.writeable = False
        shape = (call.rows, call.columns)
        try:
            begin = perf_counter()
            if call.function == "encode":
                source = given.view(WORDS[call.dtype]).reshape(shape)
                answer = function(call.format, call.dtype, source)
            else:
                answer = function(call.format, given, shape, call.dtype)
            seconds = perf_counter() - begin
        except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001  whatever they raise is their result
            return Reply(Status.FAILED, note=f"{type(error).__name__}: {error}{_place(error)}")
        try:
            return _answered(answer, room, seconds)
        except Exception as error:  # noqa: BLE001  an array of theirs may raise anything
            return Reply(Status.FAILED, note=f"{type(error).__name__}: {error}")

    return run


def _place(error: BaseException) -> str:
    """File and line of the last frame."""
    frames = extract_tb(error.__traceback__)
    return f" ({frames[-1].filename}, line {frames[-1].lineno})" if len(frames) > 1 else ""


def _refused(answer: tuple[Any, ...], seconds: float) -> Reply:
    """What a tuple says. Raises: TypeError when row or group is no whole number."""
    allowed = ", ".join(map(repr, REFUSALS))
    if len(answer) != 3:
        note = f"it returned a tuple of {len(answer)}; a refusal is (name, row, group), the name one of {allowed}"
        return Reply(Status.FAILED, note=note)
    refusal, row, group = answer
    if not isinstance(refusal, str) or refusal not in REFUSALS:
        return Reply(Status.FAILED, note=f"{refusal!r} is no refusal; it is one of {allowed}")
    return Reply(REFUSALS[cast(Refusal, refusal)], index(row), index(group), seconds)


def _answered(answer: Any, room: Bytes, seconds: float) -> Reply:
    if answer is NotImplemented:
        return Reply(Status.UNSUPPORTED)
    if isinstance(answer, tuple):
        return _refused(answer, seconds)
    if answer is None:
        return Reply(Status.FAILED, note="it returned None; what is not offered is `return NotImplemented`")
    data = np.frombuffer(answer, np.uint8) if isinstance(answer, bytes | bytearray | memoryview) else answer
    words = np.ascontiguousarray(data).reshape(-1)
    if words.dtype.kind not in "uif" or words.nbytes != room.size:
        note = f"it returned {words.nbytes:,} bytes of {words.dtype}, {room.size:,} bytes of words were asked"
        return Reply(Status.FAILED, note=note)
    room[:] = words.view(np.uint8)
    return Reply(Status.OK, seconds=seconds)


if __name__ == "__main__":
    main(sys.argv[1:])
