"""What each stored weight stands for, as a binary32 word: the slow oracle in integers and rationals.

Every product or quotient is formed exactly and rounded once, to nearest, ties to even. A zero keeps the sign
that the product of the signs gives it.
"""

from fractions import Fraction

from ninfer_core.words import (
    BFLOAT16,
    BINARY16,
    BINARY32,
    E2M1,
    E4M3FN,
    finite_value,
    is_block_scale,
    is_divisor,
    is_group_scale,
    is_row_scale,
    round_to,
    sign_of,
)


def reconstruct_grouped(code: int, scale: int) -> int:
    """Signed code times binary16 scale word (section 6.2). Raises: ValueError, for an invalid scale."""
    if not is_group_scale(scale):
        raise ValueError(f"{scale:#06x} is not a group scale")
    return round_to(BINARY32, abs(code) * finite_value(BINARY16, scale), int(code < 0))


def reconstruct_row(code: int, scale: int) -> int:
    """E4M3FN code word times BF16 row multiplier word (section 3.4); may overflow to infinity.

    Raises: ValueError, for a NaN code or an invalid scale.
    """
    if not is_row_scale(scale):
        raise ValueError(f"{scale:#06x} is not a row scale")
    exact = abs(finite_value(E4M3FN, code)) * finite_value(BFLOAT16, scale)
    return round_to(BINARY32, exact, sign_of(E4M3FN, code))


def reconstruct_nvfp4(code: int, scale: int, divisor: int) -> int:
    """E2M1 code word times E4M3FN scale word over the binary32 divisor word (section 3.3); may overflow.

    Raises: ValueError, for an invalid scale or divisor.
    """
    if not (is_block_scale(scale) and is_divisor(divisor)):
        raise ValueError(f"{scale:#04x} over {divisor:#010x} is not a block scale over a divisor")
    exact = Fraction(abs(finite_value(E2M1, code)) * finite_value(E4M3FN, scale)) / finite_value(
        BINARY32, divisor
    )
    return round_to(BINARY32, exact, sign_of(E2M1, code))
