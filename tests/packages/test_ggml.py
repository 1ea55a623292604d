"""GGML block types against the package gguf on random data, both ways."""

from typing import Any

import numpy as np
import pytest

from ninfer_core.schemes import run
from tests.schemes.ggml.vectors import BLOCK, FORM, random_blocks, words

gguf: Any = pytest.importorskip("gguf", reason="an independent package, installed for `make test-oracles`")
quants: Any = pytest.importorskip("gguf.quants")
ABSENT = {"ggml_q1_0", "stq1_0"}  # which gguf does not know
SEARCHED = {name for name, form in FORM.items() if form.encode is None}


def kind(name):
    return gguf.GGMLQuantizationType[BLOCK[name].name]


@pytest.mark.parametrize("name", sorted(set(FORM) - ABSENT))
def test_random_bytes_decode_to_the_same_words(name):
    block = BLOCK[name]
    assert kind(name).value == block.id
    payload = random_blocks(block, 2000, seed=1)
    ours = run.decode(FORM[name], {"payload": payload}, (2000 * block.values,), {})
    with np.errstate(all="ignore"):
        theirs = quants.dequantize(payload, kind(name)).reshape(-1)
    # NaN is NaN: of which sign and payload, the processor and the order of operands decide.
    both = np.isnan(ours) & np.isnan(theirs)
    assert np.array_equal(words(ours)[~both], words(theirs)[~both])


@pytest.mark.parametrize("name", sorted(set(FORM) - ABSENT - SEARCHED))
def test_random_values_encode_to_the_same_bytes(name):
    block, drawn = BLOCK[name], np.random.default_rng(2)
    scales = np.exp(np.clip(drawn.normal(0, 3, (300, 1)), -12, 8))
    values = (drawn.standard_normal((300, 2 * block.values)) * scales).astype(np.float32)
    values[0], values[1] = 0, np.round(values[1])  # no scale at all, and many ties
    values += np.float32(0)  # no negative zeros: see below
    ours = run.encode(FORM[name], values, {})["payload"]
    assert np.array_equal(ours, quants.quantize(values, kind(name)).view(np.uint8).ravel())


@pytest.mark.parametrize("name", ["ggml_q4_0", "ggml_q5_0"])
def test_the_one_difference_is_the_sign_of_a_scale_of_zero(name):
    """gguf divides the first value by -8, whatever the sign of its zero; the C library starts from plus zero, as ours does."""
    values = np.full((1, 32), -0.0, np.float32)
    ours = run.encode(FORM[name], values, {})["payload"]
    theirs = quants.quantize(values, kind(name)).view(np.uint8).ravel()
    assert (ours[:2].tolist(), theirs[:2].tolist()) == ([0, 0x80], [0, 0])
    assert np.array_equal(ours[2:], theirs[2:])


def test_searched_types_are_those_that_gguf_does_not_encode_either():
    refused = set()
    for name in set(FORM) - ABSENT:
        try:
            quants.quantize(np.ones((1, BLOCK[name].values), np.float32), kind(name))
        except NotImplementedError:
            refused.add(name)
    assert refused == SEARCHED - ABSENT
