"""Encoders: what they promise of each value, the payloads of the tools where a rule fixes them, and what they refuse."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from ninfer_core.schemes import run
from ninfer_core.schemes.integer.tables import FP4_TABLE, NF4_TABLE
from ninfer_core.schemes.run import CannotEncode, SchemeRefused
from tests.schemes.integer.vectors import BY_NAME, Case, cases

Floats = NDArray[np.float32]
Parts = dict[str, NDArray[Any]]
GRIDS = [
    ("gptq", {"bits": 4, "group_size": 16}, (0, 16)),
    ("gptq", {"bits": 3, "group_size": 24}, (0, 24)),
    ("gptq_v2", {"bits": 2, "group_size": -1, "symmetric": False}, (0, -1)),
    ("gptq_v2", {"bits": 8, "group_size": 32, "symmetric": False}, (0, 32)),
    ("awq", {"group_size": 32, "symmetric": False}, (0, 32)),
    ("awq_gemv", {"group_size": 32}, (1, 32)),
    ("awq_gemv", {"group_size": -1, "symmetric": False}, (1, -1)),
    ("ct_pack_quantized", {"bits": 1, "group_size": 32}, (1, 32)),
    ("ct_pack_quantized", {"bits": 5, "group_size": 16}, (1, 16)),
    ("ct_pack_quantized", {"bits": 6, "group_size": -1, "symmetric": False}, (1, -1)),
    ("matmulnbits", {"bits": 4, "block_size": 20}, (1, 20)),
    ("matmulnbits", {"bits": 2, "block_size": 16, "symmetric": False}, (1, 16)),
    ("matmulnbits", {"bits": 8, "block_size": 128, "symmetric": False, "zero_points": "float", "flat": True}, (1, 128)),
    ("linear_onnx", {"type": "int8"}, (None, 0)),
    ("linear_onnx", {"type": "int4", "axis": -1, "block_size": 20}, (1, 20)),
    ("linear_onnx", {"type": "uint4", "axis": 0, "block_size": 10**15}, (0, -1)),
    ("linear_onnx", {"type": "uint2", "axis": 1}, (0, -1)),
    ("linear_onnx", {"type": "int2", "axis": 0}, (1, -1)),
    ("hqq", {"bits": 4, "group_size": 32, "axis": 1}, (1, 32)),
    ("hqq", {"bits": 3, "group_size": -1, "axis": 1}, (1, -1)),
    ("hqq", {"bits": 3, "group_size": 64, "axis": 0}, (0, -1)),
    ("hqq", {"bits": 1, "group_size": 64, "axis": 0}, (0, -1)),
    ("hqq", {"bits": 8, "group_size": 16, "axis": 1}, (1, 16)),
]  # fmt: skip


def spans(values: Floats, groups: tuple[int | None, int]) -> Floats:
    """For each value the span, zero included, of the group it lies in, along an axis; None is the whole tensor."""
    axis, size = groups
    if axis is None:
        low, high = min(values.min(), 0), max(values.max(), 0)
        return np.full(values.shape, high - low, np.float32)
    moved = np.moveaxis(values, axis, -1)
    size = moved.shape[-1] if size == -1 else size
    result = np.empty(moved.shape, np.float32)
    for start in range(0, moved.shape[-1], size):
        group = moved[..., start : start + size]
        span = np.maximum(group.max(-1), 0) - np.minimum(group.min(-1), 0)
        result[..., start : start + size] = span[..., None]
    return np.moveaxis(result, -1, axis)


@pytest.mark.parametrize(("name", "params", "groups"), GRIDS)
@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 2**32), exponent=st.integers(-6, 6), shift=st.sampled_from((0.0, 2.0, -30.0)))
def test_values_lie_within_a_step(
    name: str, params: dict[str, Any], groups: tuple[int | None, int], seed: int, exponent: int, shift: float
) -> None:
    form = BY_NAME[name]
    rng = np.random.default_rng(seed)
    values = (rng.normal(shift, 1, (96, 64)) * 2.0**exponent).astype(np.float32)
    values[:, ::7] *= rng.random() < 0.5
    if name == "hqq" and params["axis"] == 0:
        groups = (None, 0)  # its groups cross the rows
    parts = run.encode(form, values, params)
    assert run.check(form, parts, values.shape, params) == []
    decoded = run.decode(form, parts, values.shape, params)
    bits = params.get("bits", 4)
    if name == "linear_onnx":
        bits = int(params["type"].lstrip("uint"))
    symmetric = params.get("symmetric", not params.get("type", "int").startswith("u")) and name != "hqq"
    span = spans(values, groups)
    if symmetric:
        span = 2 * spans(np.abs(values), groups)
    step = span / (2**bits - 1)
    # Half a step by rounding, half by a rounded zero point, and the rounding of the scale to float16 (HQQ's zero too).
    far = np.abs(decoded - values) - step * (0.5 if symmetric else 1.0) - span * 2.0**-9 - 2.0**-24 * 2**bits
    if name == "hqq":
        far -= np.abs(values).max() * 2.0**-9
    assert far.max() <= 0


@pytest.mark.parametrize(
    "case", [case for case in cases() if case.source is not None], ids=lambda case: case.name
)
def test_tables_are_encoded_as_by_the_tool(case: Case) -> None:
    assert case.source is not None
    parts = run.encode(case.form, case.source, case.params)
    for name, array in parts.items():
        assert array.dtype == case.parts[name].dtype
        assert np.array_equal(array, case.parts[name]), name


@pytest.mark.parametrize(("name", "table"), [("bnb_nf4", NF4_TABLE), ("bnb_fp4", FP4_TABLE)])
@pytest.mark.parametrize("order", ["high", "low"])
def test_the_nearest_level(name: str, table: Floats, order: str) -> None:
    form, params = BY_NAME[name], {"block_size": 50, "first_nibble": order}
    values = np.random.default_rng(3).normal(0, 1, (7, 29)).astype(np.float32)
    values[2] = 0
    parts = run.encode(form, values, params)
    assert run.check(form, parts, values.shape, params) == []
    decoded = run.decode(form, parts, values.shape, params)
    scales = np.repeat(parts["absmax"], 50)[: values.size].reshape(values.shape)
    nearest = np.abs(values[..., None] - table.astype(np.float64) * scales[..., None]).min(-1)
    assert np.allclose(np.abs(decoded.astype(np.float64) - values), nearest, rtol=0, atol=1e-7 * scales.max())
    assert (decoded[2].view(np.uint32) == 0).all()  # no code of minus zero


def test_published_bytes() -> None:
    values = np.linspace(-0.5, 0.5, 64, dtype=np.float32)
    parts = run.encode(BY_NAME["bnb_nf4"], values, {})
    assert (
        parts["payload"].tobytes().hex() == "00000111111112222233344445556667788899aaabbbccccddddeeeeeeefffff"
    )
    decoded = run.decode(BY_NAME["bnb_nf4"], parts, (64,), {})
    assert (decoded[:5] == -0.5).all()
    assert decoded[5] == np.float32(-0.3480964)
    signed: Parts = {
        "payload": np.frombuffer(bytes.fromhex("f817"), np.uint8),
        "scale": np.array(0.5, np.float32),
    }
    assert run.decode(BY_NAME["linear_onnx"], signed, (4,), {"type": "int4"}).tolist() == [-4, -0.5, 3.5, 0.5]


def test_slabs_as_published() -> None:
    hqq = BY_NAME["hqq"]
    ones = np.ones((4, 1), np.float32)
    parts: Parts = {"W_q": np.array([[25, 59], [93, 127]], np.uint8), "scale": ones, "zero": ones * 0}
    decoded = run.decode(hqq, parts, (4, 2), {"bits": 4, "group_size": 2})
    assert decoded.tolist() == [[1, 3], [5, 7], [9, 11], [13, 15]]
    column = np.array([0, 1, 2, 3, 3, 2, 1, 0], np.float32).reshape(1, 8)
    parts = run.encode(hqq, column, {"bits": 2, "group_size": 8, "axis": 0})
    assert parts["W_q"].tolist() == [[45], [120]]
    table = column.reshape(4, 2) * np.float32([1, 4])  # a scale for each column of the tensor itself
    parts = run.encode(hqq, table, {"bits": 2, "group_size": -1, "axis": 0})
    assert [parts[name].shape for name in ("scale", "W_q")] == [(1, 2), (1, 2)]
    assert run.decode(hqq, parts, (4, 2), {"bits": 2, "group_size": -1, "axis": 0})[:, 1].max() == 12


def test_a_word_of_interleaved_columns() -> None:
    values = np.arange(8, dtype=np.float32).reshape(1, 8)
    parts: Parts = {
        "qweight": np.array([[0x75316420]], np.int32),
        "qzeros": np.zeros((1, 1), np.int32),
        "scales": np.ones((1, 8), np.float16),
    }
    assert np.array_equal(run.decode(BY_NAME["awq"], parts, (1, 8), {"group_size": 1}), values)


def test_gemv_as_its_tool_packs() -> None:
    # Row 0 of autoawq 0.2.9 WQLinear_GEMV.from_linear: codes 15, 4, 7, 8, ..., zero points 1 and 13.
    packed = bytes.fromhex("4f87c8a63a008e379304c96153a8e6388cef452f5033be63f38058c0fb8f7ca0")
    parts: Parts = {
        "qweight": np.frombuffer(packed, np.int32).reshape(1, 8),
        "qzeros": np.array([[0xD1, 0, 0, 0]], np.int32),
        "scales": np.zeros((1, 32), np.float16),
    }
    parts["scales"][0, :2] = (2.0**-7, 0.046875)
    codes = [nibble for byte in packed for nibble in (byte & 15, byte >> 4)]
    expected = [(c - 1) * 2.0**-7 for c in codes[:32]] + [(c - 13) * 0.046875 for c in codes[32:]]
    assert run.decode(BY_NAME["awq_gemv"], parts, (1, 64), {"group_size": 32})[0].tolist() == expected
    assert codes[:8] == [15, 4, 7, 8, 8, 12, 6, 10]
    assert run.check(BY_NAME["awq_gemv"], parts, (1, 64), {"group_size": 32, "symmetric": False}) == []
    parts["scales"][0, [1, 9]] = np.nan  # of the second group, and behind the last one
    found = run.check(BY_NAME["awq_gemv"], parts, (1, 64), {"group_size": 32, "symmetric": False})
    assert [(one.code, one.count, one.where["index"]) for one in found] == [
        ("scheme.scale_not_finite", 1, [0, 1]),
        ("scheme.padding_nonzero", 1, [0, 9]),
    ]


@pytest.mark.parametrize("name", sorted(BY_NAME))
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_no_place_for_what_is_no_number(name: str, value: float) -> None:
    values = np.full((128, 128), value, np.float32)
    with pytest.raises(CannotEncode):
        run.encode(BY_NAME[name], values, {"type": "int8"} if name == "linear_onnx" else {})


def test_zero_points_that_v1_cannot_hold() -> None:
    values = np.random.default_rng(0).random((32, 32), np.float32)
    params = {"bits": 4, "group_size": 32, "symmetric": False}
    with pytest.raises(SchemeRefused) as refused:
        run.encode(BY_NAME["gptq"], values, params)
    assert [one.code for one in refused.value.findings] == ["scheme.zero_point_unrepresentable"]
    parts = run.encode(BY_NAME["gptq_v2"], values, params)
    assert not parts["qzeros"].any()


def test_scales_that_their_type_cannot_hold() -> None:
    form, params = BY_NAME["awq"], {"group_size": 8}
    with pytest.raises(CannotEncode, match="too large for float16"):
        run.encode(form, np.full((8, 8), 1e30, np.float32), params)
    tiny = np.full((8, 8), 1e-30, np.float32)
    parts = run.encode(form, tiny, params)
    assert (parts["scales"] == np.float16(2.0**-24)).all()  # the smallest one, where none would be left
    assert (run.decode(form, parts, (8, 8), params) == 0).all()
    with pytest.raises(CannotEncode, match="too large for float16"):
        run.encode(BY_NAME["hqq"], np.linspace(60000, 60001, 128, dtype=np.float32).reshape(2, 64), {})
    with pytest.raises(CannotEncode, match="whole groups"):
        run.encode(BY_NAME["ct_pack_quantized"], np.zeros((2, 48), np.float32), {"group_size": 32})
    with pytest.raises(SchemeRefused, match="about as many"):
        run.encode(BY_NAME["matmulnbits"], np.zeros((2, 48), np.float32), {"block_size": 1 << 40})


@pytest.mark.parametrize("shape", [(0, 0), (0, 64), (64, 0)])
def test_blocks_of_nothing_are_stored_and_read(shape: tuple[int, int]) -> None:
    form, params = BY_NAME["linear_onnx"], {"type": "uint4", "axis": 1, "block_size": 16}
    parts = run.encode(form, np.zeros(shape, np.float32), params)
    assert run.decode(form, parts, shape, params).shape == shape
