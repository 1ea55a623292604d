"""GPTQ against auto-gptq's own module and AWQ against autoawq's functions, on random words and both ways.

Each is one file of its package, loaded without what the package imports. auto-gptq decodes where it multiplies: the product
with an identity matrix is the weight, in which plus zero stands for either zero. It takes groups in their order.
autoawq subtracts in the eight bits of its codes and multiplies by binary16 scales; given binary32, it says the same as ours.
"""

import numpy as np
import pytest

from benchmarks.packages import module_of
from ninfer_core.schemes import run
from ninfer_core.schemes.bits import codes_of
from ninfer_core.schemes.integer import AWQ, GPTQ
from tests.schemes.numbers import assert_same_numbers

REASON = "an independent package, see make test-oracles"
torch = pytest.importorskip("torch", reason=REASON)
pytest.importorskip("transformers", reason=REASON)
try:
    gptq = module_of("auto_gptq", "nn_modules/qlinear/qlinear_cuda_old.py")
    awq = module_of("awq", "utils/packing_utils.py")
except ImportError:
    pytest.skip(REASON, allow_module_level=True)
INPUTS, OUTPUTS, GROUP = 256, 96, 64
BITS = pytest.mark.parametrize("bits", [2, 3, 4, 8])


def words(drawn, *shape):
    return drawn.integers(-(1 << 31), 1 << 31, shape, np.int32)


def random_gptq(bits):
    drawn = np.random.default_rng(bits)
    return {
        "qweight": words(drawn, INPUTS * bits // 32, OUTPUTS),
        "qzeros": words(drawn, INPUTS // GROUP, OUTPUTS * bits // 32),
        "scales": drawn.standard_normal((INPUTS // GROUP, OUTPUTS)).astype(np.float16),
        "g_idx": (np.arange(INPUTS) // GROUP).astype(np.int32),
    }


def gptq_weight(bits, parts):
    layer = gptq.QuantLinear(bits, GROUP, INPUTS, OUTPUTS, False, weight_dtype=torch.float32)
    layer.qweight, layer.qzeros = torch.from_numpy(parts["qweight"]), torch.from_numpy(parts["qzeros"])
    layer.scales = torch.from_numpy(parts["scales"]).to(torch.float32)
    return layer(torch.eye(INPUTS)).numpy()


@BITS
def test_random_words_decode_to_those_of_auto_gptq(bits):
    """Three bits: it does not wrap a stored zero of seven, which it takes for eight; we wrap, as it does for the others."""
    parts, params = random_gptq(bits), {"bits": bits, "group_size": GROUP}
    ours, theirs = run.decode(GPTQ, parts, (INPUTS, OUTPUTS), params) + 0, gptq_weight(bits, parts)
    if bits == 3:
        wrapped = np.repeat(codes_of(parts["qzeros"], 3, OUTPUTS) == 7, GROUP, axis=0)
        steps = np.repeat(parts["scales"].astype(np.float32), GROUP, axis=0)
        codes = codes_of(parts["qweight"], 3, INPUTS, axis=0)
        theirs = np.where(wrapped, codes * steps + np.float32(0), theirs)
        assert wrapped.any()
    assert_same_numbers(ours, theirs)


@BITS
def test_what_auto_gptq_packs_is_what_is_packed_here(bits):
    drawn = np.random.default_rng(bits + 100)
    values = drawn.standard_normal((INPUTS, OUTPUTS)).astype(np.float32)
    params = {"bits": bits, "group_size": GROUP, "symmetric": False}
    parts = run.encode(GPTQ, values, params)
    assert_same_numbers(run.decode(GPTQ, parts, values.shape, params) + 0, gptq_weight(bits, parts))
    zeros = (codes_of(parts["qzeros"], bits, OUTPUTS).astype(np.int64) + 1) % (1 << bits)
    linear = torch.nn.Linear(INPUTS, OUTPUTS, bias=False)
    # Values on the grid: where between two codes it rounds a weight is not what is packed.
    linear.weight.data = torch.from_numpy(run.decode(GPTQ, parts, values.shape, params).T.copy())
    layer = gptq.QuantLinear(bits, GROUP, INPUTS, OUTPUTS, False, weight_dtype=torch.float32)
    scales = torch.from_numpy(parts["scales"].astype(np.float32).T.copy())
    layer.pack(linear, scales, torch.from_numpy(zeros.T.astype(np.float32)), torch.from_numpy(parts["g_idx"]))
    np.testing.assert_array_equal(layer.qweight.numpy(), parts["qweight"])
    np.testing.assert_array_equal(layer.qzeros.numpy(), parts["qzeros"])


def awq_weight(parts):
    scales = torch.from_numpy(parts["scales"]).to(torch.float32)
    packed = torch.from_numpy(parts["qweight"]), torch.from_numpy(parts["qzeros"])
    return awq.dequantize_gemm(*packed, scales, 4, GROUP).numpy()


def test_random_words_decode_to_those_of_autoawq():
    drawn = np.random.default_rng(4)
    parts = {
        "qweight": words(drawn, INPUTS, OUTPUTS // 8),
        "qzeros": words(drawn, INPUTS // GROUP, OUTPUTS // 8),
        "scales": drawn.standard_normal((INPUTS // GROUP, OUTPUTS)).astype(np.float16),
    }
    assert_same_numbers(run.decode(AWQ, parts, (INPUTS, OUTPUTS), {"group_size": GROUP}), awq_weight(parts))


@pytest.mark.parametrize("symmetric", [True, False])
def test_what_is_encoded_here_is_read_by_autoawq(symmetric):
    values = np.random.default_rng(5).standard_normal((INPUTS, OUTPUTS)).astype(np.float32)
    params = {"group_size": GROUP, "symmetric": symmetric}
    parts = run.encode(AWQ, values, params)
    assert_same_numbers(run.decode(AWQ, parts, values.shape, params), awq_weight(parts))
