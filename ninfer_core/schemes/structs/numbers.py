"""Elements of leaves and constants as numbers, and back: exact, one number for each stored word."""

from collections.abc import Sequence
from functools import cache
from typing import Any, Final

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from ninfer_core.schemes.structs.leaves import LEAVES, LeafType

Number = bool | int | float

_SMALL: Final[dict[str, Any]] = {
    "FLOAT4E2M1": ml_dtypes.float4_e2m1fn,
    "FLOAT6E2M3": ml_dtypes.float6_e2m3fn,
    "FLOAT6E3M2": ml_dtypes.float6_e3m2fn,
    "FLOAT8E4M3FN": ml_dtypes.float8_e4m3fn,
    "FLOAT8E4M3FNUZ": ml_dtypes.float8_e4m3fnuz,
    "FLOAT8E5M2": ml_dtypes.float8_e5m2,
    "FLOAT8E5M2FNUZ": ml_dtypes.float8_e5m2fnuz,
    "FLOAT8E8M0": ml_dtypes.float8_e8m0fnu,
}
_WIDE: Final[dict[str, Any]] = {
    "BFLOAT16": ml_dtypes.bfloat16,
    "FLOAT16": np.float16,
    "FLOAT": np.float32,
    "DOUBLE": np.float64,
}


class NoSuchNumber(ValueError):
    """A number that an element type does not hold."""


def word_type(bits: int) -> np.dtype[Any]:
    """The smallest unsigned type, little-endian, that holds words of 1 to 64 bits."""
    return np.dtype(f"<u{next(size for size in (1, 2, 4, 8) if bits <= size * 8)}")


def element_type(element: LeafType) -> np.dtype[Any]:
    """The type of a leaf's elements in arrays, see `structs.view`."""
    if element.kind == "bool":
        return np.dtype(np.bool_)
    if element.kind == "float" and element.bits >= 8:
        floats: np.dtype[Any] = np.dtype((_SMALL | _WIDE)[element.name])
        return floats
    word = word_type(element.bits)
    return np.dtype(f"<i{word.itemsize}") if element.kind == "signed" else word


def as_elements(words: NDArray[Any], element: LeafType) -> NDArray[Any]:
    """Stored words as elements, see `structs.view`; a bool is true for any word but 0."""
    if element.kind == "bool":
        truth: NDArray[Any] = words != 0
        return truth
    type_ = element_type(element)
    spare = words.dtype.itemsize * 8 - element.bits
    if element.kind == "signed" and spare:
        return (words << spare).view(type_) >> spare
    return words.view(type_)


def numbers(words: NDArray[Any], element: LeafType) -> list[Number]:
    """The number of each stored word, flat; NaN and infinities included."""
    flat = words.reshape(-1)
    if element.name in _SMALL:
        table = _table(element.name)
        return [table[word] for word in flat.tolist()]
    elements = as_elements(flat, element)
    listed: list[Number] = (elements.astype(np.float64) if element.kind == "float" else elements).tolist()
    return listed


@cache
def _table(name: str) -> list[float]:
    codes = np.arange(1 << LEAVES[name].bits, dtype=np.uint8)
    values: list[float] = codes.view(_SMALL[name]).astype(np.float64).tolist()
    return values


@cache
def _codes(name: str) -> dict[str, int]:
    # By spelling, so that -0.0 is not 0.0 and NaN is found; the first of several codes.
    return {repr(value): code for code, value in reversed(list(enumerate(_table(name))))}


def packed(values: Sequence[Number], element: LeafType) -> bytes:
    """The words of numbers as a constant stores them. Raises: NoSuchNumber.

    A float of two bytes or more takes the word nearest to the binary64 number; smaller ones have to be exact.
    """
    if element.kind == "float":
        try:
            reals = [float(value) for value in values if not isinstance(value, bool)]
        except OverflowError:
            raise NoSuchNumber(f"a number beyond any {element.name}") from None
        if len(reals) != len(values):
            raise NoSuchNumber(f"true or false is no {element.name}")
        if element.name in _WIDE:
            exact = np.array(reals, np.float64)
            with np.errstate(all="ignore"):
                near = _to_odd(exact) if element.name == "BFLOAT16" else exact
                cast = near.astype(_WIDE[element.name])
                beyond = np.isinf(cast) & np.isfinite(exact)
            if beyond.any():
                raise NoSuchNumber(f"{exact[beyond][0]} is beyond any {element.name}")
            return cast.tobytes()
        words = [_code(value, element) for value in reals]
    else:
        words = [_integer_word(value, element) for value in values]
    if element.bits >= 8:
        return np.array(words, word_type(element.bits)).tobytes()
    each = 8  # words of any width below a byte that fill whole bytes
    groups = (words[at : at + each] for at in range(0, len(words), each))
    filled = (sum(word << (at * element.bits) for at, word in enumerate(group)) for group in groups)
    stream = b"".join(group.to_bytes(element.bits, "little") for group in filled)
    return stream[: (len(words) * element.bits + 7) // 8]


def _to_odd(exact: NDArray[np.float64]) -> NDArray[np.float32]:
    """Numbers as binary32, the odd neighbour where they are none: ml_dtypes casts from there, and rounds only once then."""
    near = exact.astype(np.float32)
    even = (near != exact) & np.isfinite(exact) & (near.view(np.uint32) & 1 == 0)
    towards = np.where(exact > near, np.float32(np.inf), np.float32(-np.inf))
    return np.where(even, np.nextafter(near, towards), near)


def _code(value: float, element: LeafType) -> int:
    code = _codes(element.name).get(repr(value))
    if code is None:
        raise NoSuchNumber(f"{value} is no {element.name}")
    return code


def _integer_word(value: Number, element: LeafType) -> int:
    if element.kind == "bool" and isinstance(value, bool):
        return int(value)
    if element.kind in ("signed", "unsigned") and type(value) is int:
        low = -(1 << (element.bits - 1)) if element.kind == "signed" else 0
        if low <= value < low + (1 << element.bits):
            return value % (1 << element.bits)
    raise NoSuchNumber(f"{value} is no {element.name}")
