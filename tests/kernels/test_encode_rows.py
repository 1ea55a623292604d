"""The FP8 row kernel against its oracle, bit for bit, also with subnormals flushed."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ninfer_core.encoders import MAXABS_BF16S_RECIP_E4M3FN_RNE_V1 as PROFILE
from ninfer_core.encoders.known_answers import known_answers
from ninfer_core.encoders.maxabs_bf16s import RowResult, ScaleUnderflow, encode_rows
from ninfer_core.encoders.maxabs_f16 import SourceNotFinite
from ninfer_core.kernels import cpu
from ninfer_core.kernels.values import SOURCE_DTYPES, EncodeCounts, EncodeFault
from ninfer_core.words import BFLOAT16, BINARY32, E4M3FN, finite_value, is_finite, round_to
from tests import strategies
from tests.kernels.floating_mode import flush_to_zero, flushing

dtypes = pytest.mark.parametrize("dtype", PROFILE.dtypes)


def encode(source, dtype):
    codes = np.full(source.size, 0xAA, np.uint8)
    scales = np.full(source.shape[0], 0xAAAA, np.uint16)
    outcome = cpu.encode_rows(source, dtype, cpu.largest_magnitudes(source, dtype), codes, scales)
    return outcome, codes.reshape(source.shape), scales


def reference(source, dtype):
    try:
        return encode_rows(source.tolist(), SOURCE_DTYPES[dtype])
    except SourceNotFinite as error:
        return EncodeFault("source_not_finite", error.row, 0, error.lane, error.word)
    except ScaleUnderflow as error:
        return EncodeFault("scale_underflow", error.row, 0, None, error.raw_scale_word)


def assert_equal_to_reference(source, dtype):
    expected, (outcome, codes, scales) = reference(source, dtype), encode(source, dtype)
    if isinstance(expected, EncodeFault):
        assert outcome == expected
        return
    assert outcome == EncodeCounts(0, sum(row.clamped for row in expected))
    assert scales.tolist() == [row.scale for row in expected]
    assert codes.tolist() == [list(row.codes) for row in expected]


@st.composite
def rows(draw, dtype):
    """Rows around one scale: codes and ties between codes times it, a few units off; or any words at all."""
    fmt = SOURCE_DTYPES[dtype]
    columns = draw(
        st.sampled_from([4095, 4096, 4097]) if draw(st.integers(0, 9)) == 0 else st.integers(1, 40)
    )
    matrix = np.zeros((draw(st.integers(1, 3)), columns), strategies.DTYPES[dtype])
    for row in matrix:
        seed = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
        if draw(st.integers(0, 3)) == 0:
            few = draw(st.lists(strategies.finite_words(fmt), min_size=1, max_size=8))
            row[: len(few)] = few[:columns]
            continue
        low = 0x0010 if draw(st.booleans()) else 0x3000
        scale = finite_value(BFLOAT16, draw(st.integers(low, low + 0x900)))
        for lane in range(min(columns, 60)):
            code = 0x7E if lane == 0 else int(seed.integers(0, 0x7E))
            exact = finite_value(E4M3FN, code) + (
                (finite_value(E4M3FN, code + 1) - finite_value(E4M3FN, code)) / 2
                if lane and seed.integers(2)
                else 0
            )
            word = min(max(round_to(fmt, exact * scale) + int(seed.integers(-1, 2)), 0), fmt.largest_finite)
            row[lane] = word | int(seed.integers(2)) * fmt.sign_bit
    return matrix


@dtypes
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_the_kernel_equals_the_oracle(dtype, data):
    assert_equal_to_reference(data.draw(rows(dtype)), dtype)


@flushing
@dtypes
@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_flushed_subnormals_change_nothing(dtype, data):
    source = data.draw(rows(dtype))
    with flush_to_zero():
        assert_equal_to_reference(source, dtype)


def test_known_answers():
    for answer in known_answers(PROFILE):
        source = np.array([[int(word, 16) for word in answer["words"]]], np.uint32)
        outcome, codes, scales = encode(source, "F32")
        if "refused" in answer:
            assert isinstance(outcome, EncodeFault)
            assert outcome.kind == answer["refused"]
        else:
            assert [f"{code:02x}" for code in codes[0]] == answer["codes"]
            assert f"{scales[0]:04x}" == answer["scale"]
            assert outcome == EncodeCounts(0, answer["clamped"])


def test_every_bf16_word_alone():
    finite = np.array([w for w in range(1 << 16) if is_finite(BFLOAT16, w)], np.uint16)
    largest = cpu.largest_magnitudes(finite.reshape(-1, 1), "BF16")
    assert np.array_equal(largest, (finite & 0x7FFF).astype(np.uint32) << 16)
    good, expected = [], []
    for word in finite.tolist():
        one = reference(np.array([[word]], np.uint16), "BF16")
        if isinstance(one, EncodeFault):
            outcome, *_ = encode(np.array([[word]], np.uint16), "BF16")
            assert outcome == one
        else:
            expected += one
            good.append(word)
    outcome, codes, scales = encode(np.array(good, np.uint16).reshape(-1, 1), "BF16")
    assert outcome == EncodeCounts(0, sum(row.clamped for row in expected))
    assert [RowResult((c,), s, 0) for c, s in zip(codes[:, 0].tolist(), scales.tolist(), strict=True)] == [
        RowResult(row.codes, row.scale, 0) for row in expected
    ]


@pytest.mark.parametrize("word", [0x7F80, 0xFF80, 0x7FC0, 0xFF81])
def test_a_word_that_is_not_finite_is_refused_with_its_place(word):
    source = np.full((3, 5000), 0x3F80, np.uint16)
    source[1, 4999] = word
    outcome, *_ = encode(source, "BF16")
    assert outcome == EncodeFault("source_not_finite", 1, 0, 4999, word)


def test_a_part_of_a_row_is_encoded_under_the_scale_of_the_whole():
    source = np.random.default_rng(5).standard_normal((2, 6000)).astype(np.float32).view(np.uint32)
    _, whole, scales = encode(source, "F32")
    largest = cpu.largest_magnitudes(source, "F32")
    for begin, end in ((0, 17), (17, 4200), (4200, 6000)):
        codes, own = np.empty((2, end - begin), np.uint8), np.empty(2, np.uint16)
        cpu.encode_rows(np.ascontiguousarray(source[:, begin:end]), "F32", largest, codes, own)
        assert np.array_equal(codes, whole[:, begin:end])
        assert np.array_equal(own, scales)


def test_a_refused_word_elsewhere_in_the_row_has_no_lane():
    part, codes, scales = np.ones((1, 4), np.uint16), np.empty(4, np.uint8), np.empty(1, np.uint16)
    outcome = cpu.encode_rows(part, "BF16", np.array([0x7F800000], np.uint32), codes, scales)
    assert outcome == EncodeFault("source_not_finite", 0, 0, None, 0x7F800000)


def test_a_dividing_encoder_chooses_other_codes():
    """Codes by one division instead of a rounded reciprocal and a rounded product."""
    source = np.random.default_rng(20261130).standard_normal((1000, 1000)).astype(np.float32).view(np.uint32)
    words = (source >> 16).astype(np.uint16)
    _, codes, scales = encode(words, "BF16")
    values = (words.astype(np.uint32) << 16).view(np.float32)
    quotients = values / (scales.astype(np.uint32) << 16).view(np.float32)[:, None]
    magnitudes = np.minimum(np.abs(quotients), np.float32(448)).view(np.uint32)
    table = [round_to(E4M3FN, finite_value(BINARY32, int(word))) for word in np.unique(magnitudes)]
    divided = np.array(table, np.uint8)[np.unique(magnitudes, return_inverse=True)[1]].reshape(codes.shape)
    differing = int(np.count_nonzero(divided != codes & 0x7F))
    assert 0 < differing < 10_000
