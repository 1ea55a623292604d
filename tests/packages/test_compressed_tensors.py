"""Packed integers, NVFP4, MXFP4 and MXFP6 against compressed-tensors, both ways and on random bytes.

Its decompressors of small floats answer in bfloat16: ours, rounded to it, are compared with them, and the codes alone in
binary32. It has six bits as E2M3 only.
"""

import ml_dtypes
import numpy as np
import pytest

from ninfer_core.schemes import run
from ninfer_core.schemes.floating import MXFP4, MXFP6_E2M3, NVFP4_CT
from ninfer_core.schemes.integer import PACK_QUANTIZED
from tests.schemes.numbers import assert_same_numbers

REASON = "an independent package, see make test-oracles"
torch = pytest.importorskip("torch", reason=REASON)
compressors = pytest.importorskip("compressed_tensors.compressors", reason=REASON)
quantization = pytest.importorskip("compressed_tensors.quantization", reason=REASON)
ROWS, COLUMNS, GROUP = 33, 192, 24


def scheme(bits, kind, strategy, group, symmetric=True):
    arguments = quantization.QuantizationArgs(
        num_bits=bits, type=kind, strategy=strategy, group_size=group, symmetric=symmetric
    )
    return quantization.QuantizationScheme(targets=["Linear"], weights=arguments)


def normal(rows, columns):
    return np.random.default_rng([rows, columns]).standard_normal((rows, columns)).astype(np.float32)


