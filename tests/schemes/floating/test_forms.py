"""Forms of small floats: the words that are no numbers, scales over axes and blocks, encoders, refusals."""

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ninfer_core.schemes import run, small_floats
from ninfer_core.schemes.floating import (
    FORMS,
    FP6_LLM,
    FP8,
    MXFP4,
    MXFP6_E2M3,
    MXFP6_E3M2,
    NVFP4_CT,
    NVFP4_MODELOPT,
)
from ninfer_core.schemes.run import CannotEncode, SchemeRefused
from tests.schemes.numbers import assert_same_numbers, normal

MX = (
    (MXFP4, ml_dtypes.float4_e2m1fn),
    (MXFP6_E3M2, ml_dtypes.float6_e3m2fn),
    (MXFP6_E2M3, ml_dtypes.float6_e2m3fn),
)


def codes_of(found):
    return [finding.code for finding in found]


class TestFp8:
    def test_blocks_share_a_scale_and_the_last_ones_may_be_short(self):
        words = np.random.default_rng(1).integers(0, 0x7F, (5, 7), np.uint8)
        scale = np.arange(1, 7, dtype=np.float32).reshape(3, 2)
        ours = run.decode(FP8, {"payload": words, "scale": scale}, (5, 7), {"block_shape": (2, 4)})
        values = words.view(ml_dtypes.float8_e4m3fn).astype(np.float32)
        expected = np.array([[values[r, c] * scale[r // 2, c // 4] for c in range(7)] for r in range(5)])
        assert_same_numbers(ours, expected.astype(np.float32))

    @pytest.mark.parametrize(
        ("params", "shape"),
        [({}, ()), ({}, (1,)), ({"axis": 0}, (5,)), ({"axis": 0}, (5, 1)), ({"block_shape": (1, 0)}, (5, 1))],
    )
    def test_scales_as_files_shape_them(self, params, shape):
        words = np.full((5, 7), 0x38, np.uint8)  # 1.0
        scale = np.arange(1, 1 + int(np.prod(shape)), dtype=np.float32).reshape(shape)
        ours = run.decode(FP8, {"payload": words, "scale": scale}, (5, 7), params)
        assert_same_numbers(ours, np.broadcast_to(scale.reshape(-1, 1), (5, 7)))

    def test_a_scale_across_the_other_axis_is_no_scale_of_rows(self):
        parts = {"payload": np.zeros((5, 5), np.uint8), "scale": np.ones((1, 5), np.float32)}
        assert codes_of(run.check(FP8, parts, (5, 5), {"axis": 0})) == ["scheme.part_shape"]

    @pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float8_e8m0fnu"])
    def test_narrow_scales_are_widened_exactly(self, dtype):
        scale = np.array([0.25, 2.0], np.float32).astype(np.dtype(getattr(ml_dtypes, dtype, dtype)))
        parts = {"payload": np.full((2, 3), 0x3C, np.uint8), "scale": scale}  # 1.5
        assert run.decode(FP8, parts, (2, 3), {"axis": 0})[:, 0].tolist() == [0.375, 3.0]

    @pytest.mark.parametrize("dialect", ["e4m3fn", "e4m3fnuz", "e5m2", "e5m2fnuz"])
    def test_an_array_that_says_its_type_is_read_as_that_or_refused(self, dialect):
        payload = np.arange(256, dtype=np.uint8).view(getattr(ml_dtypes, f"float8_{dialect}"))
        parts = {"payload": payload, "scale": np.ones(1, np.float32)}
        ours = run.decode(FP8, parts, (256,), {"dialect": dialect})
        assert_same_numbers(ours, payload.astype(np.float32))
        other = "e5m2" if dialect == "e4m3fn" else "e4m3fn"
        with pytest.raises(SchemeRefused, match="payload holds"):
            run.decode(FP8, parts, (256,), {"dialect": other})
        assert codes_of(run.check(FP8, parts, (256,), {"dialect": other}))[0] == "scheme.part_dtype"

    def test_words_that_are_no_numbers_have_a_place_and_a_count(self):
        payload = np.zeros((2, 3), np.uint8)
        payload[1, 1], payload[1, 2] = 0x7F, 0xFF
        parts = {"payload": payload, "scale": np.array([-1, np.inf], np.float32)}
        numbers, scales, signs = run.check(FP8, parts, (2, 3), {"axis": 0})
        assert (numbers.code, numbers.count, numbers.where["index"]) == ("scheme.value_not_finite", 2, [1, 1])
        assert numbers.where["word"] == 0x7F
        assert (scales.code, scales.where["index"], scales.where["word"]) == (
            "scheme.scale_not_finite",
            1,
            0x7F800000,
        )
        assert (signs.code, signs.where["index"]) == ("scheme.scale_sign_ignored", 0)

    @pytest.mark.parametrize(
        "params", [{}, {"axis": 1}, {"block_shape": (2, 3)}, {"block_shape": (0, 1 << 60)}]
    )
    @pytest.mark.parametrize("dialect", ["e4m3fn", "e4m3fnuz", "e5m2", "e5m2fnuz"])
    def test_encoding_meets_the_largest_number_of_each_group(self, params, dialect):
        params = params | {"dialect": dialect}
        values = normal((5, 7))
        values[0] = 0
        parts = run.encode(FP8, values, params)
        decoded = run.decode(FP8, parts, values.shape, params)
        bits = 4 if dialect.startswith("e4") else 3
        np.testing.assert_allclose(decoded, values, rtol=2.0**-bits, atol=1e-4)
        assert run.check(FP8, parts, values.shape, params) == []
        again = run.encode(FP8, decoded, params)
        np.testing.assert_array_equal(again["payload"], parts["payload"])

    @pytest.mark.parametrize("shape", [(), (0, 4), (4, 0)])
    def test_no_values_and_one_value(self, shape):
        parts = run.encode(FP8, np.full(shape, 3, np.float32), {})
        assert run.decode(FP8, parts, shape, {}).shape == shape

    @pytest.mark.parametrize(
        "params",
        [
            {"axis": 2},
            {"axis": -1},
            {"block_shape": (2,)},
            {"block_shape": (-1, 2)},
            {"axis": 0, "block_shape": (1, 1)},
        ],
    )
    def test_parameters_that_fit_no_weight_are_refused(self, params):
        with pytest.raises(SchemeRefused):
            run.encode(FP8, normal((3, 4)), params)


class TestMx:
    @settings(max_examples=30, deadline=None)
    @given(
        words=st.lists(st.integers(0, 0xFFFFFFFF), min_size=32, max_size=32),
        number=st.integers(0, 2),
        shrink=st.integers(0, 140),
    )
    def test_encoding_is_the_rule_of_the_standard(self, words, number, shrink):
        form, dtype = MX[number]
        values = np.array(words, np.uint32).view(np.float32)
        values = np.ldexp(np.where(np.isfinite(values), values, np.float32(0.75)), -shrink)[None]
        parts = run.encode(form, values, {})
        top = float(np.abs(values).max())
        largest_exponent = 4 if dtype is ml_dtypes.float6_e3m2fn else 2
        # math.frexp in binary64, where no binary32 number is subnormal.
        exponent = np.frexp(top)[1] - 1 - largest_exponent if top else -127
        exponent = min(max(exponent, -127), 127)
        assert int(parts["weight_scale"][0, 0]) == exponent + 127
        nearest = np.ldexp(values.astype(np.float64), -exponent)
        limit = float(ml_dtypes.finfo(dtype).max)
        nearest = np.clip(nearest, -limit, limit).astype(np.float32).astype(dtype).astype(np.float32)
        with np.errstate(over="ignore"):
            assert_same_numbers(run.decode(form, parts, (1, 32), {}), np.ldexp(nearest, exponent))

    @pytest.mark.parametrize("form", [MXFP4, MXFP6_E3M2, MXFP6_E2M3], ids=lambda form: form.name)
    def test_every_layout_holds_the_same_values(self, form):
        values = normal((3, 64))
        (layout,) = (parameter for parameter in form.parameters if parameter.name == "layout")
        decoded = []
        for choice in layout.choices:
            parts = run.encode(form, values, {"layout": choice})
            assert run.check(form, parts, (3, 64), {"layout": choice}) == []
            assert run.implied_shape(form, parts, {"layout": choice}) == (3, 64)
            decoded.append(run.decode(form, parts, (3, 64), {"layout": choice}))
            np.testing.assert_allclose(decoded[-1], values, atol=1)
        for other in decoded[1:]:
            assert_same_numbers(other, decoded[0])

    def test_zeros_stay_zeros_with_the_smallest_scale(self):
        parts = run.encode(MXFP4, np.zeros((1, 32), np.float32), {})
        assert parts["weight_scale"].tolist() == [[0]]
        assert not parts["weight_packed"].any()

    def test_the_nan_scale_has_a_place(self):
        scales = np.full((2, 2), 127, np.uint8)
        scales[1, 0] = 255
        parts = {"weight_packed": np.zeros((2, 32), np.uint8), "weight_scale": scales}
        (found,) = run.check(MXFP4, parts, (2, 64), {})
        assert (found.code, found.where["index"], found.where["word"]) == (
            "scheme.scale_not_finite",
            [1, 0],
            255,
        )
        assert np.isnan(run.decode(MXFP4, parts, (2, 64), {})[1, :32]).all()
        typed = parts | {"weight_scale": scales.view(ml_dtypes.float8_e8m0fnu)}
        assert codes_of(run.check(MXFP4, typed, (2, 64), {})) == ["scheme.scale_not_finite"]

    def test_bits_above_a_code_are_named_and_ignored(self):
        parts = {
            "weight_packed": np.full((1, 32), 0xC8, np.uint8),
            "weight_scale": np.full((1, 1), 127, np.uint8),
        }
        (found,) = run.check(MXFP6_E3M2, parts, (1, 32), {"layout": "bytes"})
        assert (found.code, found.count) == ("scheme.padding_nonzero", 32)
        assert run.decode(MXFP6_E3M2, parts, (1, 32), {"layout": "bytes"})[0, 0] == 0.5

    @pytest.mark.parametrize("shape", [(), (4, 33), (32, 4)])
    def test_a_row_in_no_whole_blocks_is_refused(self, shape):
        with pytest.raises(SchemeRefused, match="whole blocks"):
            run.encode(MXFP4, np.zeros(shape, np.float32), {})

    @pytest.mark.parametrize("packed", [(), (3, 15), (3, 4, 16)])
    def test_bytes_of_no_whole_blocks_imply_no_shape(self, packed):
        layout = {"layout": "blocks" if len(packed) == 2 else "rows"}
        arrays = {"weight_packed": np.zeros(packed, np.uint8), "weight_scale": np.zeros(1, np.uint8)}
        if packed == (3, 4, 16):
            assert run.implied_shape(MXFP4, arrays, layout) == (3, 4, 32)
        else:
            with pytest.raises(SchemeRefused, match="whole blocks of 16 bytes"):
                run.implied_shape(MXFP4, arrays, layout)


class TestNvfp4:
    @pytest.mark.parametrize("form", [NVFP4_CT, NVFP4_MODELOPT], ids=lambda form: form.name)
    @pytest.mark.parametrize("size", [1.0, 1e-30, 1e30, 1e-36])
    def test_encoding_keeps_what_four_bits_can(self, form, size):
        values = normal((4, 64)) * np.float32(size)
        values[1, :16] = 0
        parts = run.encode(form, values, {})
        assert run.check(form, parts, (4, 64), {}) == []
        decoded = run.decode(form, parts, (4, 64), {})
        top = np.abs(values).reshape(4, 4, 16).max(-1).repeat(16, -1)
        assert np.all(np.abs(decoded - values) <= top * 0.25)
        if size == 1.0:
            assert np.sqrt(np.mean((decoded - values) ** 2)) < 0.12

    @pytest.mark.parametrize("form", [NVFP4_CT, NVFP4_MODELOPT], ids=lambda form: form.name)
    @pytest.mark.parametrize("size", [1e-39, 1e-44, 1e38])
    def test_the_ends_of_binary32_leave_finite_scales(self, form, size):
        values = np.full((1, 16), size, np.float32)
        parts = run.encode(form, values, {})
        assert run.check(form, parts, (1, 16), {}) == []
        assert np.all(np.abs(run.decode(form, parts, (1, 16), {}) - values) <= values)

    @pytest.mark.parametrize("form", [NVFP4_CT, NVFP4_MODELOPT], ids=lambda form: form.name)
    def test_zeros_have_a_scale_of_one(self, form):
        parts = run.encode(form, np.zeros((2, 16), np.float32), {})
        assert parts[form.parts[2].name].tolist() == [1.0]
        assert not run.decode(form, parts, (2, 16), {}).any()

    def test_the_two_tools_mean_reciprocal_scales(self):
        values = normal((4, 32))
        divided = run.encode(NVFP4_CT, values, {})["weight_global_scale"]
        multiplied = run.encode(NVFP4_MODELOPT, values, {})["weight_scale_2"]
        np.testing.assert_allclose(divided * multiplied, 1, rtol=1e-6)

    def test_scales_that_are_none(self):
        scales = np.array([[0x7F, 0x01], [0x81, 0xFF]], np.uint8)
        parts = {
            "weight_packed": np.zeros((2, 16), np.uint8),
            "weight_scale": scales,
            "weight_global_scale": np.zeros(1, np.float32),
        }
        blocks, signs, divisor = run.check(NVFP4_CT, parts, (2, 32), {})
        assert (blocks.code, blocks.count, blocks.where["word"]) == ("scheme.scale_not_finite", 2, 0x7F)
        assert (signs.code, signs.where["index"], signs.where["word"]) == (
            "scheme.scale_sign_ignored",
            [1, 0],
            0x81,
        )
        assert (divisor.code, divisor.where["part"]) == ("scheme.scale_not_finite", "weight_global_scale")
        other = {
            "weight": parts["weight_packed"],
            "weight_scale": scales & 0x3F,
            "weight_scale_2": np.array([np.nan]),
        }
        other["weight_scale_2"] = other["weight_scale_2"].astype(np.float32)
        assert codes_of(run.check(NVFP4_MODELOPT, other, (2, 32), {})) == ["scheme.scale_not_finite"]

    def test_the_code_of_negative_zero_is_what_the_tool_reads(self):
        packed, scale = np.full((1, 8), 0x88, np.uint8), np.full((1, 1), 0x38, np.uint8)
        one = np.ones(1, np.float32)
        ct = {"weight_packed": packed, "weight_scale": scale, "weight_global_scale": one}
        modelopt = {"weight": packed, "weight_scale": scale, "weight_scale_2": one}
        assert np.signbit(run.decode(NVFP4_CT, ct, (1, 16), {})).all()
        assert not np.signbit(run.decode(NVFP4_MODELOPT, modelopt, (1, 16), {})).any()


class TestFp6Llm:
    def test_encoding_is_nearest_to_the_stored_scale(self):
        values = normal((64, 128))
        values[3] = 0
        parts = run.encode(FP6_LLM, values, {})
        assert run.check(FP6_LLM, parts, (64, 128), {}) == []
        decoded = run.decode(FP6_LLM, parts, (64, 128), {})
        scale = parts["scales"].astype(np.float32)[:, None]
        table = np.sort(small_floats.decode(small_floats.E3M2, np.arange(64)))
        nearest = np.abs((values / np.where(scale == 0, 1, scale))[..., None] - table).min(-1) * scale
        np.testing.assert_allclose(np.abs(decoded - values), nearest, atol=1e-6)
        assert not decoded[3].any()

    def test_scales_beyond_binary16_are_refused(self):
        with pytest.raises(CannotEncode, match="binary16"):
            run.encode(FP6_LLM, np.full((64, 64), 3e6, np.float32), {})

    @pytest.mark.parametrize("shape", [(64,), (64, 32), (63, 64)])
    def test_other_shapes_are_refused(self, shape):
        with pytest.raises(SchemeRefused, match="whole runs"):
            run.encode(FP6_LLM, np.zeros(shape, np.float32), {})

    def test_bytes_that_fill_no_rows_imply_no_shape(self):
        parts = {"prepacked": np.zeros(100, np.uint8), "scales": np.zeros(64, np.float16)}
        with pytest.raises(SchemeRefused):
            run.implied_shape(FP6_LLM, parts, {})


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.name)
def test_complete_parameters_are_complete(form):
    params = run.complete(form, {})
    assert run.complete(form, params) == params


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.name)
@pytest.mark.parametrize("bad", [np.nan, -np.inf])
def test_values_that_are_not_finite_are_not_encoded(form, bad):
    values = np.zeros((64, 64), np.float32)
    values[2, 5] = bad
    with pytest.raises(CannotEncode, match=r"1 are NaN or infinite, the first at \[2, 5\]"):
        run.encode(form, values, {})


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.name)
def test_any_words_decode_and_are_judged(form):
    rng = np.random.default_rng(9)
    parts = {}
    for name, counts in form.stored((64, 64), run.complete(form, {})).items():
        (part,) = (part for part in form.parts if part.name == name)
        dtype = np.dtype(
            part.dtypes[0] if part.dtypes[0].startswith(("uint", "float16", "float32")) else "uint8"
        )
        count = int(np.prod(counts)) * dtype.itemsize
        parts[name] = rng.integers(0, 256, count, np.uint8).view(dtype).reshape(counts)
    assert run.decode(form, parts, (64, 64), {}).shape == (64, 64)
    for finding in run.check(form, parts, (64, 64), {}):
        assert finding.count >= 1
        assert finding.where["part"] in parts
