"""Compilation of this package's kernels: a cache of their own, so that a changed kernel of a scheme recompiles no other."""

import hashlib
from functools import cache
from pathlib import Path

import numba

from ninfer_core.kernels.cache import Function, compile_into, inline, part, writable_directory
from ninfer_core.kernels.sources import digest_of


def sources_digest() -> str:
    """Sha256 over the sources of all that is compiled here, how it is compiled, and the compiler's version.

    A kernel takes its tables as arguments: a constant of another package would be compiled into it and not be noticed.
    """
    folder = Path(__file__).parent
    compiling = folder.parents[1] / "kernels" / "cache.py"
    sources = digest_of((*sorted(folder.glob("*.py")), compiling))
    return hashlib.sha256(f"numba {numba.__version__}\n{sources}".encode()).hexdigest()


@cache
def cache_directory() -> Path | None:
    """The directory for compiled decoders, made if need be, or None where none can be written."""
    return writable_directory(f"schemes-{sources_digest()[:32]}")


def kernel(function: Function) -> Function:
    """Compile on the first call, once per combination of array types; releases the interpreter lock."""
    return compile_into(cache_directory(), function, kept=True)


__all__ = ["cache_directory", "inline", "kernel", "part", "sources_digest"]
