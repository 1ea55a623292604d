"""The shared scalar rules as plain Python, against the exact arithmetic of `words`."""

import ast
import inspect

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from ninfer_core import words
from ninfer_core.encoders import maxabs_bf16s
from ninfer_core.kernels import scalar
from ninfer_core.reconstruct import reconstruct_row
from ninfer_core.words import BFLOAT16, BINARY16, BINARY32, BINARY64, E4M3FN
from tests import strategies


def test_every_binary16_and_bf16_word_widens():
    every = np.arange(65536, dtype=np.uint16)
    wide = [scalar.binary32_of_binary16(w) for w in range(65536)]
    assert np.array_equal(wide, words.expand_binary16(every))
    assert np.array_equal([scalar.binary32_of_bf16(w) for w in range(65536)], words.expand_bf16(every))


@given(st.integers(0, BINARY32.largest_finite))
def test_binary16_rounds_to_nearest_even(word):
    exact = words.round_to(BINARY16, words.finite_value(BINARY32, word))
    assert scalar.binary16_of_binary32(word) == exact


@given(st.integers(0, BINARY16.largest_finite - 1), st.integers(-2, 2))
def test_binary16_ties(word, nudge):
    middle = (words.finite_value(BINARY16, word) + words.finite_value(BINARY16, word + 1)) / 2
    near = words.round_to(BINARY32, middle) + nudge
    assert scalar.binary16_of_binary32(near) == words.round_to(BINARY16, words.finite_value(BINARY32, near))


@given(strategies.any_words(BINARY32))
def test_bf16_rounds_like_the_array_version(word):
    assert scalar.bf16_of_binary32(word) == int(words.narrow_bf16(np.array([word], np.uint32))[0])


@given(strategies.any_words(BINARY64))
def test_binary64_narrows_like_the_array_version(word):
    assert scalar.binary32_of_binary64(word) == int(words.narrow_binary32(np.array([word], np.uint64))[0])


@given(st.integers(0, 255).filter(lambda c: c & 0x7F != 0x7F), st.integers(0, 0x7F7F))
def test_row_product_equals_oracle(code, scale):
    assert scalar.product_of_row(code, scale) == reconstruct_row(code, scale)


def test_row_product_of_invalid_words_is_nan():
    assert scalar.product_of_row(0xFF, 0x3F80) == 0xFFC00000
    assert scalar.product_of_row(0x01, 0x7F80) == 0x7FC00000


def test_the_clamp():
    assert [scalar.code_of_normalized(n, -127, 127) for n in (-128, -127, 0, 127, 190)] == [
        -127,
        -127,
        0,
        127,
        127,
    ]


def test_every_rule_is_a_leaf():
    """A rule calls nothing but min and max, so any compiler can take it as it stands."""
    for node in ast.walk(ast.parse(inspect.getsource(scalar))):
        if isinstance(node, ast.Call):
            assert isinstance(node.func, ast.Name)
            assert node.func.id in {"min", "max"}
        assert not isinstance(node, ast.Import | ast.ImportFrom | ast.Attribute)


amax_words = st.one_of(st.integers(1, BINARY32.largest_finite), st.integers(1, 0x0480_0000))


@given(amax_words)
def test_row_scale_equals_oracle(word):
    assert scalar.row_scale32_of(word) == maxabs_bf16s.raw_scale(word)


@given(st.integers(0x0021, 0x7E80))
def test_reciprocal_of_a_row_scale(scale):
    exact = 1 / words.finite_value(BFLOAT16, scale)
    assert scalar.reciprocal_of_row_scale(scale) == words.round_to(BINARY32, exact)


@given(
    st.one_of(st.integers(0, BINARY32.largest_finite), st.integers(0, 0x00FF_FFFF)),
    st.integers(0x0080_0000, BINARY32.largest_finite),
)
def test_product_equals_exact_product(word, factor):
    exact = words.finite_value(BINARY32, word) * words.finite_value(BINARY32, factor)
    assert scalar.product32(word, factor) == words.round_to(BINARY32, exact)


@given(st.one_of(st.integers(0, 0x43E0_0000), st.integers(0x3A00_0000, 0x43E0_0000)))
def test_e4m3fn_rounds_to_nearest_even(word):
    assert scalar.e4m3fn_of_binary32(word) == words.round_to(E4M3FN, words.finite_value(BINARY32, word))


@given(st.integers(0, 0x7D), st.integers(-2, 2))
def test_e4m3fn_ties(code, nudge):
    middle = (words.finite_value(E4M3FN, code) + words.finite_value(E4M3FN, code + 1)) / 2
    near = words.round_to(BINARY32, middle) + nudge
    assert scalar.e4m3fn_of_binary32(near) == words.round_to(E4M3FN, words.finite_value(BINARY32, near))
