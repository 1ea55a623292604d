"""NF4 and FP4 against bitsandbytes, plain and nested scales, both ways and on random bytes.

Every tensor is one row: its CPU dequantizer misplaces scales where blocks straddle rows. One thing differs: its compiled
decoder gives FP4's code 8 the sign that its own table has not, a zero either way.
"""

import numpy as np
import pytest

from ninfer_core.schemes import run
from ninfer_core.schemes.integer import BNB_FP4, BNB_NF4
from tests.schemes.numbers import assert_same_numbers

torch = pytest.importorskip("torch", reason="an independent package, see make test-oracles")
functional = pytest.importorskip(
    "bitsandbytes.functional", reason="an independent package, see make test-oracles"
)
FORMS = pytest.mark.parametrize("form", [BNB_NF4, BNB_FP4], ids=lambda form: form.name)
SIZES = pytest.mark.parametrize(("count", "size"), [(4096, 64), (1000, 64), (129, 128), (40_000, 256)])
NESTED = pytest.mark.parametrize("nested", [False, True], ids=["plain", "nested"])


def normal(count):
    return np.random.default_rng(count).standard_normal((1, count)).astype(np.float32)


def parts_of(packed, state, nested):
    """Their tensors as a checkpoint holds them."""
    parts = {"payload": packed.reshape(-1).numpy(), "code": state.code.numpy()}
    if not nested:
        return parts | {"absmax": state.absmax.numpy()}
    return parts | {
        "absmax_u8": state.absmax.numpy(),
        "nested_absmax": state.state2.absmax.numpy(),
        "nested_code": state.state2.code.numpy(),
        "offset": np.atleast_1d(state.offset.numpy()).astype(np.float32),
    }


def assert_decoded(form, parts, shape, size, theirs):
    ours = run.decode(form, parts, shape, {"block_size": size})
    if form is BNB_FP4:
        payload = parts["payload"]
        codes = np.stack([payload >> 4, payload & 15], axis=1).reshape(-1)[: ours.size].reshape(shape)
        assert not ours[codes == 8].any()
        assert not theirs[codes == 8].any()
        theirs = np.where(codes == 8, ours, theirs)
    assert_same_numbers(ours, theirs)


@FORMS
@SIZES
@NESTED
def test_what_it_quantizes_is_read_here(form, count, size, nested):
    values = normal(count)
    packed, state = functional.quantize_4bit(
        torch.from_numpy(values),
        blocksize=size,
        quant_type=form.name.removeprefix("bnb_"),
        compress_statistics=nested,
    )
    parts = parts_of(packed, state, nested)
    assert run.check(form, parts, values.shape, {"block_size": size}) == []
    assert_decoded(form, parts, values.shape, size, functional.dequantize_4bit(packed, state).numpy())
    if not nested:
        ours = run.encode(form, values, {"block_size": size})
        for name, array in ours.items():
            np.testing.assert_array_equal(array, parts[name])


@FORMS
@SIZES
@NESTED
def test_random_bytes_decode_to_the_same_words(form, count, size, nested):
    drawn = np.random.default_rng(count + size)
    packed, state = functional.quantize_4bit(
        torch.from_numpy(normal(count)),
        blocksize=size,
        quant_type=form.name.removeprefix("bnb_"),
        compress_statistics=nested,
    )
    packed = torch.from_numpy(drawn.integers(0, 256, packed.shape, np.uint8))
    blocks = -(-count // size)
    if nested:
        state.absmax = torch.from_numpy(drawn.integers(0, 256, blocks, np.uint8))
        state.state2.absmax = torch.from_numpy(drawn.random(state.state2.absmax.shape, np.float32))
    else:
        state.absmax = torch.from_numpy(
            (drawn.random(blocks) * 2.0 ** drawn.integers(-30, 30, blocks)).astype(np.float32)
        )
    parts = parts_of(packed, state, nested)
    assert_decoded(form, parts, (1, count), size, functional.dequantize_4bit(packed, state).numpy())
