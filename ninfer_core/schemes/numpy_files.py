"""Arrays out of NumPy's own files, `.npy` and `.npz`, with nothing unpickled.

Every number of a file is compared with its bytes before memory is taken.
"""

import io
import math
import struct
import zipfile
import zlib
from collections.abc import Collection
from typing import IO, Any, Final

import numpy as np

from ninfer_core.errors import CannotRead, CutShort
from ninfer_core.findings import Findings
from ninfer_core.io import ByteSource
from ninfer_core.schemes.form import Array
from ninfer_core.schemes.run import MAX_RANK

_CHUNK: Final = 1 << 20
_ADDRESSED: Final = 2**63 - 1  # bytes of an array, its zeros left out
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


def read_npy(source: ByteSource, findings: Findings) -> Array | None:
    """The array of a `.npy` file; None where findings say what is wrong with it. Raises: CannotRead."""
    with io.BufferedReader(_Stream(source)) as stream:
        return _npy(stream, source.size, source.name, findings)


def read_npz(
    source: ByteSource, findings: Findings, prefix: str, wanted: Collection[str] | None
) -> tuple[dict[str, Array], tuple[str, ...]]:
    """The arrays of a `.npz` file whose names begin with `prefix`, which is taken off, and the names not `wanted`.

    Findings say what is wrong with the file. Raises: CannotRead.
    """
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
                    malformed(findings, source.name, f"two arrays are called {full}")
                elif wanted is not None and name not in wanted:
                    others.append(name)
                elif (
                    member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
                    or member.flag_bits & 1
                ):
                    malformed(findings, source.name, f"{full} is compressed in a way that NumPy does not use")
                elif member.file_size > room:
                    found = f"{member.file_size:,} bytes"
                    malformed(
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
        malformed(findings, source.name, f"it is no sound .npz archive ({error})")
    return arrays, tuple(others)


def _npy(stream: IO[bytes], size: int, file: str, findings: Findings) -> Array | None:
    """The array in a stream of `size` bytes, read in pieces: `size` is only what somebody says."""
    begin = _Counted(stream)
    try:
        version = np.lib.format.read_magic(begin)
        if version not in ((1, 0), (2, 0)):
            malformed(findings, file, f"version {version} of the NumPy format holds no plain numbers")
            return None
        head = (
            np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        )
        shape, fortran, dtype = head(begin)
    except CannotRead:
        raise
    except Exception as error:  # noqa: BLE001  the header is read by Python's own parser, whose errors are of many kinds
        malformed(findings, file, f"it does not begin as a NumPy file ({error})")
        return None
    if dtype.hasobject or dtype.names or dtype.subdtype or dtype.kind not in "biufcV" or not dtype.itemsize:
        malformed(findings, file, "it holds no plain numbers", "numbers", str(dtype))
        return None
    rest = size - begin.read_bytes
    if not is_shape(shape, dtype) or math.prod(shape) * dtype.itemsize != rest:
        malformed(
            findings, file, "its bytes do not fill its shape", f"{dtype} {list(shape)}", f"{rest:,} bytes"
        )
        return None
    content = bytearray()
    while piece := begin.read(_CHUNK):
        content += piece
    if len(content) != rest:
        malformed(
            findings, file, "it ends before its array does", f"{rest:,} bytes", f"{len(content):,} bytes"
        )
        return None
    array: Array = native(np.frombuffer(content, dtype)).reshape(shape, order="F" if fortran else "C")
    return np.ascontiguousarray(array).reshape(shape)


def is_shape(shape: tuple[Any, ...], dtype: np.dtype[Any]) -> bool:
    """Whether there is an array of a shape: beside a length of zero the others are bounded all the same."""
    if len(shape) > MAX_RANK or not all(type(length) is int and length >= 0 for length in shape):
        return False
    values: int = math.prod(length or 1 for length in shape)
    return values * dtype.itemsize <= _ADDRESSED


def native(array: Array) -> Array:
    """The array in the machine's own byte order."""
    return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))


def malformed(findings: Findings, file: str, what: str, expected: str = "", found: str = "") -> None:
    """The finding about a file that is not what its name says."""
    findings.add(
        "scheme.file_malformed", f"{file}: {what}.", where={"file": file}, expected=expected, found=found
    )


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
