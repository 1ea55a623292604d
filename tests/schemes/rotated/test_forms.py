"""EETQ, SmoothQuant and QuaRot: vectors word for word, encoders, the words that are none, refusals."""

import math

import numpy as np
import pytest

from ninfer_core.schemes import run
from ninfer_core.schemes.rotated import EETQ, FORMS, QUAROT, SMOOTHQUANT, eetq
from ninfer_core.schemes.run import CannotEncode, SchemeRefused
from ninfer_core.schemes.scales import half_away
from tests.schemes.numbers import assert_same_numbers, normal, sylvester
from tests.schemes.vectors import cases, parts_of


class TestEetq:
    @pytest.mark.parametrize("case", cases("eetq"), ids=lambda case: case.name)
    def test_vectors(self, case):
        parts, expected = parts_of(EETQ, case), case.arrays["expected_KxN"]
        assert_same_numbers(run.decode(EETQ, parts, expected.shape, {}), expected)
        assert run.check(EETQ, parts, expected.shape, {}) == []
        assert run.implied_shape(EETQ, parts, {}) == expected.shape
        np.testing.assert_array_equal(eetq.pack(case.arrays["codes_KxN"]), parts["qweight"])

    def test_the_place_is_the_one_that_the_specification_counts_out(self):
        inputs, outputs = 128, 6
        codes = np.random.default_rng(2).integers(-128, 128, (inputs, outputs), np.int8)
        order = (0, 1, 8, 9, 2, 3, 10, 11, 4, 5, 12, 13, 6, 7, 14, 15)
        stored = eetq.pack(codes).reshape(-1)
        for k in range(inputs):
            for n in range(outputs):
                row = k // 16 * 16 + order.index(k % 16)
                place = 2 * inputs * (n // 2) + 128 * (row // 64) + 64 * (n % 2) + row % 64
                swapped = place // 4 * 4 + (0, 2, 1, 3)[place % 4]
                assert int(stored.view(np.uint8)[swapped]) == int(codes[k, n]) + 128

    def test_encoding(self):
        values = normal((64, 4))
        values[:, 2] = 0
        parts = run.encode(EETQ, values, {})
        scale = np.abs(values).max(0) / np.float32(128)
        assert parts["weight_scales"].tolist() == scale.astype(np.float16).tolist()
        exact = [[0 if s == 0 else v / s for v, s in zip(row, scale, strict=True)] for row in values]
        nearest = [[math.copysign(math.floor(abs(q) + 0.5), q) for q in map(float, row)] for row in exact]
        expected = np.clip(np.array(nearest), -128, 127)
        np.testing.assert_array_equal(eetq.unpack(parts["qweight"], (64, 4)), expected)
        assert run.check(EETQ, parts, (64, 4), {}) == []

    def test_halves_go_away_from_zero_and_what_is_less_does_not(self):
        below = np.nextafter(np.float32(0.5), np.float32(0))  # plus a half it rounds to one
        values = np.array([0.5, -0.5, 1.5, -2.5, below, -below, 8388609.0, 0.0], np.float32)
        assert half_away(values).tolist() == [1, -1, 2, -3, 0, 0, 8388609, 0]

    def test_scales_beyond_binary16_are_refused(self):
        with pytest.raises(CannotEncode, match="binary16"):
            run.encode(EETQ, np.full((64, 2), 1e7, np.float32), {})

    @pytest.mark.parametrize("shape", [(64,), (32, 64), (64, 3)])
    def test_other_shapes_are_refused(self, shape):
        with pytest.raises(SchemeRefused, match="whole runs"):
            run.encode(EETQ, np.zeros(shape, np.float32), {})


class TestSmoothquant:
    def test_vector(self):
        (case,) = cases("smoothquant")
        parts = parts_of(SMOOTHQUANT, case)
        assert_same_numbers(run.decode(SMOOTHQUANT, parts, (16, 64), {}), case.arrays["expected"])
        smooth = parts.pop("smooth")
        assert_same_numbers(run.decode(SMOOTHQUANT, parts, (16, 64), {}), case.arrays["expected_smoothed"])
        assert run.check(SMOOTHQUANT, parts, (16, 64), {}) == []
        encoded = run.encode(SMOOTHQUANT, case.arrays["source"], {"smooth": tuple(map(float, smooth))})
        np.testing.assert_array_equal(encoded["weight"], parts["weight"])
        assert_same_numbers(encoded["weight_scale"], parts["weight_scale"])
        assert_same_numbers(encoded["smooth"], smooth)

    def test_without_factors_none_are_stored(self):
        values = normal((3, 5))
        parts = run.encode(SMOOTHQUANT, values, {})
        assert set(parts) == {"weight", "weight_scale"}
        assert np.abs(parts["weight"].astype(int)).max(1).tolist() == [127, 127, 127]
        np.testing.assert_allclose(run.decode(SMOOTHQUANT, parts, (3, 5), {}), values, atol=0.02)

    @pytest.mark.parametrize("smooth", [(1.0, 2.0), (1.0, 0.0, 1.0), (1.0, -2.0, 1.0), (1.0, 1e300, 1.0)])
    def test_factors_that_do_not_fit_are_refused(self, smooth):
        with pytest.raises(SchemeRefused, match="smooth"):
            run.encode(SMOOTHQUANT, normal((2, 3)), {"smooth": smooth})

    def test_a_product_beyond_binary32_is_not_encoded(self):
        with pytest.raises(CannotEncode):
            run.encode(SMOOTHQUANT, np.full((1, 1), 1e30, np.float32), {"smooth": (1e30,)})

    def test_factors_and_scales_that_are_none(self):
        parts = {
            "weight": np.ones((2, 3), np.int8),
            "weight_scale": np.array([1, np.nan], np.float32),
            "smooth": np.array([1, 0, 2], np.float32),
        }
        scale, factor = run.check(SMOOTHQUANT, parts, (2, 3), {})
        assert (scale.code, scale.where) == (
            "scheme.scale_not_finite",
            {"part": "weight_scale", "index": 1, "word": 0x7FC00000},
        )
        assert (factor.code, factor.where["part"], factor.where["index"]) == (
            "scheme.scale_not_finite",
            "smooth",
            1,
        )


class TestQuarot:
    @pytest.mark.parametrize("case", cases("quarot"), ids=lambda case: case.name)
    def test_vectors(self, case):
        parts, expected = parts_of(QUAROT, case), case.arrays["expected_rotated"]
        assert_same_numbers(run.decode(QUAROT, parts, expected.shape, {}), expected)
        assert run.check(QUAROT, parts, expected.shape, {}) == []
        assert run.implied_shape(QUAROT, parts, {}) == expected.shape
        undone = case.arrays["expected_unrotated_input_side"]
        ours = run.decode(QUAROT, parts, expected.shape, {"unrotate": "input"})
        np.testing.assert_allclose(ours, undone, rtol=0, atol=1e-5 * float(np.abs(undone).max()))

    @pytest.mark.parametrize("unrotate", ["none", "input", "output", "both"])
    def test_encoding_rotates_what_decoding_rotates_back(self, unrotate):
        values = normal((16, 32))
        params = {"unrotate": unrotate}
        parts = run.encode(QUAROT, values, params)
        stored = run.decode(QUAROT, parts, (16, 32), {})
        left = sylvester(16) / 4 if unrotate in ("output", "both") else np.eye(16)
        right = sylvester(32) / np.sqrt(32) if unrotate in ("input", "both") else np.eye(32)
        np.testing.assert_allclose(stored, left @ values @ right, atol=0.3)
        decoded = run.decode(QUAROT, parts, (16, 32), params)
        np.testing.assert_allclose(decoded, left @ stored @ right, atol=1e-5)
        assert np.sqrt(np.mean((decoded - values) ** 2)) < 0.15
        assert run.check(QUAROT, parts, (16, 32), params) == []

    def test_sizes_without_a_matrix_are_refused_only_where_it_is_needed(self):
        parts = run.encode(QUAROT, normal((3, 12)), {})
        assert run.decode(QUAROT, parts, (3, 12), {}).shape == (3, 12)
        for unrotate in ("input", "output", "both"):
            with pytest.raises(SchemeRefused, match="power of two"):
                run.decode(QUAROT, parts, (3, 12), {"unrotate": unrotate})

    def test_codes_are_signed_and_the_first_is_in_the_low_nibble(self):
        parts = {
            "weight": np.array([[0x7F, 0x08]], np.uint8),
            "weight_scales": np.full((1, 1), 0.5, np.float16),
        }
        assert run.decode(QUAROT, parts, (1, 4), {}).tolist() == [[-0.5, 3.5, -4.0, 0.0]]

    @pytest.mark.parametrize("shape", [(4,), (4, 5)])
    def test_other_shapes_are_refused(self, shape):
        with pytest.raises(SchemeRefused, match="pairs"):
            run.encode(QUAROT, np.zeros(shape, np.float32), {})


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.name)
def test_values_that_are_not_finite_are_not_encoded(form):
    values = np.zeros((64, 64), np.float32)
    values[1, 2] = np.inf
    with pytest.raises(CannotEncode, match=r"the first at \[1, 2\]"):
        run.encode(form, values, {})


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.name)
def test_any_words_decode_and_are_judged(form):
    rng = np.random.default_rng(9)
    parts = {}
    for part in form.parts:
        counts = form.stored((64, 64), run.complete(form, {}))[part.name]
        dtype = np.dtype(part.dtypes[0])
        words = rng.integers(0, 256, int(np.prod(counts)) * dtype.itemsize, np.uint8)
        parts[part.name] = words.view(dtype).reshape(counts)
    assert run.decode(form, parts, (64, 64), {}).shape == (64, 64)
    found = run.check(form, parts, (64, 64), {})
    assert all(finding.count >= 1 and finding.where["part"] in parts for finding in found)
