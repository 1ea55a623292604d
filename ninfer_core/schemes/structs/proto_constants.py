"""The words of a constant, wherever its TensorProto holds them."""

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ninfer_core.schemes.bits import words_of
from ninfer_core.schemes.structs.leaves import LEAVES

# The fields for typed data: in which numbers they hold it, and the words of the element types that belong there.
_FIELDS: Final[dict[str, tuple[type[np.generic], dict[str, type[np.generic]]]]] = {
    "float_data": (np.float32, {"FLOAT": np.float32}),
    "double_data": (np.float64, {"DOUBLE": np.float64}),
    "int64_data": (np.int64, {"INT64": np.int64}),
    "uint64_data": (np.uint64, {"UINT64": np.uint64, "UINT32": np.uint32}),
    "int32_data": (
        np.int32,
        {
            "INT32": np.int32,
            "INT16": np.int16,
            "UINT16": np.uint16,
            "FLOAT16": np.uint16,
            "BFLOAT16": np.uint16,
            "INT8": np.int8,
            # One byte each, or a byte that packs several.
            **{leaf.name: np.uint8 for leaf in LEAVES if leaf.bits <= 8 and leaf.name != "INT8"},
        },
    ),
}


def data_of(message: Any, element: str) -> bytes | None:
    """The little-endian bytes of a TensorProto; None where they stand in two places or in one of another type."""
    used = [name for name in (*_FIELDS, "raw_data", "string_data") if _holds(message, name)]
    if len(used) > 1 or message.HasField("segment"):
        return None
    if not used or used == ["raw_data"]:
        raw: bytes = message.raw_data
        return raw
    if used == ["string_data"]:
        return None
    numbers, words = _FIELDS[used[0]]
    if element not in words:
        return None
    given = np.array(getattr(message, used[0]), numbers)
    if element.startswith("FLOAT6"):  # the one sub-byte kind whose entries hold one code each
        sound = not np.any(given & ~np.int32(0x3F))
        return words_of(given, 6).tobytes() if sound else None
    return _packed(given, words[element])


def _holds(message: Any, name: str) -> bool:
    return message.HasField(name) if name == "raw_data" else len(getattr(message, name)) > 0


def _packed(numbers: NDArray[Any], dtype: type[np.generic]) -> bytes | None:
    words = numbers.astype(np.dtype(dtype).newbyteorder("<"))
    exact = words.dtype.kind == "f" or np.array_equal(words, numbers)
    return words.tobytes() if exact else None
