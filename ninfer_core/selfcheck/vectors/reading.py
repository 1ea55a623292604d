"""Cases of the vectors as values, and the reading of their files, which may come from anywhere."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ninfer_core.errors import IllegalShape, NinferError, UnknownName
from ninfer_core.formats import FORMATS, QUANTIZED, NumericFormat
from ninfer_core.kernels.values import SOURCE_DTYPES, EncodeFault
from ninfer_core.layouts import canonical_layout
from ninfer_core.layouts.arrays import Bytes
from ninfer_core.layouts.base import Shape
from ninfer_core.selfcheck.protocol import REFUSALS
from ninfer_core.strict_json import Malformed, parse

KINDS: Final = ("encode", "reconstruct", "check")
_WORDS: Final[dict[int, np.dtype[Any]]] = {16: np.dtype("<u2"), 32: np.dtype("<u4"), 64: np.dtype("<u8")}
MEMBERS: Final = {
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


def text(found: Any) -> str:
    """What must be a text. Raises: TypeError."""
    if not isinstance(found, str):
        raise TypeError(f"{found!r} stands where a text must")
    return found


def count(found: Any) -> int:
    """What must be a whole number that is not negative. Raises: TypeError."""
    if type(found) is not int or found < 0:
        raise TypeError(f"{found!r} stands where a whole number must")
    return found


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
    return interpreted(read_document(data, name), name)


def interpreted(document: Any, name: str) -> tuple[Case, ...]:
    """The cases of a parsed document. Raises: BrokenVectors."""
    at = name
    try:
        kind = document["kind"]
        if set(document) != {"schema", "kind", "format", "layout", "profile", "cases"} or kind not in KINDS:
            raise BrokenVectors(f"{name} has other members than its schema")
        if document["schema"] != f"ninfer-gate/vectors/{kind}/1":
            raise BrokenVectors(f"{name} is of schema {document['schema']}, which this version does not read")
        fmt = FORMATS[document["format"]]
        if fmt not in QUANTIZED or document["layout"] != canonical_layout(fmt).name:
            raise BrokenVectors(f"{name}: {fmt.name} does not lie in {document['layout']}")
        found: list[Case] = []
        for entry in document["cases"]:
            at = f"{name}, case {entry['id']}"
            if set(entry) != MEMBERS[kind]:
                raise BrokenVectors(f"{at} has other members than its schema")
            found.append(_READERS[kind](fmt, entry))
    except (KeyError, TypeError, ValueError, IllegalShape, UnknownName) as error:
        raise BrokenVectors(f"{at}: {error}") from error
    if not found or len({case.id for case in found}) != len(found):
        raise BrokenVectors(f"{name} holds no cases, or two of one name")
    return tuple(found)


def _encode(fmt: NumericFormat, entry: dict[str, Any]) -> EncodeCase:
    if not isinstance(entry["why"], list):
        raise TypeError(f"{entry['why']!r} stands where a list must")
    shape = _shape(entry)
    refused = entry["refused"]
    return EncodeCase(
        text(entry["id"]),
        fmt,
        text(entry["dtype"]),
        shape,
        _array(entry["source"], _WORDS[SOURCE_DTYPES[entry["dtype"]].bits], shape),
        None if refused is not None else _array(entry["codes"], np.dtype("u1"), shape),
        None if refused is not None else _array(entry["scales"], _WORDS[16], (shape[0], -1)),
        None if refused is not None else _payload(fmt, shape, entry),
        None if entry["rescued"] is None else count(entry["rescued"]),
        None if entry["clamped"] is None else count(entry["clamped"]),
        None if refused is None else _refused(refused),
        tuple((count(first), text(reason)) for first, reason in entry["why"]),
    )


def _refused(found: dict[str, Any]) -> EncodeFault:
    lane = None if found["lane"] is None else count(found["lane"])
    row, group, word = (count(found[name]) for name in ("row", "group", "word"))
    fault = EncodeFault(found["kind"], row, group, lane, word)
    if set(found) != {"kind", "row", "group", "lane", "word"} or fault.kind not in REFUSALS:
        raise ValueError("a refusal has other members than its schema")
    return fault


def _reconstruct(fmt: NumericFormat, entry: dict[str, Any]) -> ReconstructCase:
    shape = _shape(entry)
    words = _array(entry["fp32"], _WORDS[32], shape), _array(entry["bf16"], _WORDS[16], shape)
    payload = _payload(fmt, shape, entry)
    return ReconstructCase(text(entry["id"]), fmt, shape, payload, *words, text(entry["why"]))


def _check(fmt: NumericFormat, entry: dict[str, Any]) -> CheckCase:
    shape = _shape(entry)
    if entry["legal"] is not (entry["fault"] is None):
        raise ValueError("a payload is legal, or it has a fault")
    fault = None if entry["fault"] is None else text(entry["fault"])
    return CheckCase(text(entry["id"]), fmt, shape, _payload(fmt, shape, entry), fault, text(entry["why"]))


_READERS: Final[dict[str, Callable[[NumericFormat, dict[str, Any]], Case]]] = {
    "encode": _encode,
    "reconstruct": _reconstruct,
    "check": _check,
}


def _shape(entry: dict[str, Any]) -> Shape:
    rows, columns = (count(size) for size in entry["shape"])
    return rows, columns


def _array(digits: str, dtype: np.dtype[Any], shape: Shape) -> NDArray[Any]:
    return np.frombuffer(bytes.fromhex(text(digits)), dtype).reshape(shape)


def _payload(fmt: NumericFormat, shape: Shape, entry: dict[str, Any]) -> Bytes:
    size = canonical_layout(fmt).encoded_size(fmt, shape)
    return _array(entry["payload"], np.dtype("u1"), (size,))
