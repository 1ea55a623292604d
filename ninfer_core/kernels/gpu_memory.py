"""One GPU as kernels use it: buffers that are reused, copies, launches, and one exception for whatever the driver says.

Every thread has buffers and a stream of its own, so that copies of one overlap with kernels of another. The simulator runs
one kernel at a time, for all threads together.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from traceback import clear_frames
from typing import Any, Final

import numpy as np
from numba import cuda
from numpy.typing import NDArray

from ninfer_core.errors import DeviceFailed
from ninfer_core.kernels.gpu_tiles import SIMULATED, THREADS

Words = NDArray[Any]
DeviceArray = Any

MOST_BLOCKS: Final = (1 << 31) - 1  # of threads, in one launch
_GRAIN: Final = 256  # bytes: buffers are whole words of every type
_OUT_OF_MEMORY: Final = (
    "CUDA_ERROR_OUT_OF_MEMORY"  # in the text of every library on the way, of which some keep no code
)
_OUR_OWN: Final = (ArithmeticError, KeyError, MemoryError, TypeError, ValueError, DeviceFailed)
_alone: Final = threading.Lock()
_api: Any = cuda


class OutOfMemory(DeviceFailed):
    """The buffers of a batch do not fit."""


def _board(index: int) -> AbstractContextManager[Any]:
    """The context of a device. Raises: DeviceFailed."""
    try:
        board: AbstractContextManager[Any] = _api.gpus[index]
    except IndexError as error:
        raise DeviceFailed(f"cuda:{index}: the driver knows of no such device") from error
    return board


class _Held:
    """What one thread has on a device: given back in the device's context, without which the driver frees nothing."""

    def __init__(self, index: int) -> None:
        self.index = index
        self.stream: Any = None
        self.buffers: dict[str, DeviceArray] = {}
        self.under_way: list[Words] = []  # copies from here may still be read: a stream is not waited for

    def __del__(self) -> None:
        with suppress(Exception):  # a driver that has failed, or that is gone at the end, keeps nothing
            if self.stream is not None:
                with _board(self.index):
                    self.buffers.clear()
                    self.stream = None


class _Own(threading.local):
    """What each thread has."""

    def __init__(self, index: int) -> None:
        self.held = _Held(index)


class Memory:
    """Buffers on one device, by name; what `upload` and `empty` return is valid until the name is asked for again."""

    def __init__(self, index: int, most_bytes: int | None = None) -> None:
        """`most_bytes` is what one thread may hold on the device, where others use it too; None for what there is."""
        self._index, self._most = index, most_bytes
        self._own = _Own(index)

    @contextmanager
    def session(self) -> Iterator[None]:
        """Whatever is done with the device is done in here. Raises: DeviceFailed, OutOfMemory."""
        turn: AbstractContextManager[Any] = _alone if SIMULATED else nullcontext()
        try:
            with turn, _board(self._index):
                if self._own.held.stream is None:
                    self._own.held.stream = _api.stream()
                yield
        except _OUR_OWN:
            raise
        except Exception as error:  # the driver's and the compiler's have no common ancestor
            if _OUT_OF_MEMORY in str(error):
                raise OutOfMemory(str(error)) from error
            raise DeviceFailed(f"cuda:{self._index}: {type(error).__name__}: {error}".strip()) from error

    def empty(self, name: str, size: int, dtype: Any) -> DeviceArray:
        """A flat array with undefined content; one element where none is asked for. Raises: OutOfMemory."""
        word = np.dtype(dtype)
        need = max(size, 1) * word.itemsize
        buffers = self._own.held.buffers
        held = buffers.get(name)
        if held is None or held.size < need:
            grown = -(-need // _GRAIN) * _GRAIN
            others = sum(int(one.size) for key, one in buffers.items() if key != name)
            if self._most is not None and others + grown > self._most:
                raise OutOfMemory(f"{others + grown:,} bytes of at most {self._most:,}")
            buffers.pop(name, None)
            held = buffers[name] = _api.device_array(grown, np.uint8, stream=self._own.held.stream)
        return held[:need].view(word)

    def upload(self, name: str, words: Words) -> DeviceArray:
        """The words of a contiguous array, flat. Raises: OutOfMemory."""
        flat = np.ascontiguousarray(words).reshape(-1)
        target = self.empty(name, flat.size, flat.dtype)
        if flat.size:
            self._own.held.under_way.append(flat)
            target.copy_to_device(flat, stream=self._own.held.stream)
        return target

    def download(self, source: DeviceArray, out: Words) -> None:
        """Copy into an array of the same size and type, and wait for it. Raises: ValueError, where it is not contiguous."""
        if not out.flags.c_contiguous:
            raise ValueError("what a device writes into must be contiguous")
        if out.size:
            source.copy_to_host(out.reshape(-1), stream=self._own.held.stream)
        self.wait()

    def copy(self, source: DeviceArray, target: DeviceArray) -> None:
        """Copy inside the device's memory: arrays of one size and type."""
        target.copy_to_device(source, stream=self._own.held.stream)

    def wait(self) -> None:
        """Until everything that was started is done."""
        self._own.held.stream.synchronize()
        self._own.held.under_way.clear()

    def launch(self, kernel: Any, threads: int, *arguments: Any) -> None:
        """Start at least `threads` threads in blocks of `THREADS`; they may have more to do than their number says."""
        self.launch_blocks(kernel, -(-threads // THREADS), *arguments)

    def launch_blocks(self, kernel: Any, blocks: int, *arguments: Any) -> None:
        """Start so many blocks."""
        if blocks:
            kernel[blocks, THREADS, self._own.held.stream](*arguments)

    def release(self) -> None:
        """Give back every buffer of this thread. Raises: DeviceFailed."""
        with self.session():
            self._own.held.buffers.clear()

    def in_batches(self, rows: int, run: Callable[[int, int], None]) -> None:
        """Call `run` with consecutive ranges [begin, end) of rows, all of them at first and fewer where memory is short.

        A run that raises OutOfMemory must have left nothing behind that its repetition would count twice.
        Raises: DeviceFailed when not even one row fits.
        """
        begin, most = 0, rows
        while begin < rows:
            end = min(begin + most, rows)
            try:
                with self.session():
                    run(begin, end)
            except OutOfMemory as error:
                for one in (error, error.__cause__):  # else they keep what the run has taken
                    clear_frames(one.__traceback__ if one else None)
                self.release()
                if end - begin == 1:
                    raise DeviceFailed(f"cuda:{self._index}: one row does not fit: {error}") from error
                most = (end - begin + 1) // 2
            else:
                begin = end
