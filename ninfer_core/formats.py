"""The nine persistent numeric formats (tensor-formats sections 1 and 3) as frozen descriptions.

Descriptions hold facts only. Words are in `words.py`, arithmetic in `encoders/` and `kernels/`, bytes in `layouts/`.
"""

from dataclasses import dataclass
from fractions import Fraction

from ninfer_core.registry import Closed


@dataclass(frozen=True, slots=True)
class DirectFormat:
    """One fixed-width logical word for every coordinate; every word is valid (section 3.1)."""

    name: str
    word_bits: int
    meaning: str

    @property
    def logical_bits_per_weight(self) -> Fraction:
        """Bits of one logical word."""
        return Fraction(self.word_bits)


@dataclass(frozen=True, slots=True)
class GroupedFormat:
    """Signed codes sharing one binary16 scale per `group` weights along the last axis (sections 3.2, 4 to 6)."""

    name: str
    code_bits: int
    group: int
    codes: range  # legal codes; W8 leaves out -128
    meaning: str

    @property
    def qmax(self) -> int:
        """The largest code, which divides the maximum of a group in the canonical encoder (section 7)."""
        return self.codes[-1]

    @property
    def qmin(self) -> int:
        """The smallest legal code."""
        return self.codes[0]

    @property
    def logical_bits_per_weight(self) -> Fraction:
        """code_bits + 16 / group: full groups only, no padding (section 6.3)."""
        return self.code_bits + Fraction(16, self.group)


@dataclass(frozen=True, slots=True)
class BlockFormat:
    """E2M1 codes, one E4M3FN scale per `group` along K, one binary32 divisor per matrix (section 3.3)."""

    name: str
    group: int
    meaning: str

    @property
    def logical_bits_per_weight(self) -> Fraction:
        """4 + 8 / group; the 32 bits of the divisor come once per matrix."""
        return 4 + Fraction(8, self.group)


@dataclass(frozen=True, slots=True)
class RowFormat:
    """E4M3FN codes and one BF16 multiplier per row (section 3.4)."""

    name: str
    meaning: str

    @property
    def logical_bits_per_weight(self) -> Fraction:
        """8; the 16 bits of the multiplier come once per row."""
        return Fraction(8)


NumericFormat = DirectFormat | GroupedFormat | BlockFormat | RowFormat

BF16 = DirectFormat("BF16", 16, "bfloat16 words")
FP32 = DirectFormat("FP32", 32, "IEEE 754 binary32 words")
I32 = DirectFormat("I32", 32, "two's complement 32-bit integers")
Q4G64_F16S = GroupedFormat("Q4G64_F16S", 4, 64, range(-8, 8), "4-bit signed codes, binary16 scale per 64")
Q5G64_F16S = GroupedFormat("Q5G64_F16S", 5, 64, range(-16, 16), "5-bit signed codes, binary16 scale per 64")
Q6G64_F16S = GroupedFormat("Q6G64_F16S", 6, 64, range(-32, 32), "6-bit signed codes, binary16 scale per 64")
W8G32_F16S = GroupedFormat("W8G32_F16S", 8, 32, range(-127, 128), "8-bit signed codes, binary16 scale per 32")
NVFP4 = BlockFormat("NVFP4", 16, "E2M1 codes, E4M3FN scale per 16, binary32 divisor per matrix")
FP8_E4M3FN_ROW_BF16S = RowFormat("FP8_E4M3FN_ROW_BF16S", "E4M3FN codes, BF16 multiplier per row")

FORMATS: Closed[NumericFormat] = Closed(
    "numeric format",
    BF16,
    FP32,
    I32,
    Q4G64_F16S,
    Q5G64_F16S,
    Q6G64_F16S,
    W8G32_F16S,
    NVFP4,
    FP8_E4M3FN_ROW_BF16S,
)

GROUPED: tuple[GroupedFormat, ...] = tuple(f for f in FORMATS if isinstance(f, GroupedFormat))
DIRECT: tuple[DirectFormat, ...] = tuple(f for f in FORMATS if isinstance(f, DirectFormat))
QUANTIZED: tuple[GroupedFormat | BlockFormat | RowFormat, ...] = tuple(
    f for f in FORMATS if not isinstance(f, DirectFormat)
)
