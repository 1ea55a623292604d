"""The stored arrays of a scheme out of files: raw bytes, `.npy`, `.npz` and safetensors.

Every number of a file is compared with its bytes before memory is taken. Nothing is unpickled, arrays come back in the
machine's own byte order, and only the arrays that a form has are read.
"""

import math
from collections.abc import Collection, Mapping
from typing import Any, Final, Literal

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from ninfer_core.errors import CannotRead, CutShort
from ninfer_core.findings import Findings
from ninfer_core.io import ByteSource
from ninfer_core.schemes.form import Array, Form, Part
from ninfer_core.schemes.numpy_files import is_shape, native, read_npz
from ninfer_core.sources import read_header

FileKind = Literal["raw", "npy", "npz", "safetensors"]

_SUFFIXES: Final[Mapping[str, FileKind]] = {
    ".npy": "npy",
    ".npz": "npz",
    ".safetensors": "safetensors",
}
_SAFETENSORS: Final[Mapping[str, np.dtype[Any]]] = {
    "BOOL": np.dtype("bool"),
    "U8": np.dtype("uint8"),
    "I8": np.dtype("int8"),
    "U16": np.dtype("uint16"),
    "I16": np.dtype("int16"),
    "U32": np.dtype("uint32"),
    "I32": np.dtype("int32"),
    "U64": np.dtype("uint64"),
    "I64": np.dtype("int64"),
    "F16": np.dtype("float16"),
    "BF16": np.dtype(ml_dtypes.bfloat16),
    "F32": np.dtype("float32"),
    "F64": np.dtype("float64"),
    "C64": np.dtype("complex64"),
    "F8_E4M3": np.dtype(ml_dtypes.float8_e4m3fn),
    "F8_E5M2": np.dtype(ml_dtypes.float8_e5m2),
    "F8_E8M0": np.dtype(ml_dtypes.float8_e8m0fnu),
    "F8_E4M3FNUZ": np.dtype(ml_dtypes.float8_e4m3fnuz),
    "F8_E5M2FNUZ": np.dtype(ml_dtypes.float8_e5m2fnuz),
}


def file_kind(name: str) -> FileKind:
    """What a file holds, by the ending of its name; `raw` bytes where that says nothing."""
    return next((kind for suffix, kind in _SUFFIXES.items() if name.lower().endswith(suffix)), "raw")


def read_arrays(
    source: ByteSource,
    kind: FileKind,
    findings: Findings,
    *,
    prefix: str = "",
    wanted: Collection[str] | None = None,
) -> tuple[dict[str, Array], tuple[str, ...]]:
    """The arrays of an archive whose names begin with `prefix`, which is taken off, and the names not `wanted`.

    Findings say what is wrong with the file. Raises: CannotRead.
    """
    if kind == "safetensors":
        return _safetensors(source, findings, prefix, wanted)
    if kind == "npz":
        return read_npz(source, findings, prefix, wanted)
    raise ValueError(f"a file of kind {kind} holds one array without a name")


def read_raw(
    source: ByteSource, part: Part, shape: tuple[int, ...] | None, findings: Findings
) -> Array | None:
    """A part out of a file of its bytes alone, little-endian; without a shape it is one flat array.

    Raises: CannotRead.
    """
    dtype = array_type(part.dtypes[0])
    count = source.size // dtype.itemsize if shape is None else math.prod(shape)
    if count * dtype.itemsize != source.size or (shape is not None and not is_shape(shape, dtype)):
        message = f"{source.name} has {source.size:,} bytes; {part.name} {part.axes} takes another number."
        expected = f"{count * dtype.itemsize:,} bytes"
        findings.add(
            "scheme.part_shape",
            message,
            where={"part": part.name},
            expected=expected,
            found=f"{source.size:,} bytes",
        )
        return None
    words = _content(source, 0, source.size)
    return native(words.view(dtype.newbyteorder("<") if dtype.kind in "iuf" else dtype)).reshape(
        (count,) if shape is None else shape
    )


def in_form(form: Form, arrays: Mapping[str, Array]) -> dict[str, Array]:
    """The arrays, with bfloat16 where NumPy wrote two bytes of no type and the form's part may have it."""
    parts = {part.name: part for part in form.parts}
    return {
        name: array.view(ml_dtypes.bfloat16)
        if array.dtype == np.dtype("V2") and name in parts and "bfloat16" in parts[name].dtypes
        else array
        for name, array in arrays.items()
    }


def array_type(name: str) -> np.dtype[Any]:
    """A dtype by its NumPy or ml_dtypes name; small floats as their words."""
    if name.startswith("float8"):
        return np.dtype(np.uint8)
    return np.dtype(ml_dtypes.bfloat16) if name == "bfloat16" else np.dtype(name)


def _content(source: ByteSource, offset: int, length: int) -> NDArray[np.uint8]:
    """Bytes of a file, whose size `length` was compared with. Raises: CannotRead."""
    content = np.empty(length, np.uint8)
    try:
        source.read_into(content.data, offset)
    except CutShort as cut:
        raise CannotRead(f"{source.name} became shorter while it was read") from cut
    return content


def _safetensors(
    source: ByteSource, findings: Findings, prefix: str, wanted: Collection[str] | None
) -> tuple[dict[str, Array], tuple[str, ...]]:
    header = read_header(source, findings)
    if header is None:
        return {}, ()
    arrays: dict[str, Array] = {}
    others: list[str] = []
    for full, tensor in header.tensors.items():
        name = full.removeprefix(prefix)
        if not full.startswith(prefix):
            continue
        if wanted is not None and name not in wanted:
            others.append(name)
        elif (dtype := _SAFETENSORS.get(tensor.dtype)) is None or not is_shape(tensor.shape, dtype):
            found = f"{tensor.dtype} {list(tensor.shape)}"
            message = f"{name} is of a type or rank that no scheme is stored in."
            findings.add(
                "scheme.part_dtype", message, where={"part": name}, expected="whole bytes", found=found
            )
        else:
            arrays[name] = _content(source, tensor.offset, tensor.bytes).view(dtype).reshape(tensor.shape)
    return arrays, tuple(others)
