"""The reconstruction oracle against exact binary64 products, and its refusals."""

from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ninfer_core.reconstruct import reconstruct_grouped, reconstruct_nvfp4, reconstruct_row
from ninfer_core.words import BINARY32, finite_value


def word(value: np.floating) -> int:
    with np.errstate(all="ignore"):
        return int(np.float32(value).view(np.uint32))


@given(st.integers(-128, 127), st.integers(0, 0x7BFF))
def test_grouped_is_the_binary32_product(code, scale):
    exact = np.float64(np.array([scale], np.uint16).view(np.float16)[0]) * np.float64(code)
    expected = word(exact) | (0x80000000 if code < 0 else 0)
    assert reconstruct_grouped(code, scale) == expected


@given(st.integers(0, 255).filter(lambda c: c & 0x7F != 0x7F), st.integers(0, 0x7F7F))
def test_row_is_the_binary32_product(code, scale):
    c = np.float64(np.array([code], np.uint8).view(ml_dtypes.float8_e4m3fn)[0])
    s = np.float64(np.array([scale], np.uint16).view(ml_dtypes.bfloat16)[0])
    assert reconstruct_row(code, scale) == word(c * s)


def test_row_may_overflow_and_keeps_the_sign_of_zero():
    assert reconstruct_row(0xFE, 0x7F7F) == 0xFF800000
    assert reconstruct_row(0x80, 0x0000) == 0x80000000
    assert reconstruct_row(0x80, 0x3F80) == 0x80000000


def test_nvfp4_divides_the_exact_product_once():
    three = 0x40400000
    assert reconstruct_nvfp4(7, 0x38, three) == word(np.float32(2.0))
    quotient = Fraction(1, 2) / 3
    got = finite_value(BINARY32, reconstruct_nvfp4(9, 0x38, three))
    assert abs(got + quotient) <= Fraction(1, 1 << 27)
    assert reconstruct_nvfp4(15, 0x7E, 0x00000001) == 0xFF800000
    assert reconstruct_nvfp4(8, 0x7E, 0x00000001) == 0x80000000
    assert (
        reconstruct_nvfp4(1, 0x01, 0x7F7FFFFF) == 0x00000800
    )  # 2**-10 over nearly 2**128: subnormal, rounded up


def test_double_rounding_is_avoided():
    # Rounding the product first would be harmless (it is exact); rounding a binary64 quotient is not always.
    seed = np.random.default_rng(3)
    for divisor in seed.integers(1, 0x7F800000, 40).tolist():
        for code, scale in ((5, 0x7D), (7, 0x01), (3, 0x0B)):
            got = reconstruct_nvfp4(code, scale, divisor)
            if got < 0x7F800000:
                exact = (
                    Fraction([0, 0.5, 1, 1.5, 2, 3, 4, 6][code])
                    * Fraction(float(np.array([scale], np.uint8).view(ml_dtypes.float8_e4m3fn)[0]))
                    / finite_value(BINARY32, divisor)
                )
                error = abs(finite_value(BINARY32, got) - exact)
                for neighbour in (got - 1, got + 1):
                    if 0 <= neighbour < 0x7F800000:
                        assert error <= abs(finite_value(BINARY32, neighbour) - exact)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: reconstruct_grouped(1, 0x7C00),
        lambda: reconstruct_grouped(1, 0x8000),
        lambda: reconstruct_row(0x7F, 0x3F80),
        lambda: reconstruct_row(0x01, 0x7F80),
        lambda: reconstruct_nvfp4(1, 0x7F, 0x3F800000),
        lambda: reconstruct_nvfp4(1, 0x01, 0),
        lambda: reconstruct_nvfp4(1, 0x01, 0x7F800000),
    ],
)
def test_invalid_words_are_refused(wrong):
    with pytest.raises(ValueError, match="is not"):
        wrong()
