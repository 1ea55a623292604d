"""Parts of packages of others that are taken without what their packages import: tests and benchmarks compare with them.

Each raises ImportError where its package is not installed.
"""

import ctypes
import importlib.util
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

_TO_FLOAT: Final = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)


def folder_of(package: str) -> Path:
    """Where a package is installed; it is not imported. Raises: ImportError."""
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise ImportError(f"{package} is not installed")
    return Path(spec.submodule_search_locations[0])


@cache
def module_of(package: str, file: str) -> ModuleType:
    """One file of a package as a module of its own. Raises: ImportError."""
    path = folder_of(package) / file
    spec = importlib.util.spec_from_file_location(f"{package}_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is no module")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class _Traits(ctypes.Structure):
    """What ggml says about a type: `struct ggml_type_traits` of its header."""

    _fields_ = (
        ("type_name", ctypes.c_char_p),
        ("block_values", ctypes.c_int64),
        ("block_values_interleaved", ctypes.c_int64),
        ("block_bytes", ctypes.c_size_t),
        ("is_quantized", ctypes.c_bool),
        ("to_float", _TO_FLOAT),
        ("from_float", ctypes.c_void_p),
    )


@dataclass(frozen=True)
class GgmlType:
    """One type of ggml's C library, by its number."""

    library: ctypes.CDLL
    number: int
    name: str
    block_values: int
    block_bytes: int
    to_float: Any

    def decode_into(self, payload: NDArray[np.uint8], out: NDArray[np.float32]) -> None:
        """`out` filled from the first bytes of `payload`, on this thread; others may run meanwhile."""
        blocks = out.size // self.block_values
        if blocks * self.block_values != out.size or payload.size < blocks * self.block_bytes:
            raise ValueError("whole blocks, and a payload that holds them")
        self.to_float(payload.ctypes.data, out.ctypes.data, out.size)

    def decode(self, payload: NDArray[np.uint8]) -> NDArray[np.float32]:
        """The values of a payload of whole blocks."""
        out = np.empty(payload.size // self.block_bytes * self.block_values, np.float32)
        self.decode_into(payload, out)
        return out

    def encode(self, values: NDArray[np.float32]) -> NDArray[np.uint8]:
        """The payload of values [rows, whole blocks], each weight as important as the next."""
        rows, width = values.shape
        if width % self.block_values or values.dtype != np.float32:
            raise ValueError("binary32 rows of whole blocks")
        source = np.ascontiguousarray(values)
        payload = np.zeros(values.size // self.block_values * self.block_bytes, np.uint8)
        importance = np.ones(width, np.float32)
        places = ctypes.c_void_p(source.ctypes.data), ctypes.c_void_p(payload.ctypes.data)
        counts = ctypes.c_int64(0), ctypes.c_int64(rows), ctypes.c_int64(width)
        needed = self.library.ggml_quantize_requires_imatrix(self.number)
        weights = ctypes.c_void_p(importance.ctypes.data if needed else None)
        self.library.ggml_quantize_chunk(self.number, *places, *counts, weights)
        return payload


@cache
def ggml_library() -> ctypes.CDLL:
    """ggml's C library, as the package libggml-python carries it. Raises: ImportError."""
    paths = sorted(folder_of("libggml").glob("lib*/libggml-base.*"))
    if not paths:
        raise ImportError("libggml-python carries no library for this system")
    try:
        library = ctypes.CDLL(str(paths[0]))
    except OSError as error:
        raise ImportError(str(error)) from error
    library.ggml_get_type_traits.restype = ctypes.POINTER(_Traits)
    library.ggml_quantize_requires_imatrix.restype = ctypes.c_bool
    library.ggml_quantize_chunk.restype = ctypes.c_size_t
    return library


def ggml_type(number: int) -> GgmlType:
    """A type that the library decodes. Raises: ImportError, LookupError for a type without a decoder."""
    library = ggml_library()
    traits = library.ggml_get_type_traits(number).contents
    if not traits.to_float:
        raise LookupError(f"ggml decodes no type {number}")
    name = traits.type_name.decode()
    return GgmlType(library, number, name, traits.block_values, traits.block_bytes, traits.to_float)
