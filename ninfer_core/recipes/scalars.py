"""Single binary32 words: the reciprocal that turns a global multiplier into a divisor."""

from fractions import Fraction
from typing import Final

from ninfer_core.words import BINARY32, finite_value, is_divisor, is_finite, round_to

UNUSABLE: Final = "not a finite positive number"


def fault_of_scale(word: int) -> str | None:
    """Why a binary32 word is no multiplier or divisor; None when it is one."""
    return None if is_divisor(word) else UNUSABLE


def reciprocal(word: int) -> tuple[int, bool]:
    """The binary32 word of 1 / `word`, nearest even, and whether it is exact; `word` is finite and positive.

    The quotient of a subnormal number may round to infinity: see `fault_of_reciprocal`.
    """
    exact = 1 / finite_value(BINARY32, word)
    rounded = round_to(BINARY32, exact)
    return rounded, is_finite(BINARY32, rounded) and Fraction(finite_value(BINARY32, rounded)) == exact


def fault_of_reciprocal(word: int) -> str | None:
    """Why the reciprocal of a binary32 word cannot be a divisor; None when it can."""
    if fault := fault_of_scale(word):
        return fault
    return None if is_divisor(reciprocal(word)[0]) else "so small that its reciprocal is no finite number"