def numbers(bits, parts, symmetric):
    """Codes and zero points of a packed weight as signed integers, by the package."""
    codes = compressors.unpack_from_int32(
        torch.from_numpy(parts["weight_packed"]), bits, torch.Size((ROWS, COLUMNS))
    )
    zeros = torch.zeros((ROWS, COLUMNS // GROUP), dtype=torch.int8)
    if not symmetric:
        packed = torch.from_numpy(parts["weight_zero_point"])
        zeros = compressors.unpack_from_int32(packed, bits, zeros.shape, packed_dim=0)
    return codes, zeros


def decompressed(bits, parts, symmetric):
    state = {name: torch.from_numpy(array) for name, array in parts.items()}
    state["weight_scale"] = state["weight_scale"].to(torch.float32)
    state["weight_shape"] = torch.tensor((ROWS, COLUMNS))
    arguments = scheme(bits, "int", "group", GROUP, symmetric)
    return compressors.PackedQuantizationCompressor.decompress(state, arguments)["weight"].numpy()


@pytest.mark.parametrize("bits", range(1, 9))
@pytest.mark.parametrize("symmetric", [True, False], ids=["symmetric", "asymmetric"])
def test_integers_go_both_ways(bits, symmetric):
    params = {"bits": bits, "group_size": GROUP, "symmetric": symmetric}
    values = normal(ROWS, COLUMNS)
    parts = run.encode(PACK_QUANTIZED, values, params)
    assert_same_numbers(
        run.decode(PACK_QUANTIZED, parts, values.shape, params), decompressed(bits, parts, symmetric)
    )
    # With our scales and zero points it packs the same words.
    _codes, zeros = numbers(bits, parts, symmetric)
    state = {
        "weight": torch.from_numpy(values),
        "weight_scale": torch.from_numpy(parts["weight_scale"]).to(torch.float32),
        "weight_zero_point": zeros,
    }
    arguments = scheme(bits, "int", "group", GROUP, symmetric)
    theirs = compressors.PackedQuantizationCompressor.compress(state, arguments)
    np.testing.assert_array_equal(theirs["weight_packed"].numpy(), parts["weight_packed"])
    if not symmetric:
        np.testing.assert_array_equal(theirs["weight_zero_point"].numpy(), parts["weight_zero_point"])


@pytest.mark.parametrize("bits", range(1, 9))
@pytest.mark.parametrize("symmetric", [True, False], ids=["symmetric", "asymmetric"])
def test_random_words_decode_to_the_same_words(bits, symmetric):
    drawn = np.random.default_rng(bits)
    params = {"bits": bits, "group_size": GROUP, "symmetric": symmetric}

    def words(*shape):
        return drawn.integers(-(1 << 31), 1 << 31, shape, np.int32)

    parts = {
        "weight_packed": words(ROWS, COLUMNS * bits // 32),
        "weight_scale": drawn.standard_normal((ROWS, COLUMNS // GROUP)).astype(np.float32),
    }
    if not symmetric:
        parts["weight_zero_point"] = words(-(-ROWS * bits // 32), COLUMNS // GROUP)
    assert_same_numbers(
        run.decode(PACK_QUANTIZED, parts, (ROWS, COLUMNS), params), decompressed(bits, parts, symmetric)
    )


def assert_rounded(ours, theirs):
    """Their bfloat16 is our binary32, rounded once."""
    assert theirs.dtype == torch.bfloat16
    assert_same_numbers(ours.astype(ml_dtypes.bfloat16).astype(np.float32), theirs.to(torch.float32).numpy())


def nvfp4_state(parts):
    state = {name: torch.from_numpy(array) for name, array in parts.items()}
    return state | {"weight_scale": state["weight_scale"].view(torch.float8_e4m3fn)}


def test_nvfp4_goes_both_ways():
    values = normal(64, 256) * np.float32(0.05)
    parts = run.encode(NVFP4_CT, values, {})
    state = nvfp4_state(parts)
    arguments = scheme(4, "float", "tensor_group", 16)
    decoded = run.decode(NVFP4_CT, parts, values.shape, {})
    assert_rounded(decoded, compressors.NVFP4PackedCompressor.decompress(state, arguments)["weight"])
    scale, second = state["weight_scale"].to(torch.float32), state["weight_global_scale"]
    levels = compressors.unpack_fp4_from_uint8(state["weight_packed"], *values.shape, dtype=torch.float32)
    assert_same_numbers(decoded, (levels * (scale / second).repeat_interleave(16, 1)).numpy())
    source = {"weight": torch.from_numpy(values), "weight_scale": scale, "weight_global_scale": second}
    theirs = compressors.NVFP4PackedCompressor.compress(source, arguments)
    np.testing.assert_array_equal(theirs["weight_packed"].numpy(), parts["weight_packed"])
    np.testing.assert_array_equal(
        theirs["weight_scale"].view(torch.uint8).numpy(), parts["weight_scale"].view(np.uint8)
    )


def test_random_nvfp4_decodes_to_the_same_words():
    drawn = np.random.default_rng(4)
    parts = {
        "weight_packed": drawn.integers(0, 256, (64, 128), np.uint8),
        "weight_scale": np.tile(np.arange(256, dtype=np.uint8), 4).reshape(64, 16),
        "weight_global_scale": np.array([37.3], np.float32),
    }
    state = nvfp4_state(parts)
    decoded = run.decode(NVFP4_CT, parts, (64, 256), {})
    arguments = scheme(4, "float", "tensor_group", 16)
    assert_rounded(decoded, compressors.NVFP4PackedCompressor.decompress(state, arguments)["weight"])


def test_mxfp4_goes_both_ways():
    values = normal(64, 256) * (2.0 ** np.arange(-32, 32, dtype=np.float32))[:, None]
    parts = run.encode(MXFP4, values, {})
    state = {name: torch.from_numpy(array.view(np.uint8)) for name, array in parts.items()}
    arguments = scheme(4, "float", "group", 32)
    decoded = run.decode(MXFP4, parts, values.shape, {})
    assert_rounded(decoded, compressors.MXFP4PackedCompressor.decompress(state, arguments)["weight"])
    scale = torch.exp2(state["weight_scale"].to(torch.float32) - 127)
    source = {"weight": torch.from_numpy(values), "weight_scale": scale}
    theirs = compressors.MXFP4PackedCompressor.compress(source, arguments)
    np.testing.assert_array_equal(theirs["weight_packed"].numpy(), parts["weight_packed"])
    np.testing.assert_array_equal(theirs["weight_scale"].numpy(), parts["weight_scale"].view(np.uint8))


@pytest.mark.parametrize("form", [MXFP4, MXFP6_E2M3], ids=lambda form: form.name)
def test_random_mx_blocks_decode_to_the_same_words(form):
    """Exponents from 2^-120 to 2^120: its powers of two end sooner than ours, both ways, and 255 is no NaN to it."""
    drawn = np.random.default_rng(6)
    bits = 4 if form is MXFP4 else 6
    parts = {
        "weight_packed": drawn.integers(0, 256, (64, 32 * bits), np.uint8),
        "weight_scale": drawn.integers(7, 248, (64, 8), np.uint8),
    }
    state = {name: torch.from_numpy(array) for name, array in parts.items()}
    kind = compressors.MXFP4PackedCompressor if bits == 4 else compressors.MXFP6PackedCompressor
    theirs = kind.decompress(state, scheme(bits, "float", "group", 32))["weight"]
    assert_rounded(run.decode(form, parts, (64, 256), {}), theirs)


def test_six_bits_are_packed_as_it_does():
    helpers = pytest.importorskip("compressed_tensors.compressors.mxfp6.helpers", reason=REASON)
    codes = np.random.default_rng(6).integers(0, 64, (48, 96), np.uint8)
    levels = codes.view(ml_dtypes.float6_e2m3fn).astype(np.float32)
    parts = {
        "weight_packed": helpers.pack_fp6_to_uint8(torch.from_numpy(levels)).numpy(),
        "weight_scale": np.full((48, 3), 127, np.uint8),
    }
    assert_same_numbers(run.decode(MXFP6_E2M3, parts, (48, 96), {}), levels)
    encoded = run.encode(MXFP6_E2M3, levels, {})
    again = helpers.unpack_fp6_from_uint8(torch.from_numpy(encoded["weight_packed"]), 48, 96, torch.float32)
    scale = np.exp2(encoded["weight_scale"].view(np.uint8).astype(np.float32) - 127).repeat(32, 1)
    assert_same_numbers(run.decode(MXFP6_E2M3, encoded, (48, 96), {}), again.numpy() * scale)
