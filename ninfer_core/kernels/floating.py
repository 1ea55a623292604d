"""The floating-point mode of the calling thread, for kernels whose sums would not survive a foreign one.

Another library may have set a thread to flush subnormal numbers, or to another rounding. Integers do not care; sums in
binary64 do. The word that holds the mode is exchanged around such a kernel, never inside of one: a compiler may move
arithmetic past it.
"""

import platform
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from ninfer_core.kernels.cache import kernel

X86: Final = platform.machine() in ("x86_64", "AMD64")
ARM: Final = platform.machine() in ("aarch64", "arm64")
# Nearest even, subnormals kept; on x86-64 every exception is masked as well.
STANDARD: Final = 0x1F80 if X86 else 0


@intrinsic  # type: ignore[untyped-decorator]
def _exchange(typing: Any, word: Any) -> Any:
    """Set the mode to `word` and return what it was; 0, and nothing set, where no way is known."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        (new,) = arguments
        i32, i64, pointer = ir.IntType(32), ir.IntType(64), ir.IntType(8).as_pointer()
        if X86:
            function = ir.FunctionType(ir.VoidType(), [pointer])
            place = builder.alloca(i32)
            there = builder.bitcast(place, pointer)
            builder.call(builder.module.declare_intrinsic("llvm.x86.sse.stmxcsr", (), function), [there])
            before = builder.zext(builder.load(place), i64)
            builder.store(builder.trunc(new, i32), place)
            builder.call(builder.module.declare_intrinsic("llvm.x86.sse.ldmxcsr", (), function), [there])
            return before
        if ARM:
            read, write = ir.FunctionType(i64, []), ir.FunctionType(ir.VoidType(), [i64])
            before = builder.call(builder.module.declare_intrinsic("llvm.aarch64.get.fpcr", (), read), [])
            builder.call(builder.module.declare_intrinsic("llvm.aarch64.set.fpcr", (), write), [new])
            return before
        return ir.Constant(i64, 0)

    return types.int64(types.int64), generate


@kernel
def exchange_mode(word: int) -> int:
    """Set the mode of this thread and return what it was."""
    before: int = _exchange(word)
    return before


@contextmanager
def standard_mode() -> Iterator[None]:
    """Run the body, on this thread, with nearest even and subnormals kept; then the mode is what it was."""
    before = exchange_mode(STANDARD)
    try:
        yield
    finally:
        exchange_mode(before)
