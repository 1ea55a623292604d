"""Floats of a few bits: what each code means, and the code nearest to a number (scheme rule R9).

A code is sign, exponent, mantissa from the top bit down. Tables come from exact fractions; encoding compares binary32
words with exact midpoints, so that no operation rounds on the way.
"""

from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from functools import lru_cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ninfer_core.words import BINARY32, FloatFormat, Nans, Words32, round_to, value

Values = NDArray[np.float32]
Codes = NDArray[Any]  # uint8 up to eight bits, uint16 above

MAX_BITS: Final = 16
MAX_BIAS: Final = 1 << 10  # beyond it every binary32 result is zero or infinite
_QUIET_NAN: Final = 0x7FC00000


class Specials(Enum):
    """Which codes are not finite numbers."""

    IEEE = "largest exponent: mantissa 0 is infinity, the rest NaN"
    NAN = "every bit below the sign set is NaN, no infinity"
    NONE = "every code is a number"
    FNUZ = "negative zero is the one NaN, no infinity"


@dataclass(frozen=True, slots=True)
class SmallFloat:
    """A float of up to sixteen bits. Raises: ValueError for widths or a bias that none has."""

    name: str
    exponent_bits: int
    mantissa_bits: int
    bias: int
    specials: Specials = Specials.NONE
    signed: bool = True

    def __post_init__(self) -> None:
        narrow = self.exponent_bits >= 1 and self.mantissa_bits >= 0 and self.bits <= MAX_BITS
        if not narrow or abs(self.bias) > MAX_BIAS:
            raise ValueError(
                f"{self.name}: at least one exponent bit, at most {MAX_BITS} bits and bias {MAX_BIAS}"
            )
        if self.specials is Specials.FNUZ and not self.signed:
            raise ValueError(f"{self.name}: without a sign there is no negative zero to be NaN")
        if self.specials is Specials.IEEE and self.mantissa_bits == 0:
            raise ValueError(f"{self.name}: infinity and NaN need a mantissa bit to tell them apart")
        if self._signed_format.largest_finite < 1:
            raise ValueError(f"{self.name}: no code is left for a number")

    @property
    def bits(self) -> int:
        """Width of a code."""
        return self.signed + self.exponent_bits + self.mantissa_bits

    @property
    def sign_bit(self) -> int:
        """The code of negative zero; of an unsigned float, the first number that is no code."""
        return 1 << (self.exponent_bits + self.mantissa_bits)

    @property
    def _signed_format(self) -> FloatFormat:
        nans = {Specials.IEEE: Nans.IEEE, Specials.NAN: Nans.ALL_ONES}.get(self.specials, Nans.NONE)
        ieee = self.specials is Specials.IEEE
        return FloatFormat(self.name, self.exponent_bits, self.mantissa_bits, self.bias, ieee, nans)

    @property
    def largest(self) -> Fraction:
        """The largest finite value."""
        return self.exact(self._signed_format.largest_finite) or Fraction(0)

    @property
    def nan(self) -> int | None:
        """The positive quiet NaN, or None where every code is a number or infinity."""
        if self.specials is Specials.FNUZ:
            return self.sign_bit
        if self.specials is Specials.NONE:
            return None
        return self.sign_bit - 1

    def exact(self, code: int) -> Fraction | None:
        """The value of a finite code, both zeros 0, or None for infinities and NaN."""
        if self.specials is Specials.FNUZ and code == self.sign_bit:
            return None
        return value(self._signed_format, code)


E2M1: Final = SmallFloat("e2m1", 2, 1, 1)
E3M2: Final = SmallFloat("e3m2", 3, 2, 3)
E2M3: Final = SmallFloat("e2m3", 2, 3, 1)
E4M3FN: Final = SmallFloat("e4m3fn", 4, 3, 7, Specials.NAN)
E4M3FNUZ: Final = SmallFloat("e4m3fnuz", 4, 3, 8, Specials.FNUZ)
E5M2: Final = SmallFloat("e5m2", 5, 2, 15, Specials.IEEE)
E5M2FNUZ: Final = SmallFloat("e5m2fnuz", 5, 2, 16, Specials.FNUZ)

E8M0_NAN: Final = 255
E8M0_BIAS: Final = 127


