"""Words against numpy and ml_dtypes, which were written by others, over every word where that is possible."""

from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ninfer_core import words
from ninfer_core.words import BFLOAT16, BINARY16, BINARY32, BINARY64, E2M1, E4M3FN, FloatFormat, Kind
from tests import strategies
from tests.vectors import load

SMALL = [
    (BINARY16, np.float16),
    (BFLOAT16, ml_dtypes.bfloat16),
    (E4M3FN, ml_dtypes.float8_e4m3fn),
    (E2M1, ml_dtypes.float4_e2m1fn),
]
FORMATS = [BINARY16, BINARY32, BINARY64, BFLOAT16, E4M3FN, E2M1]


def every_word(fmt: FloatFormat) -> np.ndarray:
    return np.arange(1 << fmt.bits, dtype=np.uint8 if fmt.bits <= 8 else np.uint16)


@pytest.mark.parametrize(("fmt", "dtype"), SMALL, ids=lambda f: getattr(f, "name", ""))
def test_every_word_has_the_value_an_independent_library_gives(fmt, dtype):
    with np.errstate(invalid="ignore"):  # signaling NaN words are cast too
        theirs = every_word(fmt).view(dtype).astype(np.float64)
    for word, expected in enumerate(theirs.tolist()):
        kind, exact = words.classify(fmt, word), words.value(fmt, word)
        if expected != expected:
            assert (kind, exact) == (Kind.NAN, None)
        elif abs(expected) == float("inf"):
            assert (kind, exact) == (Kind.INFINITY, None)
        else:
            assert exact == Fraction(expected)
            assert (kind is Kind.ZERO) == (expected == 0)
            if kind is not Kind.ZERO:
                assert (exact < 0) == bool(words.sign_of(fmt, word))


@pytest.mark.parametrize("fmt", [BINARY16, BFLOAT16, E4M3FN, E2M1], ids=lambda f: f.name)
def test_rounding_a_value_gives_its_word_back(fmt):
    for word in range(1 << fmt.bits):
        exact = words.value(fmt, word)
        if exact is not None:
            assert words.round_to(fmt, abs(exact), words.sign_of(fmt, word)) == word


@pytest.mark.parametrize("fmt", FORMATS, ids=lambda f: f.name)
def test_a_midpoint_goes_to_the_even_word_and_its_neighbours_do_not(fmt):
    tiny = Fraction(1, 1 << 2000)
    for word in {0, 1, 2, 3, (1 << fmt.fraction_bits) - 1, 1 << fmt.fraction_bits, fmt.largest_finite - 1}:
        if word >= fmt.largest_finite:
            continue
        middle = (words.finite_value(fmt, word) + words.finite_value(fmt, word + 1)) / 2
        assert words.round_to(fmt, middle) == word + (word & 1)
        assert words.round_to(fmt, middle - tiny) == word
        assert words.round_to(fmt, middle + tiny) == word + 1


@pytest.mark.parametrize("fmt", [BINARY16, BINARY32, BINARY64, BFLOAT16], ids=lambda f: f.name)
def test_overflow_is_infinity_from_half_a_step_beyond_the_largest_value(fmt):
    last, before = (words.finite_value(fmt, fmt.largest_finite - i) for i in (0, 1))
    edge = last + (last - before) / 2
    assert words.round_to(fmt, edge, 1) == fmt.exponent_mask | fmt.sign_bit
    assert words.round_to(fmt, edge - Fraction(1, 1 << 2000)) == fmt.largest_finite


def test_a_format_without_infinity_refuses_what_lies_beyond():
    with pytest.raises(ValueError, match="beyond E2M1"):
        words.round_to(E2M1, Fraction(8))
    with pytest.raises(ValueError, match="magnitude"):
        words.round_to(E2M1, Fraction(-1))
    with pytest.raises(ValueError, match="finite"):
        words.finite_value(BINARY32, 0x7F800000)


@given(strategies.finite_words(BINARY64))
def test_binary64_to_binary32_equals_the_processor(word):
    with np.errstate(over="ignore", under="ignore"):
        expected = int(np.array([word], np.uint64).view(np.float64).astype(np.float32).view(np.uint32)[0])
    exact = words.finite_value(BINARY64, word)
    assert words.round_to(BINARY32, abs(exact), words.sign_of(BINARY64, word)) == expected
    assert int(words.narrow_binary32(np.array([word], np.uint64))[0]) == expected


