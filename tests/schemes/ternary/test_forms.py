"""Ternary and binary forms and ParetoQ: vectors word for word, encoders, the words that are none, refusals."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ninfer_core.schemes import run
from ninfer_core.schemes.run import CannotEncode, SchemeRefused
from ninfer_core.schemes.ternary import BINARY_XNOR, BITNET_HF, BITNET_I2_S, FORMS, PARETOQ, paretoq
from tests.schemes.numbers import assert_same_numbers, normal
from tests.schemes.vectors import cases, parts_of

BITNET = {case.name: case for case in cases("bitnet")}
HF = [case for name, case in BITNET.items() if name.startswith("hf_")]
CLASSES = ("bitlinear", "autobitlinear")


def codes_of(found):
    return [finding.code for finding in found]


class TestBitnetHf:
    @pytest.mark.parametrize("case", HF, ids=lambda case: case.name)
    def test_vectors(self, case):
        params = {"linear_class": case.params["linear_class"]}
        parts, expected = parts_of(BITNET_HF, case), case.arrays["expected"]
        assert_same_numbers(run.decode(BITNET_HF, parts, expected.shape, params), expected)
        assert run.check(BITNET_HF, parts, expected.shape, params) == []
        assert run.implied_shape(BITNET_HF, parts, params) == expected.shape
        encoded = run.encode(BITNET_HF, expected, params)
        np.testing.assert_array_equal(encoded["weight"], parts["weight"])
        assert_same_numbers(encoded["weight_scale"], parts["weight_scale"])

    def test_the_example_of_the_specification(self):
        rows = np.array([(1, 0), (-1, 1), (0, -1), (1, 1)], np.float32)
        encoded = run.encode(BITNET_HF, rows, {"linear_class": "autobitlinear"})
        assert encoded["weight"].tolist() == [[146, 137]]

    def test_the_direction_is_never_guessed(self):
        parts = parts_of(BITNET_HF, HF[0])
        with pytest.raises(SchemeRefused, match="linear_class"):
            run.decode(BITNET_HF, parts, (16, 32), {})

    @pytest.mark.parametrize("linear_class", CLASSES)
    @pytest.mark.parametrize("shape", [(7, 5), (1, 3), (0, 4), (5, 0)])
    def test_rows_need_not_fill_a_byte(self, linear_class, shape):
        levels = np.random.default_rng(3).integers(-1, 2, shape).astype(np.float32)
        params = {"linear_class": linear_class}
        parts = run.encode(BITNET_HF, levels * np.float32(0.5), params)
        assert_same_numbers(
            np.abs(run.decode(BITNET_HF, parts, shape, params)), np.abs(levels) * np.float32(0.5)
        )
        assert run.check(BITNET_HF, parts, shape, params) == []

    @settings(max_examples=40, deadline=None)
    @given(word=st.integers(0x00800000, 0x7E000000), linear_class=st.sampled_from(CLASSES))
    def test_a_magnitude_is_kept_where_binary32_allows(self, word, linear_class):
        magnitude = np.array([word], np.uint32).view(np.float32)[0]
        values = np.array([[magnitude, -magnitude, 0]], np.float32)
        params = {"linear_class": linear_class}
        parts = run.encode(BITNET_HF, values, params)
        decoded = run.decode(BITNET_HF, parts, (1, 3), params)
        if linear_class == "autobitlinear":
            np.testing.assert_array_equal(decoded, values)
        else:
            scale = parts["weight_scale"][0]
            around = [scale, np.nextafter(scale, np.float32(0)), np.nextafter(scale, np.float32(np.inf))]
            errors = [abs(float(np.float32(1) / one) - float(magnitude)) for one in around]
            assert errors[0] == min(errors)
            np.testing.assert_allclose(decoded, values, rtol=2e-7)

    def test_weights_that_are_not_ternary_take_their_mean_magnitude(self):
        values = normal((8, 16))
        parts = run.encode(BITNET_HF, values, {"linear_class": "autobitlinear"})
        mean = np.float32(np.abs(values).astype(np.float64).mean())
        assert parts["weight_scale"].tolist() == [mean]
        expected = np.clip(np.rint(values / mean), -1, 1) * mean
        np.testing.assert_array_equal(
            run.decode(BITNET_HF, parts, (8, 16), {"linear_class": "autobitlinear"}), expected
        )

    def test_words_that_are_none(self):
        packed = np.full((2, 2), 0b01010101, np.uint8)
        packed[1, 1] = 0b11_01_01_11  # the row 7 does not exist; row 1 does
        parts = {"weight": packed, "weight_scale": np.zeros(1, np.float32)}
        illegal, padding, scale = run.check(BITNET_HF, parts, (7, 2), {"linear_class": "bitlinear"})
        assert (illegal.code, illegal.count, illegal.where["index"]) == ("scheme.code_illegal", 1, [1, 1])
        assert (padding.code, padding.count, padding.where["index"]) == ("scheme.padding_nonzero", 2, [7, 0])
        assert (scale.code, scale.where["part"]) == ("scheme.scale_not_finite", "weight_scale")
        assert "scheme.scale_not_finite" not in codes_of(
            run.check(BITNET_HF, parts, (7, 2), {"linear_class": "autobitlinear"})
        )
        scale_of_two = parts | {"weight_scale": np.full(1, 2, np.float32)}
        decoded = run.decode(BITNET_HF, scale_of_two, (7, 2), {"linear_class": "autobitlinear"})
        assert decoded[1, 1] == 4.0  # code 3 is two steps, whatever it was meant to be


class TestI2S:
    def test_vector(self):
        arrays = BITNET["i2_s_512"].arrays
        parts = {"payload": arrays["payload"]}
        assert run.implied_shape(BITNET_I2_S, parts, {}) == (512,)
        assert_same_numbers(run.decode(BITNET_I2_S, parts, (512,), {}), arrays["expected"])
        assert_same_numbers(run.decode(BITNET_I2_S, parts, (4, 128), {}), arrays["expected"].reshape(4, 128))
        assert run.check(BITNET_I2_S, parts, (512,), {}) == []
        np.testing.assert_array_equal(
            run.encode(BITNET_I2_S, arrays["expected"], {})["payload"], arrays["payload"]
        )

    def test_words_that_are_none(self):
        payload = np.zeros(64 + 32, np.uint8)
        payload[33] = 0b00110000  # the second 32 of the second block: value 128 + 32 + 1
        payload[64:68] = np.array([-np.inf], "<f4").view(np.uint8)
        payload[70] = 9
        illegal, scale, padding = run.check(BITNET_I2_S, {"payload": payload}, (256,), {})
        assert (illegal.code, illegal.where["index"], illegal.count) == ("scheme.code_illegal", 161, 1)
        assert (scale.code, scale.where["byte"]) == ("scheme.scale_not_finite", 64)
        assert (padding.code, padding.where["index"]) == ("scheme.padding_nonzero", 70)
        payload[64:68] = np.array([0.5], "<f4").view(np.uint8)
        assert run.decode(BITNET_I2_S, {"payload": payload}, (256,), {})[161] == 1.0

    def test_the_declared_type_has_the_size_of_the_payload(self):
        declared = BITNET_I2_S.declare((512,), {})
        (declaration,) = declared.declarations
        codes, scale, padding = declaration.type.fields
        assert codes.type.count * sum(one.bits for one in codes.type.components) == 512 * 2
        assert scale.type.name == "FLOAT"
        assert 512 // 4 + 4 + padding.type.count == 160

    @pytest.mark.parametrize("shape", [(), (127,), (64,), (3, 100)])
    def test_values_in_no_whole_blocks_are_refused(self, shape):
        with pytest.raises(SchemeRefused, match="whole blocks"):
            run.encode(BITNET_I2_S, np.zeros(shape, np.float32), {})

    @pytest.mark.parametrize("size", [0, 16, 31, 65])
    def test_bytes_of_no_whole_blocks_imply_no_shape(self, size):
        with pytest.raises(SchemeRefused):
            run.implied_shape(BITNET_I2_S, {"payload": np.zeros(size, np.uint8)}, {})


class TestParetoq:
    @pytest.mark.parametrize("case", cases("paretoq"), ids=lambda case: case.name)
    def test_vectors(self, case):
        w_bits, expected = case.params["w_bits"], case.arrays["expected"]
        parts = parts_of(PARETOQ, case)
        assert_same_numbers(run.decode(PARETOQ, parts, expected.shape, {"w_bits": w_bits}), expected)
        assert run.check(PARETOQ, parts, expected.shape, {"w_bits": w_bits}) == []
        assert run.implied_shape(PARETOQ, parts, {}) == expected.shape
        alpha = tuple(map(float, parts["alpha"][:, 0]))
        encoded = run.encode(PARETOQ, case.arrays["source"], {"w_bits": w_bits, "alpha": alpha})
        assert_same_numbers(encoded["levels"], parts["levels"])
        assert_same_numbers(encoded["alpha"], parts["alpha"])
        assert set(case.params["levels"]) <= set(paretoq.levels_of(w_bits).tolist())

    @pytest.mark.parametrize("w_bits", [0, 1, 2, 3, 4])
    def test_without_factors_training_would_start_from_these(self, w_bits):
        values = normal((5, 64))
        values[4] = 0
        parts = run.encode(PARETOQ, values, {"w_bits": w_bits})
        assert run.check(PARETOQ, parts, (5, 64), {"w_bits": w_bits}) == []
        decoded = run.decode(PARETOQ, parts, (5, 64), {"w_bits": w_bits})
        assert (
            np.sqrt(np.mean((decoded[:4] - values[:4]) ** 2))
            < {0: 0.9, 1: 0.7, 2: 0.6, 3: 0.3, 4: 0.15}[w_bits]
        )
        assert not decoded[4].any()

    def test_a_level_that_the_method_does_not_have(self):
        levels = np.full((2, 3), 0.5, np.float32)
        levels[1, 2], levels[0, 1] = np.nan, 2.5
        parts = {"levels": levels, "alpha": np.array([[1], [np.nan]], np.float32)}
        illegal, scale = run.check(PARETOQ, parts, (2, 3), {"w_bits": 2})
        assert (illegal.code, illegal.count, illegal.where["index"]) == ("scheme.code_illegal", 2, [0, 1])
        assert (scale.code, scale.where["index"]) == ("scheme.scale_not_finite", [1, 0])

    @pytest.mark.parametrize("alpha", [(1.0, 2.0), (1.0, 0.0, 1.0), (1.0, -1.0, 1.0), (1.0, 1e300, 1.0)])
    def test_factors_that_do_not_fit_are_refused(self, alpha):
        with pytest.raises(SchemeRefused, match="alpha"):
            run.encode(PARETOQ, normal((3, 4)), {"alpha": alpha})


class TestBinary:
    def test_vector(self):
        (case,) = cases("binary_xnor")
        parts, expected = parts_of(BINARY_XNOR, case), case.arrays["expected"]
        assert_same_numbers(run.decode(BINARY_XNOR, parts, (8, 40), {}), expected)
        assert run.check(BINARY_XNOR, parts, (8, 40), {}) == []
        encoded = run.encode(BINARY_XNOR, case.arrays["source"], {})
        np.testing.assert_array_equal(encoded["payload"], parts["payload"])
        assert_same_numbers(encoded["alpha"], parts["alpha"])

    @pytest.mark.parametrize("shape", [(3, 13), (2, 1), (4, 0), (0, 9)])
    def test_rows_are_padded_to_a_byte(self, shape):
        values = np.where(normal(shape) >= 0, np.float32(0.25), np.float32(-0.25))
        parts = run.encode(BINARY_XNOR, values, {})
        assert_same_numbers(run.decode(BINARY_XNOR, parts, shape, {}), values)
        assert run.check(BINARY_XNOR, parts, shape, {}) == []

    def test_a_mean_is_finite_where_the_sum_is_not(self):
        values = np.array([[3e38, -3e38, 3e38], [1, -1, 1]], np.float32)
        parts = run.encode(BINARY_XNOR, values, {})
        assert_same_numbers(run.decode(BINARY_XNOR, parts, values.shape, {}), values)

    def test_zero_counts_as_plus(self):
        parts = run.encode(BINARY_XNOR, np.array([[0.0, -0.0, -1.0]], np.float32), {})
        assert parts["payload"].tolist() == [[0b011]]

    def test_bits_behind_a_row_are_named(self):
        parts = {"payload": np.array([[0, 7], [0, 8]], np.uint8), "alpha": np.ones(2, np.float32)}
        (found,) = run.check(BINARY_XNOR, parts, (2, 11), {})
        assert (found.code, found.where["index"], found.where["word"]) == (
            "scheme.padding_nonzero",
            [1, 1],
            8,
        )


PARAMS = {"bitnet_hf": {"linear_class": "bitlinear"}}


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.name)
def test_values_that_are_not_finite_are_not_encoded(form):
    values = np.zeros((4, 128), np.float32)
    values[1, 2] = np.nan
    with pytest.raises(CannotEncode, match=r"the first at \[1, 2\]"):
        run.encode(form, values, PARAMS.get(form.name, {}))


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.name)
def test_any_words_decode_and_are_judged(form):
    rng = np.random.default_rng(9)
    params, parts = PARAMS.get(form.name, {}), {}
    for part in form.parts:
        counts = form.stored((8, 128), run.complete(form, params))[part.name]
        dtype = np.dtype(part.dtypes[0])
        words = rng.integers(0, 256, int(np.prod(counts)) * dtype.itemsize, np.uint8)
        parts[part.name] = words.view(dtype).reshape(counts)
    assert run.decode(form, parts, (8, 128), params).shape == (8, 128)
    found = run.check(form, parts, (8, 128), params)
    assert all(finding.count >= 1 and finding.where["part"] in parts for finding in found)


def test_no_values_take_no_memory_for_scales():
    with pytest.raises(SchemeRefused, match="about as many"):
        run.encode(BINARY_XNOR, np.zeros((1 << 39, 0), np.float32), {})


@pytest.mark.parametrize("form", [BITNET_HF, PARETOQ, BINARY_XNOR], ids=lambda form: form.name)
def test_a_weight_has_two_axes(form):
    with pytest.raises(SchemeRefused, match=r"\[out, in\]"):
        run.encode(form, np.zeros(4, np.float32), PARAMS.get(form.name, {}))
