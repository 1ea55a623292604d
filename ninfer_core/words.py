"""Stored words of the scalar types: exact values, correct rounding, exact widening, validity.

The first half is plain Python integers and `Fraction`; the second half is numpy arrays of words. Both use
integer operations only, so a flush-to-zero mode of the calling thread cannot alter a result.
"""

from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from typing import Final

import numpy as np
from numpy.typing import NDArray

Words8 = NDArray[np.uint8]
Words16 = NDArray[np.uint16]
Words32 = NDArray[np.uint32]
Words64 = NDArray[np.uint64]


class Nans(Enum):
    """Which words are not numbers."""

    IEEE = "largest exponent, nonzero fraction"
    ALL_ONES = "largest exponent, every fraction bit set"
    NONE = "no word"


class Kind(Enum):
    """What a word stands for."""

    ZERO = "zero"
    SUBNORMAL = "subnormal"
    NORMAL = "normal"
    INFINITY = "infinity"
    NAN = "nan"


@dataclass(frozen=True, slots=True)
class FloatFormat:
    """A binary floating-point word: sign bit, exponent, trailing fraction, from the top down."""

    name: str
    exponent_bits: int
    fraction_bits: int
    bias: int
    has_infinity: bool
    nans: Nans

    @property
    def bits(self) -> int:
        """Width of the word."""
        return 1 + self.exponent_bits + self.fraction_bits

    @property
    def sign_bit(self) -> int:
        """The word of negative zero."""
        return 1 << (self.bits - 1)

    @property
    def exponent_mask(self) -> int:
        """All exponent bits set: the word of positive infinity, in a format that has one."""
        return ((1 << self.exponent_bits) - 1) << self.fraction_bits

    @property
    def largest_finite(self) -> int:
        """The word of the largest finite value."""
        if self.has_infinity:
            return self.exponent_mask - 1
        return self.sign_bit - (2 if self.nans is Nans.ALL_ONES else 1)


BINARY16: Final = FloatFormat("binary16", 5, 10, 15, True, Nans.IEEE)
BINARY32: Final = FloatFormat("binary32", 8, 23, 127, True, Nans.IEEE)
BINARY64: Final = FloatFormat("binary64", 11, 52, 1023, True, Nans.IEEE)
BFLOAT16: Final = FloatFormat("bfloat16", 8, 7, 127, True, Nans.IEEE)
E4M3FN: Final = FloatFormat("E4M3FN", 4, 3, 7, False, Nans.ALL_ONES)
E2M1: Final = FloatFormat("E2M1", 2, 1, 1, False, Nans.NONE)


def sign_of(fmt: FloatFormat, word: int) -> int:
    """1 when the sign bit of `word` is set, else 0."""
    return word >> (fmt.bits - 1)


def classify(fmt: FloatFormat, word: int) -> Kind:
    """The kind of value that `word` stands for; the sign is `sign_of`."""
    magnitude = word & (fmt.sign_bit - 1)
    if magnitude == 0:
        return Kind.ZERO
    if magnitude > fmt.largest_finite:
        return Kind.INFINITY if fmt.has_infinity and magnitude == fmt.exponent_mask else Kind.NAN
    return Kind.NORMAL if magnitude >> fmt.fraction_bits else Kind.SUBNORMAL


def is_finite(fmt: FloatFormat, word: int) -> bool:
    """True for a number, false for infinities and NaN."""
    return word & (fmt.sign_bit - 1) <= fmt.largest_finite


def value(fmt: FloatFormat, word: int) -> Fraction | None:
    """The exact value of a finite word (both zeros give 0), or None for infinities and NaN."""
    if not is_finite(fmt, word):
        return None
    magnitude = word & (fmt.sign_bit - 1)
    exponent, fraction = magnitude >> fmt.fraction_bits, magnitude & ((1 << fmt.fraction_bits) - 1)
    significand = fraction | (1 << fmt.fraction_bits) if exponent else fraction
    exact = significand * _power_of_two(max(exponent, 1) - fmt.bias - fmt.fraction_bits)
    return -exact if sign_of(fmt, word) else exact


