"""Sums in a fixed order lie within rounding of the exact ones, and order is all that tells them from those."""

from fractions import Fraction

import numpy as np

from ninfer_core.oracles.parity import sum_grouped, sum_words


def test_sums_are_those_of_exact_numbers_rounded() -> None:
    random = np.random.default_rng(3)
    x = (random.standard_normal((3, 4_300)) * 2.0 ** random.integers(-20, 20, (3, 4_300))).tolist()
    y = (random.standard_normal((3, 4_300)) * 2.0 ** random.integers(-20, 20, (3, 4_300))).tolist()
    sums = sum_words(x, y)
    pairs = [
        (Fraction(a), Fraction(b))
        for left, right in zip(x, y, strict=True)
        for a, b in zip(left, right, strict=True)
    ]
    exact = (
        sum((Fraction(float(a - b)) ** 2 for a, b in pairs), Fraction(0)),
        sum((a * a for a, _ in pairs), Fraction(0)),
        sum((b * b for _, b in pairs), Fraction(0)),
    )
    for found, right in zip(
        (sums.squared_error, sums.source_squares, sums.value_squares), exact, strict=True
    ):
        assert abs(Fraction(found) - right) <= right * Fraction(1, 1 << 40)
    assert sums.largest_error == max(float(abs(a - b)) for a, b in pairs)


def test_values_of_groups_are_codes_times_scales() -> None:
    random = np.random.default_rng(4)
    codes, scales = random.integers(-8, 8, (2, 200)), 2.0 ** random.integers(-9, 9, (2, 4))
    x = np.round(random.standard_normal((2, 200)), 2)
    grouped = sum_grouped(64, x.tolist(), codes.tolist(), scales.tolist())
    words = sum_words(x.tolist(), (codes * np.repeat(scales, 64, axis=1)[:, :200]).tolist())
    assert grouped == words  # powers of two: nothing is rounded in the squares of the values
