"""The known answers that come with the package: what was asked of a kernel, and the only right answer.

Data in JSON beside this module, one file for each kind and format; ORIGIN.md says who made and who checked them.
Hexadecimal strings are bytes as they lie in memory: words little-endian, matrices row after row. `selfcheck.archive`
publishes the same files for implementations in any language.
"""

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ninfer_core.errors import IllegalShape, NinferError, UnknownName
from ninfer_core.formats import FORMATS, QUANTIZED, NumericFormat
from ninfer_core.kernels.values import SOURCE_DTYPES, EncodeFault
from ninfer_core.layouts import canonical_layout
from ninfer_core.layouts.base import Bytes, Shape
from ninfer_core.strict_json import Malformed, parse

VERSION: Final = 1  # one more with every change of a vector
KINDS: Final = ("encode", "reconstruct", "check")
_WORDS: Final[dict[int, np.dtype[Any]]] = {16: np.dtype("<u2"), 32: np.dtype("<u4"), 64: np.dtype("<u8")}
_MEMBERS: Final = {
    "encode": {
        "id",
        "dtype",
        "shape",
        "source",
        "codes",
        "scales",
        "payload",
        "rescued",
        "clamped",
        "refused",
        "why",
    },
    "reconstruct": {"id", "shape", "payload", "fp32", "bf16", "why"},
    "check": {"id", "shape", "payload", "legal", "fault", "why"},
}


class BrokenVectors(NinferError):
    """Vectors that are not what their schema or their digest says; nothing can be proved with them."""

    code = "broken_vectors"


@dataclass(frozen=True, slots=True)
class EncodeCase:
    """Source words [N, K] and the one payload that the encoder profile of the format makes of them.

    `refusal` instead of a payload where the encoder has to refuse; `rescued` and `clamped` are None where nobody
    counted. `codes` is uint8 [N, K] (two's complement, or E4M3FN words), `scales` uint16 [N, groups].
    """

    id: str
    format: NumericFormat
    dtype: str  # BF16, F16, F32 or F64
    shape: Shape
    source: NDArray[Any]
    codes: Bytes | None
    scales: NDArray[np.uint16] | None
    payload: Bytes | None
    rescued: int | None
    clamped: int | None
    refusal: EncodeFault | None
    why: tuple[tuple[int, str], ...]  # first row, and what it and the rows after it are there for

    def reason(self, row: int) -> str:
        """What a row is there for."""
        return next((text for first, text in reversed(self.why) if first <= row), "")


@dataclass(frozen=True, slots=True)
class ReconstructCase:
    """A legal payload and the words [N, K] that its weights stand for, as binary32 and as BF16."""

    id: str
    format: NumericFormat
    shape: Shape
    payload: Bytes
    fp32: NDArray[np.uint32]
    bf16: NDArray[np.uint16]
    why: str


@dataclass(frozen=True, slots=True)
class CheckCase:
    """A payload and whether its words are legal; `fault` is the code of the finding that an illegal one must give."""

    id: str
    format: NumericFormat
    shape: Shape
    payload: Bytes
    fault: str | None
    why: str

    @property
    def legal(self) -> bool:
        """Whether every check of layout and values passes."""
        return self.fault is None


Case = EncodeCase | ReconstructCase | CheckCase


def encode_cases(fmt: NumericFormat) -> tuple[EncodeCase, ...]:
    """The packaged encodings of a format; none for one that has no encoder profile. Raises: BrokenVectors."""
    return tuple(case for case in cases("encode", fmt) if isinstance(case, EncodeCase))


def reconstruct_cases(fmt: NumericFormat) -> tuple[ReconstructCase, ...]:
    """The packaged reconstructions of a format. Raises: BrokenVectors."""
    return tuple(case for case in cases("reconstruct", fmt) if isinstance(case, ReconstructCase))


def check_cases(fmt: NumericFormat) -> tuple[CheckCase, ...]:
    """The packaged payloads of a format that are legal or not. Raises: BrokenVectors."""
    return tuple(case for case in cases("check", fmt) if isinstance(case, CheckCase))


@cache
def cases(kind: str, fmt: NumericFormat) -> tuple[Case, ...]:
    """Every packaged case of one kind and format, held to the digest in the manifest. Raises: BrokenVectors."""
    name = file_name(kind, fmt)
    stated = _stated().get(name)
    if stated is None:
        return ()
    data = packaged(name)
    if hashlib.sha256(data).hexdigest() != stated:
        raise BrokenVectors(
            f"{name} of this installation is not the file that its manifest names; install again"
        )
    return _interpreted(json.loads(data), name)  # the digest holds, so there is nothing left to distrust