def test_binary64_to_binary32_keeps_nan_a_nan_of_its_sign():
    narrow = words.narrow_binary32(
        np.array([0x7FF0000000000001, 0xFFFFFFFFFFFFFFFF, 0xFFF0000000000000], np.uint64)
    )
    assert narrow.tolist() == [0x7FC00000, 0xFFFFFFFF, 0xFF800000]


def test_bf16_and_binary16_expand_exactly():
    every = np.arange(65536, dtype=np.uint16)
    # Moving a signaling NaN through a float register may quiet it, so NaN words are compared by their bits only.
    expected = every.view(np.float16).astype(np.float32).view(np.uint32)
    number = (every & 0x7FFF) <= 0x7C00
    wide = words.expand_binary16(every)
    assert (wide == expected)[number].all()
    assert (wide[~number] == ((every[~number].astype(np.uint32) & 0x8000) << 16 | 0x7F800000
                              | (every[~number].astype(np.uint32) & 0x3FF) << 13)).all()  # fmt: skip
    assert (words.expand_bf16(every) == every.astype(np.uint32) << 16).all()
    assert (
        words.expand_bf16(every)[number]
        == every.view(ml_dtypes.bfloat16).astype(np.float32).view(np.uint32)[number]
    ).all()


def test_e4m3fn_and_e2m1_expand_exactly():
    for fmt, dtype, expand in (
        (E4M3FN, ml_dtypes.float8_e4m3fn, words.expand_e4m3fn),
        (E2M1, ml_dtypes.float4_e2m1fn, words.expand_e2m1),
    ):
        every = every_word(fmt)
        expected = every.view(dtype).astype(np.float32)
        wide = expand(every)
        number = ~np.isnan(expected)
        assert (wide == expected.view(np.uint32))[number].all()
        assert np.isnan(wide.view(np.float32))[~number].all()


def test_binary32_narrows_to_bf16_like_an_independent_library():
    seed = np.random.default_rng(1)
    every = np.arange(65536, dtype=np.uint32) << 16
    for low in (0, 1, 0x7FFF, 0x8000, 0x8001, 0xFFFF, *seed.integers(0, 65536, 4).tolist()):
        wide = every | np.uint32(low)
        with np.errstate(invalid="ignore"):  # signaling NaN words are cast too
            theirs = wide.view(np.float32).astype(ml_dtypes.bfloat16).view(np.uint16)
        number = (wide & 0x7FFFFFFF) <= 0x7F800000
        narrow = words.narrow_bf16(wide)
        assert (narrow == theirs)[number].all()
        assert (narrow[~number] == (wide[~number] >> 16 | 0x40)).all()


@given(st.integers(2, 32), st.data())
def test_twos_complement_words_and_codes(bits, data):
    code = data.draw(st.integers(-(1 << (bits - 1)), (1 << (bits - 1)) - 1))
    assert words.code_of_word(words.word_of_code(code, bits), bits) == code
    with pytest.raises(ValueError, match="fit"):
        words.word_of_code(1 << (bits - 1), bits)


def test_i32_extremes():
    assert [words.i32_value(w) for w in (0, 1, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF)] == [
        0,
        1,
        2**31 - 1,
        -(2**31),
        -1,
    ]


@pytest.mark.parametrize(
    ("accepts", "fmt", "zero"),
    [
        (words.is_group_scale, BINARY16, True),
        (words.is_block_scale, E4M3FN, True),
        (words.is_row_scale, BFLOAT16, True),
        (words.is_divisor, BINARY32, False),
    ],
    ids=["group", "block", "row", "divisor"],
)
def test_scales_are_finite_with_the_sign_clear(accepts, fmt, zero):
    edges = {
        0,
        1,
        fmt.largest_finite,
        fmt.largest_finite + 1,
        fmt.exponent_mask,
        fmt.sign_bit,
        (1 << fmt.bits) - 1,
    }
    for word in edges:
        legal = words.is_finite(fmt, word) and not words.sign_of(fmt, word) and (zero or word != 0)
        assert accepts(word) == legal


def test_the_fp8_dialect_is_e4m3fn():
    for entry in load.case_file("fp8_two_dialects.json")["table"]:
        word = int(entry["byte"], 16)
        text = entry["e4m3fn"]
        assert (words.classify(E4M3FN, word) is Kind.NAN) == (text == "nan")
        if text != "nan":
            assert words.value(E4M3FN, word) == Fraction(text)
            assert bool(words.sign_of(E4M3FN, word)) == text.startswith("-")
