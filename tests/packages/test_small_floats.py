"""Every small float, its words and its rounding, against ml_dtypes, gfloat and torch; MX blocks against gfloat.

gfloat has no FNUZ types. Beyond the largest number ours saturates where the others have infinity or NaN: such numbers are
rounded with saturation where the other offers it, and left out where not.
"""

import ml_dtypes
import numpy as np
import pytest

from ninfer_core.schemes import run, small_floats
from ninfer_core.schemes.floating import FP8, MXFP4, MXFP6_E2M3, MXFP6_E3M2
from tests.schemes.numbers import assert_same_numbers

REASON = "an independent package, see make test-oracles"
gfloat = pytest.importorskip("gfloat", reason=REASON)
formats = pytest.importorskip("gfloat.formats", reason=REASON)
torch = pytest.importorskip("torch", reason=REASON)
ML_DTYPES = {
    "E2M1": "float4_e2m1fn",
    "E3M2": "float6_e3m2fn",
    "E2M3": "float6_e2m3fn",
    "E4M3FN": "float8_e4m3fn",
    "E4M3FNUZ": "float8_e4m3fnuz",
    "E5M2": "float8_e5m2",
    "E5M2FNUZ": "float8_e5m2fnuz",
}
GFLOAT = {"E2M1": "e2m1", "E3M2": "e3m2", "E2M3": "e2m3", "E4M3FN": "e4m3", "E5M2": "e5m2"}
EIGHT_BITS = ["E4M3FN", "E4M3FNUZ", "E5M2", "E5M2FNUZ"]


def numbers(within=np.inf):
    """Finite binary32 numbers of every size around those of small floats, ties among them, and both zeros."""
    drawn = np.random.default_rng(2026)
    wide = drawn.standard_normal(20_000) * 2.0 ** drawn.integers(-20, 18, 20_000)
    ties = drawn.integers(-64, 64, 20_000) * 2.0 ** drawn.integers(-12, 8, 20_000)
    every = np.concatenate([wide, ties, [0.0, -0.0]]).astype(np.float32)
    return every[np.abs(every) <= within]


@pytest.mark.parametrize("name", ML_DTYPES)
def test_words_and_rounding_are_those_of_ml_dtypes(name):
    form, dtype = getattr(small_floats, name), getattr(ml_dtypes, ML_DTYPES[name])
    codes = np.arange(1 << form.bits, dtype=np.uint8)
    assert_same_numbers(small_floats.decode(form, codes), codes.view(dtype).astype(np.float32))
    inside = numbers(float(form.largest))
    np.testing.assert_array_equal(small_floats.encode(form, inside), inside.astype(dtype).view(np.uint8))


@pytest.mark.parametrize("name", GFLOAT)
def test_words_and_rounding_are_those_of_gfloat(name):
    form, theirs = getattr(small_floats, name), getattr(formats, f"format_info_ocp_{GFLOAT[name]}")
    codes = np.arange(1 << form.bits, dtype=np.uint8)
    assert_same_numbers(
        small_floats.decode(form, codes), gfloat.decode_ndarray(theirs, codes).astype(np.float32)
    )
    rounded = gfloat.round_ndarray(theirs, numbers().astype(np.float64), sat=True)
    np.testing.assert_array_equal(
        small_floats.encode(form, numbers()), gfloat.encode_ndarray(theirs, rounded)
    )


def test_exponents_are_those_of_all_three():
    codes = np.arange(256, dtype=np.uint8)
    ours = small_floats.expand_e8m0(codes)
    assert_same_numbers(ours, codes.view(ml_dtypes.float8_e8m0fnu).astype(np.float32))
    assert_same_numbers(ours, gfloat.decode_ndarray(formats.format_info_ocp_e8m0, codes).astype(np.float32))
    assert_same_numbers(ours, torch.from_numpy(codes).view(torch.float8_e8m0fnu).to(torch.float32).numpy())


@pytest.mark.parametrize("name", EIGHT_BITS)
def test_eight_bits_are_the_cast_of_torch(name):
    form, dtype = getattr(small_floats, name), getattr(torch, f"float8_{name.lower()}")
    inside = numbers(float(form.largest))
    words = torch.from_numpy(inside).to(dtype)
    np.testing.assert_array_equal(small_floats.encode(form, inside), words.view(torch.uint8).numpy())
    scale = np.float32(0.37)
    payload = np.concatenate([words.view(torch.uint8).numpy(), np.arange(256, dtype=np.uint8)])
    expected = (torch.from_numpy(payload).view(dtype).to(torch.float32) * torch.tensor(scale)).numpy()
    parts = {"payload": payload, "scale": np.array([scale])}
    assert_same_numbers(run.decode(FP8, parts, payload.shape, {"dialect": name.lower()}), expected)


@pytest.mark.parametrize(
    ("form", "name"), [(MXFP4, "mxfp4_e2m1"), (MXFP6_E3M2, "mxfp6_e3m2"), (MXFP6_E2M3, "mxfp6_e2m3")]
)
def test_mx_blocks_are_those_of_gfloat(form, name):
    theirs = getattr(formats, f"format_info_{name}")
    drawn = np.random.default_rng(2026)
    values = (drawn.standard_normal((60, 32)) * 2.0 ** np.arange(-30, 30)[:, None]).astype(np.float32)
    parts = run.encode(form, values, {})
    decoded = run.decode(form, parts, values.shape, {})
    for row in range(len(values)):
        wide = values[row].astype(np.float64)
        scale = gfloat.compute_scale_amax(theirs.etype.emax, wide)
        assert int(parts["weight_scale"][row, 0]) == int(np.log2(scale)) + 127
        quantized = gfloat.quantize_block(theirs, wide, gfloat.compute_scale_amax)
        largest = float(theirs.etype.max) * scale
        assert_same_numbers(decoded[row], np.clip(quantized, -largest, largest).astype(np.float32))


@pytest.mark.parametrize(("form", "element"), [(MXFP4, "E2M1"), (MXFP6_E3M2, "E3M2"), (MXFP6_E2M3, "E2M3")])
def test_random_mx_blocks_are_the_products_of_ml_dtypes(form, element):
    """Codes from a stream of low bits first, taken apart by big integers, times every exponent."""
    bits = getattr(small_floats, element).bits
    drawn = np.random.default_rng(bits)
    packed = drawn.integers(0, 256, (256, 4 * bits), np.uint8)
    exponents = np.arange(256, dtype=np.uint8)[:, None]
    streams = [int.from_bytes(row.tobytes(), "little") for row in packed]
    codes = np.array(
        [[stream >> bits * i & (1 << bits) - 1 for i in range(32)] for stream in streams], np.uint8
    )
    levels = codes.view(getattr(ml_dtypes, ML_DTYPES[element])).astype(np.float32)
    with np.errstate(over="ignore"):  # the largest scales leave no room for their codes
        expected = levels * exponents.view(ml_dtypes.float8_e8m0fnu).astype(np.float32)
    parts = {"weight_packed": packed, "weight_scale": exponents}
    assert_same_numbers(run.decode(form, parts, (256, 32), {}), expected)
