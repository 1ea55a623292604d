"""BitNet's rows and the MXFP4 blocks of GPT-OSS against transformers, both ways and on random bytes.

It shifts MXFP4 by the exponent where we multiply by a power of two: exponent 255 is 2^128 to it and NaN to us.
"""

import numpy as np
import pytest

from ninfer_core.schemes import run
from ninfer_core.schemes.floating import MXFP4
from ninfer_core.schemes.ternary import BITNET_HF
from tests.schemes.numbers import assert_same_numbers

REASON = "an independent package, see make test-oracles"
torch = pytest.importorskip("torch", reason=REASON)
bitnet = pytest.importorskip("transformers.integrations.bitnet", reason=REASON)
mxfp4 = pytest.importorskip("transformers.integrations.mxfp4", reason=REASON)


@pytest.mark.parametrize("rows", [4, 5, 7, 64])
def test_ternary_rows_go_both_ways(rows):
    levels = np.random.default_rng(rows).integers(-1, 2, (rows, 24)).astype(np.float32)
    levels[0, 0] = 1
    packed = bitnet.pack_weights(torch.from_numpy(levels.copy())).numpy()
    parts = run.encode(BITNET_HF, levels, {"linear_class": "autobitlinear"})
    np.testing.assert_array_equal(parts["weight"], packed)
    parts = {"weight": packed, "weight_scale": np.ones(1, np.float32)}
    assert_same_numbers(run.decode(BITNET_HF, parts, levels.shape, {"linear_class": "bitlinear"}), levels)


def test_random_ternary_rows_are_unpacked_as_it_does():
    codes = np.random.default_rng(3).integers(0, 3, (4, 16, 24))
    packed = sum(codes[k] << 2 * k for k in range(4)).astype(np.uint8)
    expected = bitnet.unpack_weights(torch.from_numpy(packed), torch.float32).numpy()
    parts = {"weight": packed, "weight_scale": np.ones(1, np.float32)}
    assert_same_numbers(run.decode(BITNET_HF, parts, (64, 24), {"linear_class": "bitlinear"}), expected)


def test_random_mxfp4_blocks_decode_to_the_same_words():
    drawn = np.random.default_rng(4)
    blocks = drawn.integers(0, 256, (3, 85, 8, 16), np.uint8)
    scales = np.arange(3 * 85 * 8, dtype=np.int64).reshape(3, 85, 8).astype(np.uint8)
    scales[scales == 255] = 127
    theirs = mxfp4.convert_moe_packed_tensors(
        torch.from_numpy(blocks), torch.from_numpy(scales), dtype=torch.float32
    )
    ours = run.decode(
        MXFP4, {"weight_packed": blocks, "weight_scale": scales}, (3, 85, 256), {"layout": "blocks"}
    )
    assert_same_numbers(ours, theirs.transpose(1, 2).contiguous().numpy())
