"""The stored arrays of a scheme out of files: raw bytes, `.npy`, `.npz` and safetensors.

Every number of a file is compared with its bytes before memory is taken. Nothing is unpickled, arrays come back in the
machine's own byte order, and only the arrays that a form has are read.
"""

import io
import math
import struct
import zipfile
import zlib
from collections.abc import Collection, Mapping
from typing import IO, Any, Final, Literal

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from ninfer_core.errors import CannotRead, CutShort
from ninfer_core.findings import Findings
from ninfer_core.io import ByteSource
from ninfer_core.schemes.form import Array, Form, Part
from ninfer_core.schemes.run import MAX_RANK
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
_CHUNK: Final = 1 << 20
_NO_ARCHIVE: Final = (  # what `zipfile` raises for bytes that are none
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    EOFError,
    LookupError,
    NotImplementedError,
    OverflowError,
    RuntimeError,
    ValueError,
)
_EXPANDED_AT_LEAST: Final = 1 << 30  # what a small archive may hold, in bytes
_EXPANDED_FACTOR: Final = 16  # and a large one, in its own sizes; packed codes hardly shrink


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
        return _npz(source, findings, prefix, wanted)
    raise ValueError(f"a file of kind {kind} holds one array without a name")


def read_array(source: ByteSource, findings: Findings) -> Array | None:
    """The array of a `.npy` file; None where findings say what is wrong with it. Raises: CannotRead."""
    with io.BufferedReader(_Stream(source)) as stream:
        return _npy(stream, source.size, source.name, findings)


def read_raw(
    source: ByteSource, part: Part, shape: tuple[int, ...] | None, findings: Findings
) -> Array | None:
    """A part out of a file of its bytes alone, little-endian; without a shape it is one flat array.

    Raises: CannotRead.
    """
    dtype = _named(part.dtypes[0])
    count = source.size // dtype.itemsize if shape is None else math.prod(shape)
    if count * dtype.itemsize != source.size:
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
    return _native(words.view(dtype.newbyteorder("<") if dtype.kind in "iuf" else dtype)).reshape(
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


def _named(name: str) -> np.dtype[Any]:
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


def _native(array: Array) -> Array:
    return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))


def _malformed(findings: Findings, file: str, what: str, expected: str = "", found: str = "") -> None:
    findings.add(
        "scheme.file_malformed", f"{file}: {what}.", where={"file": file}, expected=expected, found=found
    )


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
        elif (dtype := _SAFETENSORS.get(tensor.dtype)) is None or len(tensor.shape) > MAX_RANK:
            found = f"{tensor.dtype} {list(tensor.shape)}"
            message = f"{name} is of a type or rank that no scheme is stored in."
            findings.add(
                "scheme.part_dtype", message, where={"part": name}, expected="whole bytes", found=found
            )
        else:
            arrays[name] = _content(source, tensor.offset, tensor.bytes).view(dtype).reshape(tensor.shape)
    return arrays, tuple(others)


def _npz(
    source: ByteSource, findings: Findings, prefix: str, wanted: Collection[str] | None
) -> tuple[dict[str, Array], tuple[str, ...]]:
    arrays: dict[str, Array] = {}
    others: list[str] = []
    room = max(_EXPANDED_AT_LEAST, _EXPANDED_FACTOR * source.size)
    try:
        with zipfile.ZipFile(io.BufferedReader(_Stream(source))) as archive:
            for member in archive.infolist():
                full = member.filename.removesuffix(".npy")
                name = full.removeprefix(prefix)
                if not full.startswith(prefix):
                    continue
                if name in arrays:
                    _malformed(findings, source.name, f"two arrays are called {full}")
                elif wanted is not None and name not in wanted:
                    others.append(name)
                elif (
                    member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
                    or member.flag_bits & 1
                ):
                    _malformed(
                        findings, source.name, f"{full} is compressed in a way that NumPy does not use"
                    )
                elif member.file_size > room:
                    found = f"{member.file_size:,} bytes"
                    _malformed(
                        findings,
                        source.name,
                        f"{full} claims more than such a file holds",
                        f"{room:,}",
                        found,
                    )
                else:
                    with archive.open(member) as stream:
                        array = _npy(stream, member.file_size, f"{source.name} ({full})", findings)
                    if array is not None:
                        arrays[name] = array
                        room -= array.nbytes
    except _NO_ARCHIVE as error:
        _malformed(findings, source.name, f"it is no sound .npz archive ({error})")
    return arrays, tuple(others)


def _npy(stream: IO[bytes], size: int, file: str, findings: Findings) -> Array | None:
    """The array in a stream of `size` bytes, read in pieces: `size` is only what somebody says."""
    begin = _Counted(stream)
    try:
        version = np.lib.format.read_magic(begin)
        if version not in ((1, 0), (2, 0)):
            _malformed(findings, file, f"version {version} of the NumPy format holds no plain numbers")
            return None
        head = (
            np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        )
        shape, fortran, dtype = head(begin)
    except CannotRead:
        raise
    except Exception as error:  # noqa: BLE001  the header is read by Python's own parser, whose errors are of many kinds
        _malformed(findings, file, f"it does not begin as a NumPy file ({error})")
        return None
    if dtype.hasobject or dtype.names or dtype.subdtype or dtype.kind not in "biufcV" or not dtype.itemsize:
        _malformed(findings, file, "it holds no plain numbers", "numbers", str(dtype))
        return None
    rest = size - begin.read_bytes
    counts = all(isinstance(length, int) and length >= 0 for length in shape)
    if not counts or len(shape) > MAX_RANK or math.prod(shape) * dtype.itemsize != rest:
        _malformed(
            findings, file, "its bytes do not fill its shape", f"{dtype} {list(shape)}", f"{rest:,} bytes"
        )
        return None
    content = bytearray()
    while piece := begin.read(_CHUNK):
        content += piece
    if len(content) != rest:
        _malformed(
            findings, file, "it ends before its array does", f"{rest:,} bytes", f"{len(content):,} bytes"
        )
        return None
    array: Array = _native(np.frombuffer(content, dtype)).reshape(shape, order="F" if fortran else "C")
    return np.ascontiguousarray(array).reshape(shape)


class _Counted:
    """A stream that knows how much of it was read."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self.read_bytes = 0

    def read(self, count: int = -1, /) -> bytes:
        content = self._stream.read(count)
        self.read_bytes += len(content)
        return content


class _Stream(io.RawIOBase):
    """A `ByteSource` as a file object."""

    def __init__(self, source: ByteSource) -> None:
        self._source = source
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._source.size}[whence]
        if base + offset < 0:
            raise ValueError("a place before the beginning of the file")
        self._at = base + offset
        return self._at

    def tell(self) -> int:
        return self._at

    def readinto(self, buffer: Any) -> int:
        view = memoryview(buffer).cast("B")
        count = max(0, min(len(view), self._source.size - self._at))
        if count:
            try:
                self._source.read_into(view[:count], self._at)
            except CutShort as cut:
                raise CannotRead(str(cut)) from cut
        self._at += count
        return count
