"""The oracle of the matrix-vector product against rationals, and that its criterion admits and refuses what it says."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ninfer_core import matvec
from ninfer_core.formats import GROUPED
from ninfer_core.layouts.block_scale import pack_codes, scale_offset
from ninfer_core.matvec import Reference, judge, reference
from ninfer_core.reconstruct import reconstruct_grouped, reconstruct_row
from ninfer_core.words import (
    BFLOAT16,
    BINARY32,
    E2M1,
    E4M3FN,
    expand_bf16,
    finite_value,
    narrow_bf16,
    round_to,
    values_of_binary32,
)
from tests import strategies
from tests.kernels import oracles


def value32(word):
    return finite_value(BINARY32, word)


@pytest.mark.parametrize("fmt", GROUPED, ids=lambda f: f.name)
@settings(max_examples=10, deadline=None)
@given(data=st.data())
def test_grouped_weights_are_exact(fmt, data):
    columns = data.draw(strategies.WIDTHS)
    planes = data.draw(strategies.planes(fmt, 2, columns))
    weights = matvec.weights_grouped(fmt, columns, planes)
    assert weights.shape == (2, columns)
    for group in oracles.groups(fmt, columns, planes):
        for lane in range(group.logical):
            exact = value32(reconstruct_grouped(group.codes[lane], group.scale))
            assert Fraction(weights[group.row, group.index * fmt.group + lane]) == exact


def test_rows_of_fp8_are_rounded_to_binary32():
    codes = np.array([word for word in range(256) if word & 0x7F != 0x7F], np.uint8)
    scales = np.array([0x0000, 0x0001, 0x0007, 0x0080, 0x0105, 0x3F81, 0x7B00], np.uint16)
    weights = matvec.weights_row(np.tile(codes, (scales.size, 1)), scales)
    for row, scale in enumerate(scales):
        for column, code in enumerate(codes):
            assert Fraction(weights[row, column]) == value32(reconstruct_row(int(code), int(scale)))


@pytest.mark.parametrize("divisor", [0x00000001, 0x3F800000, 0x4479999A, 0x7F7FFFFF])
def test_nvfp4_weights_are_the_quotient_and_follow_the_tiles(divisor):
    seed = np.random.default_rng(3)
    codes, scales = seed.integers(0, 16, (128, 128), np.uint8), seed.integers(0, 0x7F, 1024, np.uint8)
    weights = matvec.weights_nvfp4(pack_codes(codes), scales, divisor, 128)
    for row, column in [(0, 0), (31, 15), (32, 16), (100, 63), (127, 64), (64, 127), (5, 80)]:
        scale = finite_value(E4M3FN, int(scales[scale_offset(row, column // 16, 128)]))
        exact = finite_value(E2M1, int(codes[row, column])) * scale / value32(divisor)
        assert abs(Fraction(weights[row, column]) - exact) <= abs(exact) / 2**53


def test_the_reference_is_the_product_and_its_slack_the_stated_bound():
    seed = np.random.default_rng(8)
    weights = seed.standard_normal((3, 40)).astype(np.float32).astype(np.float64)
    activation = seed.integers(0x3D00, 0x4200, 40).astype(np.uint16)
    activation[::2] |= 0x8000
    activation[5:9] = 0x8000
    got = reference(weights, activation)
    vector = [finite_value(BFLOAT16, int(word)) for word in activation]
    n = 36 + 4
    for row in range(3):
        terms = [Fraction(w) * a for w, a in zip(weights[row], vector, strict=True)]
        assert abs(Fraction(got.products[row]) - sum(terms)) <= Fraction(40, 2**53) * sum(map(abs, terms))
        bound = Fraction(n, 2**24 - n) * sum(map(abs, terms)) + Fraction(37 + sum(map(abs, vector)), 2**149)
        assert abs(Fraction(got.slack[row]) - bound) <= bound / 10**12


@settings(max_examples=300)
@given(word=strategies.finite_words(BFLOAT16), low=st.floats(-1.01, 1.01), wide=st.floats(0, 0.6))
@example(word=0x0000, low=0.5, wide=0.0)
@example(word=0x0080, low=-0.5, wide=0.0)
@example(word=0x3F80, low=-0.25, wide=0.0)
@example(word=0x7F7F, low=0.4, wide=0.0)
def test_a_word_is_right_when_the_interval_meets_what_rounds_to_it(word, low, wide):
    exact, step = finite_value(BFLOAT16, word), Fraction(2) ** (max(word >> 7 & 0xFF, 1) - 134)
    ends = exact + Fraction(low) * step, exact + (Fraction(low) + Fraction(wide)) * step
    expected = Reference(np.array([float(sum(ends) / 2)]), np.array([float((ends[1] - ends[0]) / 2)]))
    ends = [Fraction(expected.products[0] + sign * expected.slack[0]) for sign in (-1, 1)]
    rounded = [round_to(BFLOAT16, abs(end), int(end < 0)) for end in ends]
    steps = [-(w & 0x7FFF) if w & 0x8000 else w for w in (rounded[0], word, rounded[1])]
    ties = any((end / step).denominator == 2 for end in ends)  # both neighbours of a tie are right
    judged = judge(expected, np.array([word], np.uint16)).wrong == 0
    assert judged == (steps[0] <= steps[1] <= steps[2]) or ties


def test_the_first_refused_output_is_named():
    expected = Reference(np.array([1.0, 2.0, -3.0]), np.full(3, 1e-6))
    words = narrow_bf16(np.array([1.0, 2.0, -3.0], np.float32).view(np.uint32))
    assert judge(expected, words).wrong == 0
    for bad in (0x4001, 0x3FFF, 0x7FC0, 0x7F80, 0xC000, 0x0000):
        got = judge(expected, np.array([words[0], bad, words[2] + 1], np.uint16))
        assert (got.outputs, got.wrong) == (3, 2)
        assert got.first is not None
        assert (got.first.row, got.first.word) == (1, bad)
        assert got.first.low < 2.0 < got.first.high
    with pytest.raises(ValueError, match="do not go"):
        judge(expected, words[:2])


def test_what_the_criterion_says_nothing_of_is_refused():
    ones = np.full(4, 0x3F80, np.uint16)
    with pytest.raises(ValueError, match="numbers"):
        reference(np.ones((2, 4)), np.array([0x3F80, 0x7F80, 0, 0], np.uint16))
    with pytest.raises(ValueError, match="numbers"):
        reference(np.array([[1.0, np.nan, 0, 0]]), ones)
    with pytest.raises(ValueError, match="numbers"):
        reference(matvec.weights_row(np.full((1, 4), 0x7E, np.uint8), np.array([0x7F7F], np.uint16)), ones)
    with pytest.raises(ValueError, match="add up"):
        reference(np.full((1, 4), 2.0**125), ones)
    with pytest.raises(ValueError, match="terms"):
        reference(np.zeros((1, 1 << 20)), np.full(1 << 20, 0x3F80, np.uint16))


def in_binary32(terms, order):
    """One row's terms, already binary32, added in some order."""
    match order:
        case "pairwise":
            while terms.size > 1:
                terms = np.append(terms, np.zeros(terms.size % 2, np.float32))
                terms = terms[0::2] + terms[1::2]
            return terms[0]
        case "ascending":
            terms = terms[np.argsort(np.abs(terms))]
        case "descending":
            terms = terms[np.argsort(-np.abs(terms))]
        case "positive first":
            terms = terms[np.argsort(terms < 0, kind="stable")]
        case "backwards":
            terms = terms[::-1]
    return np.add.accumulate(terms)[-1]


