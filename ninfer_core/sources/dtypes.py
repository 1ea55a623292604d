"""The dtypes of the safetensors format, a closed registry; names are compared, never parsed."""

from dataclasses import dataclass

import numpy as np

from ninfer_core.registry import Closed


@dataclass(frozen=True, slots=True)
class Dtype:
    """Width of one element, and the little-endian unsigned word that holds its stored bits.

    `word` is unsigned for every dtype, signed integers and floats included: a reader hands out bits. It is None
    where an element is not a whole number of bytes.
    """

    name: str
    bits: int
    word: np.dtype[np.unsignedinteger] | None


def _dtype(name: str, bits: int) -> Dtype:
    return Dtype(name, bits, np.dtype(f"<u{bits // 8}") if bits % 8 == 0 else None)


DTYPES: Closed[Dtype] = Closed(
    "safetensors dtype",
    _dtype("BOOL", 8),
    _dtype("F4", 4),
    _dtype("F6_E2M3", 6),
    _dtype("F6_E3M2", 6),
    _dtype("U8", 8),
    _dtype("I8", 8),
    _dtype("F8_E5M2", 8),
    _dtype("F8_E4M3", 8),
    _dtype("F8_E8M0", 8),
    _dtype("F8_E4M3FNUZ", 8),
    _dtype("F8_E5M2FNUZ", 8),
    _dtype("I16", 16),
    _dtype("U16", 16),
    _dtype("F16", 16),
    _dtype("BF16", 16),
    _dtype("I32", 32),
    _dtype("U32", 32),
    _dtype("F32", 32),
    _dtype("C64", 64),  # two F32 words, the real part in the low half
    _dtype("F64", 64),
    _dtype("I64", 64),
    _dtype("U64", 64),
)
