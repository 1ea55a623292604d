"""HQQ's slabs against the package hqq, both axes and every width, both ways and on random words.

Its own zero points and scales are binary32 until a file rounds them to binary16: here they are rounded before it decodes.
Three bits: the two highest bits of its words hold no code, and rows that fill the last slab are dropped.
"""

import numpy as np
import pytest

from ninfer_core.schemes import run
from ninfer_core.schemes.integer import HQQ
from tests.schemes.numbers import assert_same_numbers

torch = pytest.importorskip("torch", reason="an independent package, see make test-oracles")
quantize = pytest.importorskip("hqq.core.quantize", reason="an independent package, see make test-oracles")
GROUP, SHAPE = 64, (48, 160)
BITS = pytest.mark.parametrize("bits", [1, 2, 3, 4, 8])
AXES = pytest.mark.parametrize("axis", [0, 1])


def theirs_of(bits, axis, optimize=False):
    values = np.random.default_rng(bits).standard_normal(SHAPE).astype(np.float32)
    packed, meta = quantize.Quantizer.quantize(
        torch.from_numpy(values),
        nbits=bits,
        group_size=GROUP,
        axis=axis,
        optimize=optimize,
        compute_dtype=torch.float32,
        device="cpu",
    )
    return values, packed, meta


def decoded(parts, meta):
    meta = meta | {name: torch.from_numpy(parts[name]).to(torch.float32) for name in ("scale", "zero")}
    return quantize.Quantizer.dequantize(torch.from_numpy(parts["W_q"]), meta).numpy()


@BITS
@AXES
@pytest.mark.parametrize("optimize", [False, True], ids=["rounded", "searched"])
def test_what_it_quantizes_is_read_here(bits, axis, optimize):
    _values, packed, meta = theirs_of(bits, axis, optimize)
    parts = {name: meta[name].to(torch.float16).numpy() for name in ("scale", "zero")} | {
        "W_q": packed.numpy()
    }
    params = {"bits": bits, "group_size": GROUP, "axis": axis}
    assert run.check(HQQ, parts, SHAPE, params) == []
    assert_same_numbers(run.decode(HQQ, parts, SHAPE, params), decoded(parts, meta))


@BITS
@AXES
def test_what_is_encoded_here_is_read_by_it(bits, axis):
    values, packed, meta = theirs_of(bits, axis)
    params = {"bits": bits, "group_size": GROUP, "axis": axis}
    parts = run.encode(HQQ, values, params)
    assert (parts["W_q"].dtype, parts["W_q"].shape) == (packed.numpy().dtype, packed.shape)
    theirs = decoded(parts, meta)
    assert_same_numbers(run.decode(HQQ, parts, SHAPE, params), theirs)
    # No group is further off than its own grid allows: half a step, and the rounding of a zero point to binary16.
    assert np.abs(theirs - values).max() <= np.ptp(values) / (2**bits - 1)


@BITS
@AXES
def test_random_words_decode_to_the_same_words(bits, axis):
    _values, packed, meta = theirs_of(bits, axis)
    drawn = np.random.default_rng([bits, axis])
    words = (
        drawn.integers(-(1 << 31), 1 << 31, packed.shape)
        if bits == 3
        else drawn.integers(0, 256, packed.shape)
    )
    parts = {
        "W_q": words.astype(packed.numpy().dtype),
        "scale": drawn.standard_normal(tuple(meta["scale"].shape)).astype(np.float16),
        "zero": (8 * drawn.standard_normal(tuple(meta["zero"].shape))).astype(np.float16),
    }
    params = {"bits": bits, "group_size": GROUP, "axis": axis}
    assert_same_numbers(run.decode(HQQ, parts, SHAPE, params), decoded(parts, meta))
