"""What goes into the kernels and what comes out: plain values, no compiler needed."""

from collections.abc import Iterable
from dataclasses import astuple, dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ninfer_core.formats import BlockFormat, GroupedFormat, RowFormat
from ninfer_core.layouts.row_split import BASE_BYTES, groups_per_row, high_bytes
from ninfer_core.words import BFLOAT16, BINARY16, BINARY32, BINARY64, FloatFormat

SOURCE_DTYPES: dict[str, FloatFormat] = {"BF16": BFLOAT16, "F16": BINARY16, "F32": BINARY32, "F64": BINARY64}
"""Names of source words and what they are."""


def read_only(words: NDArray[Any]) -> NDArray[Any]:
    """A flat, aligned, read-only view: one type for the compiler, whatever the caller's array may be."""
    flat = np.require(words, requirements=["C", "A"]).reshape(-1).view()
    flat.flags.writeable = False
    return flat


@dataclass(frozen=True, slots=True)
class GroupedPlanes:
    """The three planes of a block of rows, groups in row-major order, bytes as row-split-k128-v1 stores them."""

    base: NDArray[np.uint8]  # [rows * groups per row * 32]
    high: NDArray[np.uint8]  # [rows * groups per row * high bytes]
    scales: NDArray[np.uint16]  # [rows * groups per row]

    @classmethod
    def empty(cls, fmt: GroupedFormat, rows: int, columns: int) -> "GroupedPlanes":
        """Planes of the right size, content undefined."""
        groups = rows * groups_per_row(fmt, columns)
        return cls(
            np.empty(groups * BASE_BYTES, np.uint8),
            np.empty(groups * high_bytes(fmt), np.uint8),
            np.empty(groups, np.uint16),
        )

    def part(self, fmt: GroupedFormat, begin: int, end: int) -> "GroupedPlanes":
        """Groups [begin, end), as views."""
        high = high_bytes(fmt)
        return GroupedPlanes(
            self.base[begin * BASE_BYTES : end * BASE_BYTES],
            self.high[begin * high : end * high],
            self.scales[begin:end],
        )


@dataclass(frozen=True, slots=True)
class EncodeFault:
    """The first group, in row-major order, that an encoder refuses; rows and groups of the block.

    A row of the FP8 format is one group. There is no lane for a scale, nor for a word that lies outside of the block.
    """

    kind: Literal["source_not_finite", "scale_overflow", "scale_underflow"]
    row: int
    group: int
    lane: int | None  # of the group
    word: int  # the source word, or the binary32 word of the scale that did not fit


@dataclass(frozen=True, slots=True)
class EncodeCounts:
    """What the encoder bent: groups whose scale was rescued from zero, lanes changed by the clamp."""

    rescued: int
    clamped: int


@dataclass(frozen=True, slots=True)
class CodeStatistics:
    """Counts over the logical part of quantized blocks; kernels add to it in place.

    A group is what owns one scale: a group of a grouped format, 16 codes of NVFP4, a row of the FP8 format.
    """

    first_code: int  # code (grouped formats) or code word (the others) that histogram[0] counts
    histogram: NDArray[np.int64]
    tallies: NDArray[np.int64] = field(default_factory=lambda: np.array([0, 0, 0, NO_SCALE, 0], np.int64))

    @classmethod
    def empty(cls, fmt: GroupedFormat | BlockFormat | RowFormat) -> "CodeStatistics":
        """Nothing counted yet. The histogram of W8 has a place for the illegal -128 as well."""
        if isinstance(fmt, GroupedFormat):
            return cls(-(1 << (fmt.code_bits - 1)), np.zeros(1 << fmt.code_bits, np.int64))
        return cls(0, np.zeros(16 if isinstance(fmt, BlockFormat) else 256, np.int64))

    @property
    def groups(self) -> int:
        """Logical groups."""
        return int(self.tallies[0])

    @property
    def zero_scales(self) -> int:
        """Groups whose scale word is zero."""
        return int(self.tallies[1])

    @property
    def zero_groups(self) -> int:
        """Groups in which every logical code stands for zero."""
        return int(self.tallies[2])

    @property
    def smallest_scale(self) -> int | None:
        """The smallest nonzero scale word, or None when every scale is zero."""
        return None if self.tallies[3] == NO_SCALE else int(self.tallies[3])

    @property
    def largest_scale(self) -> int | None:
        """The largest nonzero scale word, or None when every scale is zero."""
        return int(self.tallies[4]) or None

    def merge(self, other: "CodeStatistics") -> "CodeStatistics":
        """The statistics of both; any order of merging gives the same."""
        tallies = self.tallies + other.tallies
        tallies[3] = min(self.tallies[3], other.tallies[3])
        tallies[4] = max(self.tallies[4], other.tallies[4])
        return CodeStatistics(self.first_code, self.histogram + other.histogram, tallies)


