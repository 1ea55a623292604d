"""The dtypes of the safetensors format, a closed registry; names are compared, never parsed."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ninfer_core.registry import Closed

if TYPE_CHECKING:
    import numpy as np


@dataclass(frozen=True, slots=True)
class Dtype:
    """Width of one element."""

    name: str
    bits: int

    @property
    def word(self) -> "np.dtype[np.unsignedinteger] | None":
        """The little-endian word that holds the stored bits; None where an element is not a whole number of bytes.

        It is unsigned for every dtype, signed integers and floats included: a reader hands out bits.
        """
        import numpy as np  # those who only list a header do without

        return np.dtype(f"<u{self.bits // 8}") if self.bits % 8 == 0 else None


DTYPES: Closed[Dtype] = Closed(
    "safetensors dtype",
    Dtype("BOOL", 8),
    Dtype("F4", 4),
    Dtype("F6_E2M3", 6),
    Dtype("F6_E3M2", 6),
    Dtype("U8", 8),
    Dtype("I8", 8),
    Dtype("F8_E5M2", 8),
    Dtype("F8_E4M3", 8),
    Dtype("F8_E8M0", 8),
    Dtype("F8_E4M3FNUZ", 8),
    Dtype("F8_E5M2FNUZ", 8),
    Dtype("I16", 16),
    Dtype("U16", 16),
    Dtype("F16", 16),
    Dtype("BF16", 16),
    Dtype("I32", 32),
    Dtype("U32", 32),
    Dtype("F32", 32),
    Dtype("C64", 64),  # two F32 words, the real part in the low half
    Dtype("F64", 64),
    Dtype("I64", 64),
    Dtype("U64", 64),
)
