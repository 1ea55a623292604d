"""GGML block types against the package gguf and ggml's C library, on random data and both ways.

Both are compared where they have a type: the C library alone knows Q1_0, and nobody else STQ1_0. What differs: the sign
of a scale of zero, below; NaN is NaN, since of which sign and payload the processor and the order of operands decide.
Types whose encoder searches are encoded by the C library alone, and what it makes is decoded here.
"""

import numpy as np
import pytest

from benchmarks.packages import ggml_type
from ninfer_core.schemes import run
from tests.schemes.ggml.vectors import BLOCK, FORM, random_blocks
from tests.schemes.numbers import assert_same_numbers

gguf = pytest.importorskip("gguf", reason="an independent package, see make test-oracles")
quants = pytest.importorskip("gguf.quants")
pytest.importorskip("libggml", reason="an independent package, see make test-oracles")
NAMES = sorted(set(FORM) - {"stq1_0"})
IN_GGUF = sorted(set(NAMES) - {"ggml_q1_0"})
SEARCHED = {name for name, form in FORM.items() if form.encode is None}


def kind(name):
    return gguf.GGMLQuantizationType[BLOCK[name].name]


def drawn_values(block):
    """Rows of two blocks, of sizes far apart, without negative zeros."""
    drawn = np.random.default_rng(2)
    scales = np.exp(np.clip(drawn.normal(0, 3, (300, 1)), -12, 8))
    values = (drawn.standard_normal((300, 2 * block.values)) * scales).astype(np.float32)
    values[0], values[1] = 0, np.round(values[1])  # no scale at all, and many ties
    return values + np.float32(0)


@pytest.mark.parametrize("name", IN_GGUF)
def test_random_bytes_decode_to_the_words_of_gguf(name):
    block = BLOCK[name]
    assert kind(name).value == block.id
    payload = random_blocks(block, 2000, seed=1)
    ours = run.decode(FORM[name], {"payload": payload}, (2000 * block.values,), {})
    with np.errstate(all="ignore"):
        theirs = quants.dequantize(payload, kind(name)).reshape(-1)
    assert_same_numbers(ours, theirs)


@pytest.mark.parametrize("name", NAMES)
def test_random_bytes_decode_to_the_words_of_the_library(name):
    block = BLOCK[name]
    theirs = ggml_type(block.id)
    assert (theirs.name, theirs.block_values) == (block.name.lower().replace("_k", "_K"), block.values)
    assert theirs.block_bytes == block.bytes
    payload = random_blocks(block, 2000, seed=3)
    ours = run.decode(FORM[name], {"payload": payload}, (2000 * block.values,), {})
    assert_same_numbers(ours, theirs.decode(payload))


@pytest.mark.parametrize("name", sorted(set(IN_GGUF) - SEARCHED))
def test_random_values_encode_to_the_bytes_of_gguf(name):
    values = drawn_values(BLOCK[name])
    ours = run.encode(FORM[name], values, {})["payload"]
    theirs = quants.quantize(values, kind(name)).view(np.uint8).ravel()
    np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("name", sorted(set(NAMES) - SEARCHED))
def test_random_values_encode_to_the_bytes_of_the_library(name):
    block = BLOCK[name]
    values = drawn_values(block)
    ours, theirs = run.encode(FORM[name], values, {})["payload"], ggml_type(block.id).encode(values)
    np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("name", sorted(set(NAMES) & SEARCHED))
def test_what_the_library_searches_is_read_without_a_finding(name):
    block, form = BLOCK[name], FORM[name]
    values = drawn_values(block)[2:]  # a block of zeros, or one of few numbers, is no measure of a search
    payload = ggml_type(block.id).encode(values)
    assert run.check(form, {"payload": payload}, values.shape, {}) == []
    decoded = run.decode(form, {"payload": payload}, values.shape, {})
    assert_same_numbers(decoded.reshape(-1), ggml_type(block.id).decode(payload))
    # The coarsest type, of 1.56 bits, loses less than three quarters of a row's root mean square.
    lost = np.sqrt(np.mean((decoded - values) ** 2, axis=1) / np.mean(values**2, axis=1))
    assert np.median(lost) < 0.75


@pytest.mark.parametrize("name", ["ggml_q4_0", "ggml_q5_0"])
def test_the_one_difference_is_the_sign_of_a_scale_of_zero(name):
    """gguf divides the first value by -8, whatever the sign of its zero; the C library starts from plus zero, as ours does."""
    values = np.full((1, 32), -0.0, np.float32)
    ours = run.encode(FORM[name], values, {})["payload"]
    theirs = quants.quantize(values, kind(name)).view(np.uint8).ravel()
    assert (ours[:2].tolist(), theirs[:2].tolist()) == ([0, 0x80], [0, 0])
    assert np.array_equal(ours[2:], theirs[2:])
    np.testing.assert_array_equal(ours, ggml_type(BLOCK[name].id).encode(values))


def test_searched_types_are_those_that_gguf_does_not_encode_either():
    refused = set()
    for name in IN_GGUF:
        try:
            quants.quantize(np.ones((1, BLOCK[name].values), np.float32), kind(name))
        except NotImplementedError:
            refused.add(name)
    assert refused == SEARCHED - {"stq1_0"}
