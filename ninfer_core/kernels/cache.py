"""Compilation and where its results are kept between processes.

The cache directory is named after a hash of every kernel source: numba does not notice that a helper in another
module changed, so a changed file must lead to a new directory. Without a writable place kernels compile afresh.
"""

import hashlib
import os
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numba

from ninfer_core.kernels.sources import digest_of, source_files

Function = Callable[..., Any]
config: Any = numba.config


def sources_digest() -> str:
    """Sha256 over the sources of all that is compiled for the processor, and the compiler's version."""
    sources = digest_of(source_files("cpu"))
    return hashlib.sha256(f"numba {numba.__version__}\n{sources}".encode()).hexdigest()


@cache
def cache_directory() -> Path | None:
    """The directory for compiled kernels, made if need be, or None where none can be written."""
    return writable_directory(f"kernels-{sources_digest()[:32]}")


def writable_directory(name: str) -> Path | None:
    """A directory of the user's cache, made if need be, or None where none can be written."""
    try:
        base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
        directory = Path(base) / "ninfer-gate" / name
        directory.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=directory):
            pass
    except (OSError, RuntimeError):  # RuntimeError: no home directory can be told
        return None
    return directory


def compiling_ahead() -> str | None:
    """What a person should know before the first kernel runs here; None when compiled kernels are at hand."""
    directory = cache_directory()
    if directory is None:
        return "No cache folder can be written, so kernels are compiled again on every run (some seconds)."
    if any(directory.rglob("*.nbi")):  # in a folder for each module
        return None
    return "Compiling kernels for this machine: some seconds, once."


def compile_into(
    directory: Path | None, function: Function, *, kept: bool, inlined: bool = False
) -> Function:
    """Compile on the first call; what is `kept` can be called from Python and lies in `directory` afterwards."""

    # No fast-math and no contraction; division by zero follows IEEE 754 instead of raising.
    def compiled(cached: bool) -> Function:
        # Nothing outside of compiled code calls a part: the way in from Python would be compiled for nothing.
        jit = numba.njit(
            nogil=True,
            error_model="numpy",
            forceinline=inlined,
            cache=cached,
            no_cfunc_wrapper=True,
            no_cpython_wrapper=not kept,
        )
        result: Function = jit(function)
        return result

    if directory is None or not kept:
        return compiled(False)
    before = config.CACHE_DIR
    config.CACHE_DIR = str(directory)  # read once, while decorating
    try:
        return compiled(True)
    except RuntimeError:  # numba found no place after all
        return compiled(False)
    finally:
        config.CACHE_DIR = before


def kernel(function: Function) -> Function:
    """Compile on the first call, once per combination of array types; releases the interpreter lock."""
    return compile_into(cache_directory(), function, kept=True)


def inline(function: Function) -> Function:
    """Compile as a part of the kernels that call it."""
    return compile_into(None, function, kept=False, inlined=True)


def part(function: Function) -> Function:
    """The same, but once where it is called more than once: for what is large and seldom hurried."""
    return compile_into(None, function, kept=False)