@lru_cache(maxsize=64)
def table(form: SmallFloat) -> Words32:
    """Binary32 words of every code, read-only; NaN is quiet and keeps the code's sign."""
    count = 1 << form.bits
    words = np.empty(count, np.uint32)
    for code in range(count):
        sign = 1 if form.signed and code >= form.sign_bit else 0
        exact = form.exact(code)
        if exact is not None:
            words[code] = round_to(BINARY32, abs(exact), sign)
        elif (
            form.specials is Specials.IEEE and code & (form.sign_bit - 1) == form._signed_format.exponent_mask
        ):
            words[code] = sign << 31 | BINARY32.exponent_mask
        else:
            words[code] = sign << 31 | _QUIET_NAN
    words.flags.writeable = False
    return words


def decode(form: SmallFloat, codes: Codes) -> Values:
    """The values of codes, each in a number of its own; exact for every float named here.

    Raises: IndexError for a number that is no code.
    """
    return table(form)[codes].view(np.float32)


@lru_cache(maxsize=64)
def thresholds(form: SmallFloat) -> Words32:
    """For each finite magnitude but the smallest, the first binary32 word that rounds to it, ties to even."""
    codes = range(form._signed_format.largest_finite)
    words = np.empty(len(codes), np.uint32)
    for code in codes:
        here, above = form.exact(code), form.exact(code + 1)
        middle = ((here or Fraction(0)) + (above or Fraction(0))) / 2
        word = round_to(BINARY32, middle)
        reached = value(BINARY32, word)
        tie_stays = code % 2 == 0
        if reached is not None and (reached < middle or (reached == middle and tie_stays)):
            word += 1
        words[code] = word
    words.flags.writeable = False
    return words


def encode(form: SmallFloat, values: Values, *, saturate: bool = True) -> Codes:
    """The codes nearest to values, ties to even; beyond the largest finite value that value's code.

    Without `saturate` what rounds beyond it is infinity, or NaN where there is no infinity. A negative value of an
    unsigned float, and one that rounds to a negative zero that is NaN, is zero. Raises: ValueError for a NaN, or for
    a value out of range without `saturate`, where the float has no code for it.
    """
    words = np.ascontiguousarray(values, np.float32).view(np.uint32)
    magnitudes = words & np.uint32(0x7FFFFFFF)
    codes = np.searchsorted(thresholds(form), magnitudes, side="right").astype(np.uint16)
    if not saturate:
        beyond = magnitudes >= np.uint32(_first_beyond(form))
        _put(codes, beyond, _overflow_code(form), f"a value is beyond {form.name}")
    negative = words >> np.uint32(31) != 0
    if form.signed:
        signed = negative & (codes > 0) if form.specials is Specials.FNUZ else negative
        codes |= np.where(signed, np.uint16(form.sign_bit), np.uint16(0))
    else:
        codes[negative] = 0
    _put(codes, magnitudes > np.uint32(BINARY32.exponent_mask), form.nan, f"{form.name} has no NaN")
    return codes if form.bits > 8 else codes.astype(np.uint8)


def _put(codes: Codes, where: NDArray[np.bool_], code: int | None, otherwise: str) -> None:
    if not where.any():
        return
    if code is None:
        raise ValueError(otherwise)
    codes[where] = code


def _overflow_code(form: SmallFloat) -> int | None:
    return form._signed_format.exponent_mask if form.specials is Specials.IEEE else form.nan


def _first_beyond(form: SmallFloat) -> int:
    """The first binary32 word that rounds beyond the largest finite value, as if the next exponent existed."""
    largest = form._signed_format.largest_finite
    below = form.exact(largest - 1) or Fraction(0)
    middle = form.largest + (form.largest - below) / 2
    word = round_to(BINARY32, middle)
    reached = value(BINARY32, word)
    goes_up = largest % 2 == 1
    if reached is not None and (reached < middle or (reached == middle and not goes_up)):
        word += 1
    return word


def expand_e8m0(words: NDArray[np.uint8]) -> Values:
    """The scales 2**(e - 127) of E8M0 words, exact; 255 is NaN and 0 the subnormal 2**-127."""
    return _E8M0[words].view(np.float32)


def _e8m0_table() -> Words32:
    words = np.arange(256, dtype=np.uint32) << np.uint32(23)
    words[0], words[E8M0_NAN] = 1 << 22, _QUIET_NAN
    words.flags.writeable = False
    return words


_E8M0: Final = _e8m0_table()
