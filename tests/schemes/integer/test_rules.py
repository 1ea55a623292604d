"""What is refused or found: words at fault with place and count, numbers that nothing backs, parts that do not belong."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from ninfer_core.findings import Finding
from ninfer_core.schemes import run
from ninfer_core.schemes.run import SchemeRefused
from tests.schemes.integer.vectors import BY_NAME, Case, cases

Parts = dict[str, NDArray[Any]]


def of(name: str) -> tuple[Case, Parts]:
    """A reference case, and parts of it that may be changed."""
    case = next(case for case in cases() if case.name == name)
    return case, {part: array.copy() for part, array in case.parts.items()}


def found(case: Case, parts: Parts, **params: Any) -> list[Finding]:
    """What `check` says of the parts."""
    return run.check(case.form, parts, case.expected.shape, {**case.params, **params})


def single(findings: list[Finding], slug: str) -> Finding:
    """The only finding, which has this code."""
    (finding,) = findings
    assert finding.code == f"scheme.{slug}"
    return finding


SCALES = [
    ("gptq-b4_g32", "scales"),
    ("awq-gemm_64x32_g32", "scales"),
    ("hqq-b4_g64_axis1", "scale"),
    ("ct_pack_quantized-asym_b4", "weight_scale"),
    ("matmulnbits-b4_K96_N8_bs32_u8", "scales"),
    ("linear_onnx-int4_block32", "scale"),
    ("bnb_nf4-plain_8x64_b64", "absmax"),
    ("bnb_fp4-double_quant", "nested_absmax"),
]


@pytest.mark.parametrize(("name", "part"), SCALES)
def test_scales_that_are_no_numbers(name: str, part: str) -> None:
    case, parts = of(name)
    flat = parts[part].reshape(-1)
    flat[0], flat[-1] = np.inf, np.nan
    finding = single(found(case, parts), "scale_not_finite")
    assert finding.count == 2
    assert not np.any(finding.where["index"])
    assert finding.found == "inf"
    run.decode(case.form, parts, case.expected.shape, case.params)


def test_groups_without_a_scale() -> None:
    case, parts = of("gptq-b4_g64_act")
    parts["g_idx"][5], parts["g_idx"][9] = 2, -1
    finding = single(found(case, parts), "group_out_of_range")
    assert (finding.where, finding.count) == ({"part": "g_idx", "index": 5, "word": 2, "limit": 2}, 2)
    for plain in (True, False):
        with pytest.raises(SchemeRefused, match="without a scale"):
            run.decode(case.form, parts, case.expected.shape, case.params, plain=plain)


def test_zero_points_wrapped_around() -> None:
    case, parts = of("gptq-b4_g32")
    parts["qzeros"][1, 0] |= 0xF0
    finding = single(found(case, parts), "zero_point_wraps")
    assert finding.where == {"part": "qzeros", "index": [1, 1], "word": 15, "zero": 0}
    values = run.decode(case.form, parts, case.expected.shape, case.params)
    assert (values[32:64, 1] >= 0).all()  # zero point 0: no weight is negative
    assert (case.expected[32:64, 1] < 0).any()


def test_zero_points_that_the_type_does_not_have() -> None:
    case, parts = of("linear_onnx-uint4_block128_asym")
    parts["zero_point"][2, 1] = 16
    finding = single(found(case, parts), "zero_point_out_of_range")
    assert finding.where == {"part": "zero_point", "index": [2, 1], "word": 16}
    with pytest.raises(SchemeRefused, match="uint4"):
        run.decode(case.form, parts, case.expected.shape, case.params)
    parts["zero_point"][2, 1] = -(2**63)
    assert single(found(case, parts), "zero_point_out_of_range").found == str(-(2**63))
    case, parts = of("matmulnbits-b4_K64_N8_bs16_float")
    parts["zero_points"][3, 2] = -0.5
    assert single(found(case, parts), "zero_point_out_of_range").where["index"] == [3, 2]
    parts["zero_points"][3, 2] = np.nan
    assert single(found(case, parts), "value_not_finite").where["part"] == "zero_points"


def test_bits_that_hold_no_code() -> None:
    case, parts = of("linear_onnx-uint4_odd_count")
    parts["payload"][-1] |= 0x10
    assert single(found(case, parts), "padding_nonzero").where == {"part": "payload", "stream": [], "byte": 7}
    case, parts = of("hqq-b3_g64_axis0")
    parts["W_q"][0, 3] |= np.int32(1 << 30)
    assert single(found(case, parts), "padding_nonzero").where["index"] == [0, 3]
    parts["W_q"][0, 3] &= np.int32((1 << 30) - 1)
    parts["W_q"][2, 1] |= 1  # row 2 of slab 9 would be the 66th of 64
    assert single(found(case, parts), "padding_nonzero").where["index"] == [2, 1]
    case, parts = of("matmulnbits-b4_K96_N8_bs32_u8")
    parts["zero_points"][4, 1] |= 0x20
    assert single(found(case, parts), "padding_nonzero").where["stream"] == [4]
    values = np.ones((3, 1), np.float32)
    for name in ("bnb_nf4", "bnb_fp4"):
        parts = run.encode(BY_NAME[name], values, {})
        parts["payload"][-1] ^= 0x0F
        assert single(run.check(BY_NAME[name], parts, (3, 1), {}), "padding_nonzero").where["byte"] == 1


def test_tables_and_nested_scales() -> None:
    case, parts = of("bnb_nf4-double_quant")
    parts["code"][3] = np.float32(-0.3949)
    assert single(found(case, parts), "table_differs").where["index"] == 3
    values = run.decode(case.form, parts, case.expected.shape, case.params)
    assert not np.array_equal(values, case.expected)  # the file's table is followed
    case, parts = of("bnb_nf4-double_quant")
    parts["nested_code"][:] = 3e38
    parts["nested_absmax"][:] = 3e38
    assert single(found(case, parts), "scale_not_finite").where["part"] == "absmax_u8"
    del parts["offset"]
    assert single(found(case, parts), "part_missing").where == {"part": "offset"}
    parts["absmax"] = np.ones(512, np.float32)
    assert [one.code for one in found(case, parts)] == ["scheme.part_unknown"] * 3
    with pytest.raises(SchemeRefused, match="belongs to nested scales"):
        run.decode(case.form, parts, case.expected.shape, case.params)
    for name in ("absmax", "absmax_u8", "nested_absmax", "nested_code"):
        del parts[name]
    assert single(found(case, parts), "part_missing").where == {"part": "absmax"}
    case, parts = of("bnb_nf4-plain_3x50_b64")
    parts["absmax"][2] *= -1
    finding = single(found(case, parts), "scale_sign_ignored")
    assert (finding.severity, finding.where["index"]) == ("advisory", 2)


def test_a_shape_stated_twice() -> None:
    case, parts = of("ct_pack_quantized-sym_b4")
    parts["weight_shape"] = np.array([8, 96], np.int64)
    assert found(case, parts) == []
    parts["weight_shape"] = np.array([8, 95], np.int64)
    assert single(found(case, parts), "redundant_differs").where == {"part": "weight_shape"}


def test_types_that_a_parameter_decides() -> None:
    case, parts = of("hqq-b3_g64_axis1")
    parts["W_q"] = parts["W_q"].astype(np.uint8)
    assert single(found(case, parts), "part_dtype").expected == "int32"
    case, parts = of("matmulnbits-b4_K128_N24_bs32_u8")
    parts["zero_points"] = parts["zero_points"].astype(np.float32)
    assert "scheme.part_dtype" in [one.code for one in found(case, parts)]
    for plain in (True, False):
        with pytest.raises(SchemeRefused, match="zero_points holds float32"):
            run.decode(case.form, parts, case.expected.shape, case.params, plain=plain)


REFUSED = [
    ("gptq", (100, 64), {}, "shape"),
    ("gptq", (128,), {}, "shape"),
    ("gptq", (128, 64), {"group_size": 0}, "parameter"),
    ("gptq", (128, 64), {"group_size": -2}, "parameter"),
    ("gptq", (128, 64), {"bits": 5}, "parameter"),
    ("awq", (128, 12), {}, "shape"),
    ("awq", (100, 16), {"group_size": 32}, "shape"),
    ("awq_gemv", (16, 100), {"group_size": 32}, "shape"),
    ("awq_gemv", (16, 20), {"group_size": 20}, "shape"),
    ("hqq", (3, 3), {"group_size": 2}, "shape"),
    ("hqq", (3, 3), {"group_size": 3}, "shape"),
    ("hqq", (3, 3), {"group_size": 0}, "parameter"),
    ("hqq", (0, 8), {"group_size": 10**15}, "shape"),
    ("hqq", (), {"group_size": -1}, "parameter"),
    ("bnb_nf4", (4, 4), {"block_size": 0}, "parameter"),
    ("bnb_fp4", (4, 4), {"nested_block_size": -1}, "parameter"),
    ("ct_pack_quantized", (4,), {}, "shape"),
    ("ct_pack_quantized", (4, 4), {"bits": 9}, "parameter"),
    ("matmulnbits", (4, 4), {"block_size": 0}, "parameter"),
    ("matmulnbits", (4, 4), {"bits": 2, "block_size": 6}, "parameter"),
    ("linear_onnx", (4, 4), {}, "parameter"),
    ("linear_onnx", (4, 4), {"type": "int3"}, "parameter"),
    ("linear_onnx", (4, 4), {"type": "int8", "axis": 2}, "parameter"),
    ("linear_onnx", (4, 4), {"type": "int8", "block_size": 2}, "parameter"),
    ("linear_onnx", (4, 4), {"type": "int8", "axis": 0, "block_size": -1}, "parameter"),
]


@pytest.mark.parametrize(("name", "shape", "params", "slug"), REFUSED)
def test_shapes_and_parameters(name: str, shape: tuple[int, ...], params: dict[str, Any], slug: str) -> None:
    form = BY_NAME[name]
    with pytest.raises(SchemeRefused) as refused:
        run.decode(form, {}, shape, params)
    assert [one.code for one in refused.value.findings] == [f"scheme.{slug}"]
    assert [one.code for one in run.check(form, {}, shape, params)] == [f"scheme.{slug}"]


def test_numbers_that_no_byte_backs() -> None:
    huge = 2**35
    parts: Parts = {
        "qweight": np.zeros((huge // 8, 0), np.int32),
        "qzeros": np.zeros((huge // 8, 0), np.int32),
        "scales": np.zeros((huge // 8, 0), np.float16),
    }
    for plain in (True, False):
        values = run.decode(BY_NAME["gptq"], parts, (huge, 0), {"group_size": 8}, plain=plain)
        assert values.shape == (huge, 0)
    assert run.check(BY_NAME["gptq"], parts, (huge, 0), {"group_size": 8}) == []
    scale: Parts = {"payload": np.zeros(2, np.uint8), "scale": np.ones((2, 1), np.float32)}
    request = {"type": "int4", "axis": 1, "block_size": 10**18}
    assert not run.decode(BY_NAME["linear_onnx"], scale, (2, 2), request).any()


def test_words_beside_one_scale_or_a_column_of_them() -> None:
    case, parts = of("linear_onnx-uint8_asym_per_channel")
    parts = {**parts, "scale": parts["scale"][:, None], "zero_point": parts["zero_point"].astype(np.uint8)}
    decoded = run.decode(case.form, parts, case.expected.shape, case.params)
    assert np.array_equal(decoded.view(np.uint32), case.expected.view(np.uint32))
    one: Parts = {"payload": np.array([0xFE], np.uint8), "scale": np.array(2.0, np.float32)}
    assert run.decode(case.form, one, (), {"type": "int8"}) == -4
    case, parts = of("matmulnbits-b4_K128_N24_bs32_u8")
    parts = {**parts, **{name: parts[name].reshape(-1) for name in ("scales", "zero_points")}}
    decoded = run.decode(case.form, parts, case.expected.shape, {**case.params, "flat": True})
    assert np.array_equal(decoded, case.expected)
