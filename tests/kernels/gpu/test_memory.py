"""What a driver may do to the memory of a device: copies under way, exceptions of several libraries, limits of a launch."""

import gc
import threading
import weakref
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest

from ninfer_core.errors import DeviceFailed

if find_spec("numba_cuda") is None:
    pytest.skip("numba-cuda is not installed: there is none but for Linux", allow_module_level=True)

from ninfer_core.kernels import gpu_memory, gpu_scan
from ninfer_core.kernels.gpu_memory import MOST_BLOCKS, Memory


class Stream:
    """What is asked of it is done when it is waited for, from words that are there by then."""

    def __init__(self) -> None:
        self.waiting: list[tuple[Any, Any]] = []

    def synchronize(self) -> None:
        for words, target in self.waiting:
            assert words() is not None, "the words of a copy that is under way are gone"
            target[:] = words()
        self.waiting.clear()


class OnBoard(np.ndarray):
    """An array that another device would have."""

    def copy_to_device(self, words: np.ndarray, stream: Stream) -> None:
        stream.waiting.append((weakref.ref(words), self))

    def copy_to_host(self, out: np.ndarray, stream: Stream) -> None:
        stream.synchronize()
        out[:] = self


class Driver:
    """As much of a driver as `Memory` asks for. It frees nothing outside of a context of the device."""

    def __init__(self, most: int, failure: Exception) -> None:
        self.gpus = [self]
        self.most, self.failure, self.contexts, self.in_use = most, failure, 0, 0

    def __enter__(self) -> None:
        self.contexts += 1

    def __exit__(self, *raised: object) -> None:
        self.contexts -= 1

    def free(self, size: int) -> None:
        self.in_use -= size if self.contexts else 0

    def stream(self) -> Stream:
        return Stream()

    def device_array(self, size: int, dtype: type, stream: Stream) -> np.ndarray:
        if self.in_use + size > self.most:
            raise self.failure
        self.in_use += size
        words = OnBoard(size, dtype)  # views keep it
        weakref.finalize(words, self.free, size)
        return words


class ApiError(Exception):
    """As the driver's own library has it."""

    code = 2

    def __str__(self) -> str:
        return "[2] Call to cuMemAlloc results in CUDA_ERROR_OUT_OF_MEMORY"


SHORT = (ApiError(), RuntimeError("CUDA_ERROR_OUT_OF_MEMORY: the device is full"))


def driver() -> Driver:
    found = gpu_memory._api
    assert isinstance(found, Driver)
    return found


def memory_of(monkeypatch: pytest.MonkeyPatch, most: int = 1 << 20, failure: Exception = SHORT[0]) -> Memory:
    monkeypatch.setattr(gpu_memory, "_api", Driver(most, failure))
    return Memory(0)


def test_words_stay_until_they_have_been_copied(monkeypatch: pytest.MonkeyPatch):
    memory, out = memory_of(monkeypatch), np.empty(4, np.uint16)
    with memory.session():
        placed = memory.upload("words", np.arange(8, dtype=np.uint16)[::2])  # a copy that nobody else has
        memory.download(placed, out)
    assert out.tolist() == [0, 2, 4, 6]
    assert memory._own.held.under_way == []


@pytest.mark.parametrize("failure", SHORT, ids=["the driver's", "a library's"])
def test_short_memory_is_told_from_any_other_failure(monkeypatch: pytest.MonkeyPatch, failure: Exception):
    memory, done = memory_of(monkeypatch, 1 << 10, failure), []

    def run(begin: int, end: int) -> None:
        small = memory.empty("small", 1, np.uint8)
        large = memory.empty("words", end - begin, np.uint64)
        done.append((begin, end))
        assert small.size < large.size

    memory.in_batches(300, run)
    assert done == [(0, 75), (75, 150), (150, 225), (225, 300)]
    assert driver().in_use == 256 + 768
    other = memory_of(monkeypatch, 1 << 10, RuntimeError("CUDA_ERROR_ILLEGAL_ADDRESS"))
    with pytest.raises(DeviceFailed, match="ILLEGAL_ADDRESS"):
        other.in_batches(300, lambda begin, end: other.empty("words", end - begin, np.uint64))


def test_what_threads_held_is_given_back_in_a_context(monkeypatch: pytest.MonkeyPatch):
    def work(memory: Memory) -> None:
        with memory.session():
            memory.empty("words", 300, np.uint8)

    memory = memory_of(monkeypatch)
    threads = [threading.Thread(target=work, args=(memory,)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    work(memory)
    assert driver().in_use == 512
    del memory, threads, thread
    gc.collect()
    assert (driver().in_use, driver().contexts) == (0, 0)


def test_a_board_that_is_gone_is_a_device_that_failed(monkeypatch: pytest.MonkeyPatch):
    memory_of(monkeypatch)
    with pytest.raises(DeviceFailed, match="cuda:3"), Memory(3).session():
        pass


def test_mistakes_of_our_own_are_no_failure_of_the_device(monkeypatch: pytest.MonkeyPatch):
    memory = memory_of(monkeypatch)
    for mistake in (KeyError("F64"), MemoryError("this machine's"), ValueError("sizes")):
        with pytest.raises(type(mistake)), memory.session():
            raise mistake
    with pytest.raises(ValueError, match="contiguous"), memory.session():
        memory.download(memory.empty("words", 4, np.uint16), np.empty(8, np.uint16)[::2])


def test_rows_beyond_what_one_launch_takes_are_several(monkeypatch: pytest.MonkeyPatch):
    memory, launched = memory_of(monkeypatch), []

    def launch_blocks(kernel: Any, blocks: int, *arguments: Any) -> None:
        launched.append(blocks)

    monkeypatch.setattr(memory, "launch_blocks", launch_blocks)
    monkeypatch.setattr(memory, "upload", lambda name, words: np.zeros(1, np.uint32).view(OnBoard))
    rows = MOST_BLOCKS + 5
    codes = np.broadcast_to(np.zeros((1, 1), np.uint8), (rows, 1))
    assert gpu_scan.scan_row(memory, codes, np.broadcast_to(np.zeros(1, np.uint16), (rows,))) == 0
    assert launched == [MOST_BLOCKS, 5]