def file_name(kind: str, fmt: NumericFormat) -> str:
    """Where the cases of one kind and format lie."""
    return f"{kind}.{fmt.name}.json"


def packaged(name: str) -> bytes:
    """A file of this package's vectors. Raises: BrokenVectors when it is missing."""
    try:
        return (files(__package__) / name).read_bytes()
    except OSError as error:
        raise BrokenVectors(f"{name} is missing from this installation: {error}") from error


@cache
def _stated() -> dict[str, str]:
    return {
        entry["name"]: entry["sha256"]
        for entry in read_document(packaged("manifest.json"), "manifest.json")["files"]
    }


def read_document(data: bytes, name: str) -> Any:
    """A JSON document of the vectors, strictly parsed. Raises: BrokenVectors."""
    try:
        document, problems = parse(data, 8)
    except Malformed as error:
        raise BrokenVectors(f"{name}: {error.problem.found}") from error
    if problems:
        raise BrokenVectors(f"{name}: {problems[0].found} at {'/'.join(map(str, problems[0].path))}")
    return document


def read_cases(data: bytes, name: str) -> tuple[Case, ...]:
    """The cases of one file: members closed, sizes those of shape and layout. Raises: BrokenVectors."""
    return _interpreted(read_document(data, name), name)


def _interpreted(document: Any, name: str) -> tuple[Case, ...]:
    at = name
    try:
        kind = document["kind"]
        if set(document) != {"schema", "kind", "format", "layout", "profile", "cases"} or kind not in KINDS:
            raise BrokenVectors(f"{name} has other members than its schema")
        if document["schema"] != f"ninfer-gate/vectors/{kind}/{VERSION}":
            raise BrokenVectors(f"{name} is of schema {document['schema']}, which this version does not read")
        fmt = FORMATS[document["format"]]
        if fmt not in QUANTIZED or document["layout"] != canonical_layout(fmt).name:
            raise BrokenVectors(f"{name}: {fmt.name} does not lie in {document['layout']}")
        found: list[Case] = []
        for entry in document["cases"]:
            at = f"{name}, case {entry['id']}"
            if set(entry) != _MEMBERS[kind]:
                raise BrokenVectors(f"{at} has other members than its schema")
            found.append(_READERS[kind](fmt, entry))
    except (KeyError, TypeError, ValueError, IllegalShape, UnknownName) as error:
        raise BrokenVectors(f"{at}: {error}") from error
    if not found or len({case.id for case in found}) != len(found):
        raise BrokenVectors(f"{name} holds no cases, or two of one name")
    return tuple(found)


def _encode(fmt: NumericFormat, entry: dict[str, Any]) -> EncodeCase:
    shape = _shape(entry)
    refused = entry["refused"]
    return EncodeCase(
        entry["id"],
        fmt,
        entry["dtype"],
        shape,
        _array(entry["source"], _WORDS[SOURCE_DTYPES[entry["dtype"]].bits], shape),
        None if refused else _array(entry["codes"], np.dtype("u1"), shape),
        None if refused else _array(entry["scales"], _WORDS[16], (shape[0], -1)),
        None if refused else _payload(fmt, shape, entry),
        entry["rescued"],
        entry["clamped"],
        EncodeFault(**refused) if refused else None,
        tuple((int(first), str(text)) for first, text in entry["why"]),
    )


def _reconstruct(fmt: NumericFormat, entry: dict[str, Any]) -> ReconstructCase:
    shape = _shape(entry)
    words = _array(entry["fp32"], _WORDS[32], shape), _array(entry["bf16"], _WORDS[16], shape)
    return ReconstructCase(entry["id"], fmt, shape, _payload(fmt, shape, entry), *words, entry["why"])


def _check(fmt: NumericFormat, entry: dict[str, Any]) -> CheckCase:
    shape = _shape(entry)
    if entry["legal"] is not (entry["fault"] is None):
        raise ValueError("a payload is legal, or it has a fault")
    return CheckCase(entry["id"], fmt, shape, _payload(fmt, shape, entry), entry["fault"], entry["why"])


_READERS: Final[dict[str, Callable[[NumericFormat, dict[str, Any]], Case]]] = {
    "encode": _encode,
    "reconstruct": _reconstruct,
    "check": _check,
}


def _shape(entry: dict[str, Any]) -> Shape:
    return tuple(int(size) for size in entry["shape"])


def _array(text: str, dtype: np.dtype[Any], shape: Shape) -> NDArray[Any]:
    return np.frombuffer(bytes.fromhex(text), dtype).reshape(shape)


def _payload(fmt: NumericFormat, shape: Shape, entry: dict[str, Any]) -> Bytes:
    size = canonical_layout(fmt).encoded_size(fmt, shape)
    return _array(entry["payload"], np.dtype("u1"), (size,))
