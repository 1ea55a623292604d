"""Small floats against published tables, an independent package, and nearest values found by search."""

from fractions import Fraction
from itertools import pairwise

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ninfer_core.schemes import small_floats
from ninfer_core.schemes.small_floats import SmallFloat, Specials
from tests.schemes.numbers import assert_same_numbers
from tests.schemes.vectors import FOLDER

TABLES = np.load(FOLDER / "small_float_tables.npz")
NAMED = (
    small_floats.E2M1,
    small_floats.E3M2,
    small_floats.E2M3,
    SmallFloat("e3m2_ieee", 3, 2, 3, Specials.IEEE),
    small_floats.E4M3FN,
    small_floats.E4M3FNUZ,
    small_floats.E5M2,
    small_floats.E5M2FNUZ,
)
TYPES = {
    "e2m1": ml_dtypes.float4_e2m1fn,
    "e3m2": ml_dtypes.float6_e3m2fn,
    "e2m3": ml_dtypes.float6_e2m3fn,
    "e4m3fn": ml_dtypes.float8_e4m3fn,
    "e4m3fnuz": ml_dtypes.float8_e4m3fnuz,
    "e5m2": ml_dtypes.float8_e5m2,
    "e5m2fnuz": ml_dtypes.float8_e5m2fnuz,
}


@pytest.mark.parametrize("form", NAMED, ids=lambda form: form.name)
def test_every_code_is_the_published_value(form):
    codes = np.arange(1 << form.bits, dtype=np.uint8)
    ours = small_floats.decode(form, codes)
    assert_same_numbers(ours, TABLES[form.name])
    if form.name in TYPES:
        assert_same_numbers(ours, codes.view(TYPES[form.name]).astype(np.float32))


def test_every_exponent_is_the_published_power():
    words = np.arange(256, dtype=np.uint8)
    assert_same_numbers(small_floats.expand_e8m0(words), TABLES["e8m0"])
    assert_same_numbers(
        small_floats.expand_e8m0(words), words.view(ml_dtypes.float8_e8m0fnu).astype(np.float32)
    )


def edges(form):
    """Every value, every exact midpoint and the binary32 neighbours of both, either sign."""
    finite = [form.exact(code) for code in range(form.sign_bit)]
    numbers = sorted({value for value in finite if value is not None})
    middles = [(low + high) / 2 for low, high in pairwise(numbers)]
    exact = np.array([float(number) for number in [*numbers, *middles]], np.float32)
    around = np.concatenate(
        [exact, np.nextafter(exact, np.float32(np.inf)), np.nextafter(exact, np.float32(0))]
    )
    return np.concatenate([around, -around])


@pytest.mark.parametrize("form", [form for form in NAMED if form.name in TYPES], ids=lambda form: form.name)
def test_encoding_equals_the_independent_cast(form):
    values = edges(form)
    np.testing.assert_array_equal(
        small_floats.encode(form, values), values.astype(TYPES[form.name]).view(np.uint8)
    )


@pytest.mark.parametrize("form", NAMED, ids=lambda form: form.name)
def test_numbers_beyond_the_range_saturate(form):
    largest = float(form.largest)
    values = np.array([largest * 1.5, np.inf, -3e38, -np.inf], np.float32)
    decoded = small_floats.decode(form, small_floats.encode(form, values))
    np.testing.assert_array_equal(decoded, np.array([largest, largest, -largest, -largest], np.float32))


def test_without_saturation_the_range_ends_half_a_step_beyond_the_largest_number():
    def code(form, value):
        return int(small_floats.encode(form, np.array([value], np.float32), saturate=False)[0])

    below, tie = np.nextafter(np.float32(464), np.float32(0)), np.float32(464)
    assert code(small_floats.E4M3FN, below) == 0x7E
    assert code(small_floats.E4M3FN, tie) == 0x7E  # 448 is the even one
    assert code(small_floats.E4M3FN, np.nextafter(tie, np.float32(500))) == 0x7F
    assert code(small_floats.E5M2, np.nextafter(np.float32(61440), np.float32(0))) == 0x7B
    assert code(small_floats.E5M2, -61440.0) == 0xFC
    assert code(small_floats.E5M2FNUZ, -1e9) == 0x80
    with pytest.raises(ValueError, match="beyond e2m1"):
        code(small_floats.E2M1, 8.0)


def test_nan_is_encoded_where_a_code_is_left_for_it():
    nan = np.array([np.nan, -np.nan], np.float32)
    for form in NAMED:
        if form.nan is None:
            with pytest.raises(ValueError, match="no NaN"):
                small_floats.encode(form, nan)
        else:
            assert np.isnan(small_floats.decode(form, small_floats.encode(form, nan))).all()


@settings(max_examples=40, deadline=None)
@given(
    exponent=st.integers(1, 5),
    mantissa=st.integers(0, 3),
    bias=st.integers(-3, 20),
    specials=st.sampled_from(Specials),
    signed=st.booleans(),
    word=st.integers(0, 0x7F7FFFFF),
)
def test_the_nearest_code_is_the_one_that_a_search_finds(exponent, mantissa, bias, specials, signed, word):
    try:
        form = SmallFloat("drawn", exponent, mantissa, bias, specials, signed)
    except ValueError:
        return
    number = np.array([word], np.uint32).view(np.float32)
    exact = Fraction(float(number[0]))
    # At equal distance the even code; among equal values there is none but the zeros, and only one is positive.
    wanted = min(
        (code for code in range(form.sign_bit) if form.exact(code) is not None),
        key=lambda code: (abs(form.exact(code) - exact), code % 2),
    )
    assert int(small_floats.encode(form, number)[0]) == wanted
    assert form.exact(wanted) == Fraction(float(small_floats.decode(form, np.array([wanted]))[0]))
    if signed and not (specials is Specials.FNUZ and wanted == 0):
        assert int(small_floats.encode(form, -number)[0]) == wanted | form.sign_bit
    else:
        assert int(small_floats.encode(form, -number)[0]) == 0


@pytest.mark.parametrize(
    "fields",
    [(0, 3, 1), (8, 8, 1), (4, -1, 1), (4, 3, 2000), (1, 0, 0, Specials.NAN), (3, 0, 1, Specials.IEEE)],
)
def test_widths_that_no_float_has_are_refused(fields):
    with pytest.raises(ValueError, match="odd"):
        SmallFloat("odd", *fields)


def test_a_code_out_of_range_is_no_silent_wrap():
    with pytest.raises(IndexError):
        small_floats.decode(small_floats.E2M1, np.array([16], np.uint8))