ORDERS = ("forwards", "backwards", "ascending", "descending", "positive first", "pairwise")


@pytest.mark.parametrize("kind", ["same sign", "cancelling", "subnormal", "bad carry"])
def test_binary32_sums_of_any_order_are_admitted(kind):
    seed = np.random.default_rng(21)
    rows, columns = 24, 6000
    weights = seed.standard_normal((rows, columns)).astype(np.float32)
    activation = narrow_bf16(seed.standard_normal(columns).astype(np.float32).view(np.uint32))
    if kind == "same sign":
        weights, activation = np.abs(weights), activation & 0x7FFF
    elif kind == "cancelling":
        weights[:, 1::2], activation[1::2] = -weights[:, 0::2] * np.float32(1 + 2**-20), activation[0::2]
    elif kind == "subnormal":
        weights *= np.float32(2.0**-120)
        activation = np.where(seed.random(columns) < 0.5, activation & 0x807F, activation - (25 << 7)).astype(
            np.uint16
        )
    else:  # every addition to a sum of one drops just less than half a unit
        weights[:], activation[:] = np.float32(2.0**-25) * np.float32(1 - 2**-20), 0x3F80
        weights[:, 0] = 1.0
    vector = values_of_binary32(expand_bf16(activation)).astype(np.float32)
    expected = reference(weights.astype(np.float64), activation)
    for order in ORDERS:
        sums = np.array([in_binary32(row * vector, order) for row in weights], np.float32)
        assert judge(expected, narrow_bf16(sums.view(np.uint32))).wrong == 0, order


def test_sums_of_bf16_and_a_cut_off_output_are_refused():
    seed = np.random.default_rng(5)
    weights = seed.standard_normal((200, 64)).astype(np.float32)
    for activation in matvec.activations(64, 4)[1:5]:
        vector = values_of_binary32(expand_bf16(activation)).astype(np.float32)
        expected = reference(weights.astype(np.float64), activation)
        sums = np.array([in_binary32(row * vector, "forwards") for row in weights], np.float32)
        assert judge(expected, narrow_bf16(sums.view(np.uint32))).wrong == 0
        assert judge(expected, (sums.view(np.uint32) >> 16).astype(np.uint16)).wrong > 5
        sums = np.zeros(200, np.float32)
        for term in np.flatnonzero(vector):
            narrow = narrow_bf16((sums + weights[:, term] * vector[term]).view(np.uint32))
            sums = (narrow.astype(np.uint32) << 16).view(np.float32)
        refused = judge(expected, narrow_bf16(sums.view(np.uint32))).wrong
        assert refused > 5 or np.count_nonzero(vector) == 1


def test_activations_are_finite_and_of_both_kinds():
    for columns in (1, 3, 64, 257):
        vectors = matvec.activations(columns, 7)
        assert [np.count_nonzero(v) for v in vectors] == [
            columns,
            1,
            *(min(n, columns) for n in (2, 4, 8)),
            1,
        ]
        assert vectors[-1][-1] == 0x3F80
        for first, second in zip(vectors, matvec.activations(columns, 7), strict=True):
            assert np.array_equal(first, second)
            assert np.isfinite(values_of_binary32(expand_bf16(first))).all()