def finite_value(fmt: FloatFormat, word: int) -> Fraction:
    """`value`, for a word known to be finite. Raises: ValueError."""
    exact = value(fmt, word)
    if exact is None:
        raise ValueError(f"{word:#x} is not a finite {fmt.name} word")
    return exact


def round_to(fmt: FloatFormat, magnitude: Fraction, sign: int = 0) -> int:
    """The word nearest to `magnitude` >= 0, ties to even, with the given sign bit.

    Beyond the format the result is infinity. Raises: ValueError, where the format has no infinity.
    """
    if magnitude < 0:
        raise ValueError("round_to takes a magnitude and a sign")
    steps = 0
    if magnitude:
        top = magnitude.numerator.bit_length() - magnitude.denominator.bit_length()
        if magnitude < _power_of_two(top):
            top -= 1  # now 2**top <= magnitude < 2**(top + 1)
        exponent = max(top, 1 - fmt.bias)
        significand = round(
            magnitude / _power_of_two(exponent - fmt.fraction_bits)
        )  # Fraction rounds half to even
        # A carry out of the significand moves on to the next exponent by itself.
        steps = ((exponent + fmt.bias - 1) << fmt.fraction_bits) + significand
    if steps > fmt.largest_finite:
        if not fmt.has_infinity:
            raise ValueError(f"{magnitude} is beyond {fmt.name}, which has no infinity")
        steps = fmt.exponent_mask
    return steps | (sign << (fmt.bits - 1))


def _power_of_two(exponent: int) -> Fraction:
    return Fraction(1 << exponent) if exponent >= 0 else Fraction(1, 1 << -exponent)


def code_of_word(word: int, bits: int) -> int:
    """The signed integer of a `bits`-wide two's complement word."""
    return word - (1 << bits) if word >> (bits - 1) else word


def word_of_code(code: int, bits: int) -> int:
    """The `bits`-wide two's complement word of a signed integer. Raises: ValueError, outside the range."""
    if not -(1 << (bits - 1)) <= code < 1 << (bits - 1):
        raise ValueError(f"{code} does not fit {bits} bits")
    return code & ((1 << bits) - 1)


def i32_value(word: int) -> int:
    """The value of an I32 word (tensor-formats 3.1)."""
    return code_of_word(word, 32)


# Validity of single words (spec/layouts, value checking).
LARGEST_GROUP_SCALE: Final = BINARY16.largest_finite  # 0x7bff
LARGEST_BLOCK_SCALE: Final = E4M3FN.largest_finite  # 0x7e
LARGEST_ROW_SCALE: Final = BFLOAT16.largest_finite  # 0x7f7f


def is_group_scale(word: int) -> bool:
    """Positive zero or a positive finite binary16 word (section 5)."""
    return 0 <= word <= LARGEST_GROUP_SCALE


def is_block_scale(word: int) -> bool:
    """A finite E4M3FN word with sign clear (section 3.3)."""
    return 0 <= word <= LARGEST_BLOCK_SCALE


def is_row_scale(word: int) -> bool:
    """A finite BF16 word with sign clear (section 3.4)."""
    return 0 <= word <= LARGEST_ROW_SCALE


def is_divisor(word: int) -> bool:
    """A finite, strictly positive binary32 word (section 3.3)."""
    return 0 < word <= BINARY32.largest_finite


# Arrays of words. Narrow formats expand through a table built from the exact values above.


def _binary32_table(fmt: FloatFormat) -> Words32:
    table = np.empty(1 << fmt.bits, dtype=np.uint32)
    for word in range(1 << fmt.bits):
        exact, sign = value(fmt, word), sign_of(fmt, word)
        table[word] = sign << 31 | 0x7FC00000 if exact is None else round_to(BINARY32, abs(exact), sign)
    table.flags.writeable = False
    return table


E4M3FN_AS_BINARY32: Final = _binary32_table(E4M3FN)
E2M1_AS_BINARY32: Final = _binary32_table(E2M1)


def expand_e4m3fn(words: Words8) -> Words32:
    """Binary32 words of E4M3FN words; NaN becomes the quiet NaN of its sign."""
    return E4M3FN_AS_BINARY32[words]