NO_SCALE = 1 << 32  # above every scale word


@dataclass(frozen=True, slots=True)
class WordStatistics:
    """Counts over direct words; the extremes are finite words (a zero extreme is given as +0), or None."""

    count: int = 0
    positive_zeros: int = 0
    negative_zeros: int = 0
    nans: int = 0
    infinities: int = 0
    smallest: int | None = None
    largest: int | None = None
    sign_bit: int = 1 << 31
    twos_complement: bool = False

    @classmethod
    def of_counts(cls, dtype: str, count: int, counts: NDArray[np.int64]) -> "WordStatistics":
        """What kernels counted: [zeros, negative zeros, NaN, infinities, smallest key, largest key].

        Keys are in the order of the values: a negative float's is its magnitude, inverted; an integer's is its value.
        """
        zeros, negative, nans, infinities, smallest, largest = map(int, counts)
        integers = dtype == "I32"
        sign = 1 << 31 if integers else SOURCE_DTYPES["F32" if dtype == "FP32" else dtype].sign_bit

        def word(key: int) -> int:
            if key >= 0:
                return key
            if integers:
                return key + 2 * sign
            return sign - 1 - key if key < -1 else 0

        low, high = (word(smallest), word(largest)) if smallest <= largest else (None, None)
        return cls(count, zeros, negative, nans, infinities, low, high, sign, integers)

    def _order(self, word: int) -> int:
        if not word & self.sign_bit:
            return word
        return word - 2 * self.sign_bit if self.twos_complement else self.sign_bit - word

    def merge(self, other: "WordStatistics") -> "WordStatistics":
        """The statistics of both, over words of one type."""
        smallest = [word for word in (self.smallest, other.smallest) if word is not None]
        largest = [word for word in (self.largest, other.largest) if word is not None]
        return WordStatistics(
            self.count + other.count,
            self.positive_zeros + other.positive_zeros,
            self.negative_zeros + other.negative_zeros,
            self.nans + other.nans,
            self.infinities + other.infinities,
            min(smallest, key=self._order, default=None),
            max(largest, key=self._order, default=None),
            self.sign_bit,
            self.twos_complement,
        )


@dataclass(frozen=True, slots=True)
class ErrorSums:
    """Binary64 sums over pairs (x, y): x the source, y the stored value.

    Each is formed in one fixed order, so it depends on the block alone and not on how many threads ran. Where one is
    not finite, the others promise nothing.
    """

    count: int
    squared_error: float  # sum of (x - y)**2
    source_squares: float  # sum of x**2
    value_squares: float  # sum of y**2
    largest_error: float  # max |x - y|

    @property
    def products(self) -> float:
        """The sum of x * y, which the other three are enough for."""
        return (self.source_squares + self.value_squares - self.squared_error) / 2

    @staticmethod
    def merge(parts: Iterable["ErrorSums"]) -> "ErrorSums":
        """The sums of all parts, added in the order given."""
        count, error, source, value, largest = 0, 0.0, 0.0, 0.0, 0.0
        for part in parts:
            count += part.count
            error += part.squared_error
            source += part.source_squares
            value += part.value_squares
            largest = max(largest, part.largest_error)
        return ErrorSums(count, error, source, value, largest)

    def as_json(self) -> list[Any]:
        """Strict JSON; floats as hexadecimal text, which comes back to the last bit."""
        return [self.count, *(value.hex() for value in map(float, astuple(self)[1:]))]

    @classmethod
    def from_json(cls, members: list[Any]) -> "ErrorSums":
        """What `as_json` wrote, now or when the sum of products was still kept beside the others."""
        count, *sums = members
        error, source, value, *_, largest = map(float.fromhex, sums)
        return cls(count, error, source, value, largest)
