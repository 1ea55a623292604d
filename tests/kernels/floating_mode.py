"""Flush-to-zero in the calling thread, set through the processor's control word."""

import ctypes
import mmap
import platform
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

SUPPORTED = platform.machine() in ("x86_64", "AMD64") and platform.system() != "Windows"
flushing = pytest.mark.skipif(
    not SUPPORTED,
    reason="the control word is set with x86-64 instructions, called in the way of every system but Windows",
)
FLUSH = 0x8040  # flush results (bit 15), take subnormal operands as zero (bit 6)


def _instruction(code: bytes) -> tuple[mmap.mmap, ctypes._CFuncPtr]:
    memory = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    memory.write(code + b"\xc3")
    address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    return memory, ctypes.CFUNCTYPE(None, ctypes.POINTER(ctypes.c_uint32))(address)


@contextmanager
def flush_to_zero() -> Iterator[None]:
    """Run the body with subnormals flushed, then put the thread's mode back."""
    kept = [_instruction(b"\x0f\xae\x1f"), _instruction(b"\x0f\xae\x17")]  # stmxcsr [rdi]; ldmxcsr [rdi]
    store, load = kept[0][1], kept[1][1]
    before = ctypes.c_uint32()
    store(ctypes.byref(before))
    load(ctypes.byref(ctypes.c_uint32(before.value | FLUSH)))
    try:
        yield
    finally:
        load(ctypes.byref(before))