def expand_e2m1(words: Words8) -> Words32:
    """Binary32 words of E2M1 words (one word per byte, 0 to 15)."""
    return E2M1_AS_BINARY32[words]


def expand_bf16(words: Words16) -> Words32:
    """Binary32 words of BF16 words: sixteen zero bits appended (section 3.1), NaN payloads included."""
    return words.astype(np.uint32) << np.uint32(16)


def expand_binary16(words: Words16) -> Words32:
    """Binary32 words of binary16 words, exact; the payload of a NaN moves to the top of the wider fraction."""
    wide = words.astype(np.uint32)
    sign, magnitude = (wide & 0x8000) << 16, wide & 0x7FFF
    normal = (magnitude << 13) + np.uint32((127 - 15) << 23)
    special = (magnitude << 13) | 0x7F800000
    # A subnormal is an integer of at most ten bits times 2**-24; bring its leading bit to bit 10.
    significand, exponent = magnitude.copy(), np.full_like(magnitude, 127 - 14)
    for shift in (8, 4, 2, 1):
        low = significand < (1 << (11 - shift))
        significand[low] <<= shift
        exponent[low] -= np.uint32(shift)
    subnormal = (exponent << 23) + ((significand & 0x3FF) << 13)
    finite = np.where(magnitude < 0x400, np.where(magnitude == 0, 0, subnormal), normal)
    return (sign | np.where(magnitude >= 0x7C00, special, finite)).astype(np.uint32)


def values_of_binary32(words: Words32) -> NDArray[np.float64]:
    """Values of binary32 words, exact; a conversion by the processor would flush subnormals where the thread does."""
    exponent, fraction = (words >> 23 & 0xFF).astype(np.int64), (words & 0x7FFFFF).astype(np.int64)
    significand = np.where(exponent > 0, fraction | 1 << 23, fraction).astype(np.float64)
    significand[exponent == 255] = np.inf
    significand[(exponent == 255) & (fraction > 0)] = np.nan
    signed: NDArray[np.float64] = np.where(words >> 31 != 0, -significand, significand)
    return np.asarray(np.ldexp(signed, np.maximum(exponent, 1) - 150), np.float64)


def narrow_bf16(words: Words32) -> Words16:
    """BF16 words nearest to binary32 words, ties to even; NaN stays NaN and becomes quiet."""
    wide = words.astype(np.uint64)
    rounded = (wide + 0x7FFF + ((wide >> 16) & 1)) >> 16
    nan = (wide & 0x7FFFFFFF) > 0x7F800000
    return np.where(nan, (wide >> 16) | 0x40, rounded).astype(np.uint16)


def narrow_binary32(words: Words64) -> Words32:
    """Binary32 words nearest to binary64 words, ties to even; beyond binary32 infinity; NaN becomes quiet."""
    sign, magnitude = (words >> 32) & 0x80000000, words & 0x7FFFFFFFFFFFFFFF
    exponent = (magnitude >> 52).astype(np.int64) - (1023 - 127)
    significand = (magnitude & ((1 << 52) - 1)) | np.where(
        magnitude >> 52 != 0, np.uint64(1 << 52), np.uint64(0)
    )
    # Below exponent 1 the result is subnormal: more bits fall off. 54 drops every bit, sticky included.
    drop = np.clip(29 + 1 - exponent, 29, 54).astype(np.uint64)
    one = np.uint64(1)
    rest, half = significand & ((one << drop) - one), one << (drop - one)
    quotient = significand >> drop
    quotient += ((rest > half) | ((rest == half) & (quotient & one == one))).astype(np.uint64)
    base = np.where(exponent > 0, exponent - 1, 0).astype(np.uint64) << np.uint64(23)
    finite = np.minimum(base + quotient, np.uint64(0x7F800000))
    finite = np.where(exponent >= 255, np.uint64(0x7F800000), finite)
    nan = magnitude > 0x7FF0000000000000
    payload = np.uint64(0x7FC00000) | ((magnitude >> np.uint64(29)) & np.uint64(0x3FFFFF))
    return (sign | np.where(nan, payload, finite)).astype(np.uint32)
