"""The canonical encoders beyond their vectors: bounds, ties, zeros, and what they refuse."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ninfer_core.schemes import run
from ninfer_core.schemes.ggml.tables import stq1_0_lanes
from tests.schemes.ggml.vectors import BLOCK, FORM, words

ENCODERS = [name for name, form in FORM.items() if form.encode]
# The largest error of a value in units of the largest magnitude of its block, binary16 rounding of d and m included.
BOUND = {
    "ggml_q4_0": 1 / 8,
    "ggml_q5_0": 1 / 16,
    "ggml_q4_1": 1 / 15,
    "ggml_q5_1": 1 / 31,
    "ggml_q8_0": 1 / 254,
    "ggml_mxfp4": 1 / 4,
    "ggml_bf16": 1 / 256,
}


# What the C encoder reaches on 65,536 normal values, as the scheme specification states it (section 4).
RMSE = {
    "ggml_q4_0": 0.0860,
    "ggml_q5_0": 0.0426,
    "ggml_q8_0": 0.00535,
    "ggml_mxfp4": 0.115,
    "ggml_q1_0": 0.599,
}


def there_and_back(name, values):
    form = FORM[name]
    return run.decode(form, run.encode(form, values, {}), values.shape, {})


@pytest.mark.parametrize("name", sorted(BOUND))
@settings(max_examples=20)
@given(seed=st.integers(0, 2**32), exponent=st.integers(-8, 12))
def test_what_comes_back_is_near(name, seed, exponent):
    values = np.random.default_rng(seed).standard_normal((3, BLOCK[name].values)).astype(np.float32)
    values *= np.float32(2.0**exponent)
    largest = np.abs(values).max(axis=1, keepdims=True)
    assert (np.abs(there_and_back(name, values) - values) <= largest * (BOUND[name] + 2**-9)).all()


@pytest.mark.parametrize("name", sorted(RMSE))
def test_the_error_on_normal_values_is_the_published_one(name):
    values = np.random.default_rng(2026).standard_normal(65536).astype(np.float32)
    squares = (there_and_back(name, values).astype(np.float64) - values) ** 2
    assert np.sqrt(squares.mean()) == pytest.approx(RMSE[name], rel=1e-3)


@pytest.mark.parametrize("name", ENCODERS)
def test_zeros_stay_zeros(name):
    values = np.zeros((2, BLOCK[name].values), np.float32)
    assert not there_and_back(name, values).any()
    # Too small for a binary16 scale, and with a reciprocal that binary32 does not hold: no code is made of infinity.
    values[:] = np.float32(1e-45)
    assert np.isfinite(there_and_back(name, values)).all()


@pytest.mark.parametrize("name", [name for name in ENCODERS if name != "ggml_bf16"])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_what_is_no_number_is_refused(name, value):
    values = np.ones((3, BLOCK[name].values), np.float32)
    values[2, -1] = value
    with pytest.raises(run.CannotEncode, match="block 2"):
        run.encode(FORM[name], values, {})


@pytest.mark.parametrize("name", [name for name, block in BLOCK.items() if block.encode and block.scales])
def test_a_scale_beyond_binary16_is_refused(name):
    values = np.linspace(1, 9e7, 2 * BLOCK[name].values, dtype=np.float32).reshape(2, -1)
    values[0] = 1
    with pytest.raises(run.CannotEncode, match=r"block 1 .* beyond binary16"):
        run.encode(FORM[name], values, {})


def test_bf16_keeps_what_is_no_number():
    values = np.array([np.nan, np.inf, -np.inf, 1.0], np.float32)
    assert np.array_equal(words(there_and_back("ggml_bf16", values)), words(values))


@pytest.mark.parametrize("name", ENCODERS)
def test_rows_whose_blocks_are_cut_are_refused(name):
    block = BLOCK[name]
    with pytest.raises(run.SchemeRefused):
        run.encode(FORM[name], np.zeros((), np.float32), {})
    if block.values > 1:
        with pytest.raises(run.SchemeRefused):
            run.encode(FORM[name], np.zeros((block.values, 1), np.float32), {})


def test_halves_are_rounded_away_from_zero_in_q8_0():
    values = np.zeros((1, 32), np.float32)
    values[0, :5] = 127, 0.5, -0.5, 2.5, 0.49999997
    blocks = run.encode(FORM["ggml_q8_0"], values, {})["payload"].view(BLOCK["ggml_q8_0"].record)
    assert blocks["qs"][0, :5].tolist() == [127, 1, -1, 3, 0]


def test_the_first_of_two_largest_decides_in_q4_0():
    values = np.zeros((2, 32), np.float32)
    values[0, 3:5], values[1, 3:5] = (8, -8), (-8, 8)
    blocks = run.encode(FORM["ggml_q4_0"], values, {})["payload"].view(BLOCK["ggml_q4_0"].record)
    assert blocks["d"].view(np.float16).tolist() == [-1, 1]
    assert [int(byte) for byte in blocks["qs"][:, 4]] == [0x8F, 0x8F]  # the other one is cut to 15


def test_ties_and_the_exponent_of_mxfp4():
    values = np.zeros((1, 32), np.float32)
    values[0, :8] = 4, 0.25, 0.75, 1.25, 1.75, 2.5, 3.5, -0.25
    blocks = run.encode(FORM["ggml_mxfp4"], values, {})["payload"].view(BLOCK["ggml_mxfp4"].record)
    assert blocks["e"].tolist() == [127]
    assert (blocks["qs"][0, :8] & 15).tolist() == [6, 0, 1, 2, 3, 4, 5, 0]
    below = np.nextafter(np.float32(4), np.float32(0))
    values[:] = below
    assert run.encode(FORM["ggml_mxfp4"], values, {})["payload"][0] == 126


@pytest.mark.parametrize("name", ["ggml_tq1_0", "ggml_tq2_0"])
def test_ternary_values_come_back_exactly(name):
    digits = np.random.default_rng(3).integers(-1, 2, (4, 256)).astype(np.float32)
    values = digits * np.array([[0.25], [3], [1], [2.0**-14]], np.float32)
    assert np.array_equal(there_and_back(name, values), values)


def test_every_entry_of_stq1_0_comes_back():
    lanes = stq1_0_lanes()
    assert len({tuple(entry) for entry in lanes.tolist()}) == 32
    groups = np.concatenate([lanes, lanes[::-1]]).reshape(4, 16, 4).transpose(0, 2, 1)
    values = 0.5 * groups.reshape(1, 256).astype(np.float32)
    payload = run.encode(FORM["stq1_0"], values, {})["payload"]
    blocks = payload.view(BLOCK["stq1_0"].record)
    index = np.concatenate([np.arange(32), np.arange(32)[::-1]])
    nibbles = np.stack([blocks["codes"][0] & 15, blocks["codes"][0] >> 4], axis=1).ravel()
    signs = np.unpackbits(blocks["signs"][0], bitorder="little")
    assert np.array_equal(nibbles | signs << 4, index)
    assert np.array_equal(there_and_back("stq1_0", values), values)


def test_the_smallest_of_four_lanes_becomes_zero_in_stq1_0():
    values = np.full((1, 256), 0.5, np.float32)
    values[0, [16, 1 + 48]] = (
        -0.25,
        0.125,
    )  # lane 1 of group 0, lane 3 of group 1; in the others the first of equals
    back = there_and_back("stq1_0", values)
    zeros = np.flatnonzero(back == 0)
    assert {16, 49} <= set(zeros.tolist())
    assert len(zeros) == 64
    assert set(np.abs(back[back != 0]).tolist()) == {0.5}
