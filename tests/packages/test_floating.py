"""Small floats, MX, NVFP4 and BitNet against packages of others, on random data and in both directions.

`make test-oracles` runs this folder where those packages are; elsewhere it is skipped.
"""

import ml_dtypes
import numpy as np
import pytest

from ninfer_core.schemes import run, small_floats
from ninfer_core.schemes.floating import FP8, MXFP4, MXFP6_E2M3, MXFP6_E3M2, NVFP4_CT
from ninfer_core.schemes.ternary import BITNET_HF
from tests.schemes.numbers import assert_same_numbers

REASON = "an independent package, see make test-oracles"
RNG_SEED = 2026


def random_numbers(count, exponents=(-40, 40)):
    """Finite binary32 numbers of every size around those of small floats, and both zeros."""
    rng = np.random.default_rng(RNG_SEED)
    numbers = rng.standard_normal(count) * 2.0 ** rng.integers(*exponents, count)
    return np.concatenate([numbers, [0.0, -0.0]]).astype(np.float32)


@pytest.fixture(scope="module")
def torch():
    return pytest.importorskip("torch", reason=REASON)


@pytest.fixture(scope="module")
def gfloat():
    return pytest.importorskip("gfloat", reason=REASON)


@pytest.mark.parametrize(
    ("form", "name"),
    [
        (small_floats.E2M1, "ocp_e2m1"),
        (small_floats.E3M2, "ocp_e3m2"),
        (small_floats.E2M3, "ocp_e2m3"),
        (small_floats.E4M3FN, "ocp_e4m3"),
        (small_floats.E5M2, "ocp_e5m2"),
    ],
    ids=lambda one: one if isinstance(one, str) else "",
)
def test_small_floats_are_those_of_gfloat(gfloat, form, name):
    from gfloat import formats

    theirs = getattr(formats, f"format_info_{name}")
    codes = np.arange(1 << form.bits, dtype=np.uint8)
    assert_same_numbers(
        small_floats.decode(form, codes), gfloat.decode_ndarray(theirs, codes).astype(np.float32)
    )
    numbers = random_numbers(20_000, (-20, 18))
    rounded = gfloat.round_ndarray(theirs, numbers.astype(np.float64), sat=True)
    np.testing.assert_array_equal(small_floats.encode(form, numbers), gfloat.encode_ndarray(theirs, rounded))


@pytest.mark.parametrize("dialect", ["e4m3fn", "e4m3fnuz", "e5m2", "e5m2fnuz"])
def test_fp8_is_the_cast_of_torch(torch, dialect):
    dtype = getattr(torch, f"float8_{dialect}")
    float8 = getattr(
        small_floats, dialect.upper().removesuffix("FN") + ("FN" if dialect.endswith("fn") else "")
    )
    numbers = random_numbers(20_000, (-20, 18))
    numbers = numbers[np.abs(numbers) <= float(float8.largest)]  # torch's cast does not saturate
    words = torch.from_numpy(numbers).to(dtype)
    np.testing.assert_array_equal(small_floats.encode(float8, numbers), words.view(torch.uint8).numpy())
    scale = np.float32(0.37)
    parts = {"payload": words.view(torch.uint8).numpy(), "scale": np.array([scale])}
    expected = (words.to(torch.float32) * torch.tensor(scale)).numpy()
    assert_same_numbers(run.decode(FP8, parts, numbers.shape, {"dialect": dialect}), expected)


@pytest.mark.parametrize(
    ("form", "name"), [(MXFP4, "mxfp4_e2m1"), (MXFP6_E3M2, "mxfp6_e3m2"), (MXFP6_E2M3, "mxfp6_e2m3")]
)
def test_mx_blocks_are_those_of_gfloat(gfloat, form, name):
    from gfloat import formats

    theirs = getattr(formats, f"format_info_{name}")
    values = (
        np.random.default_rng(RNG_SEED).standard_normal((60, 32)) * 2.0 ** np.arange(-30, 30)[:, None]
    ).astype(np.float32)
    parts = run.encode(form, values, {})
    decoded = run.decode(form, parts, values.shape, {})
    for row in range(values.shape[0]):
        wide = values[row].astype(np.float64)
        scale = gfloat.compute_scale_amax(theirs.etype.emax, wide)
        assert int(parts["weight_scale"][row, 0]) == int(np.log2(scale)) + 127
        quantized = gfloat.quantize_block(theirs, wide, gfloat.compute_scale_amax)
        saturated = np.clip(quantized, -float(theirs.etype.max) * scale, float(theirs.etype.max) * scale)
        np.testing.assert_array_equal(decoded[row], saturated)


def test_nvfp4_is_that_of_compressed_tensors(torch):
    helpers = pytest.importorskip("compressed_tensors.compressors.nvfp4.helpers", reason=REASON)
    values = np.random.default_rng(RNG_SEED).standard_normal((64, 256)).astype(np.float32) * np.float32(0.05)
    parts = run.encode(NVFP4_CT, values, {})
    scale = torch.from_numpy(parts["weight_scale"]).view(torch.float8_e4m3fn).to(torch.float32)
    second = torch.from_numpy(parts["weight_global_scale"])
    packed = helpers.quantize_and_pack_fp4(torch.from_numpy(values), scale, second)
    np.testing.assert_array_equal(parts["weight_packed"], packed.numpy())
    levels = helpers.unpack_fp4_from_uint8(packed, 64, 256, dtype=torch.float32)
    expected = levels * (scale / second).repeat_interleave(16, 1)
    assert_same_numbers(run.decode(NVFP4_CT, parts, values.shape, {}), expected.numpy())


def test_six_bits_are_packed_as_compressed_tensors_does(torch):
    helpers = pytest.importorskip("compressed_tensors.compressors.mxfp6.helpers", reason=REASON)
    codes = np.random.default_rng(RNG_SEED).integers(0, 64, (48, 96), np.uint8)
    levels = codes.view(ml_dtypes.float6_e2m3fn).astype(np.float32)
    packed = helpers.pack_fp6_to_uint8(torch.from_numpy(levels)).numpy()
    parts = {"weight_packed": packed, "weight_scale": np.full((48, 3), 127, np.uint8)}
    assert_same_numbers(run.decode(MXFP6_E2M3, parts, (48, 96), {}), levels)
    unpacked = helpers.unpack_fp6_from_uint8(torch.from_numpy(packed), 48, 96, torch.float32).numpy()
    assert_same_numbers(unpacked, levels)


@pytest.mark.parametrize("rows", [4, 5, 7, 64])
def test_ternary_rows_are_packed_as_transformers_does(torch, rows):
    bitnet = pytest.importorskip("transformers.integrations.bitnet", reason=REASON)
    levels = np.random.default_rng(RNG_SEED).integers(-1, 2, (rows, 24)).astype(np.float32)
    levels[0, 0] = 1
    packed = bitnet.pack_weights(torch.from_numpy(levels.copy())).numpy()
    parts = run.encode(BITNET_HF, levels, {"linear_class": "autobitlinear"})
    np.testing.assert_array_equal(parts["weight"], packed)
    parts = {"weight": packed, "weight_scale": np.ones(1, np.float32)}
    assert_same_numbers(run.decode(BITNET_HF, parts, levels.shape, {"linear_class": "bitlinear"}), levels)
