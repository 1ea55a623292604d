"""Reconstruction kernels: exhaustive where the words allow it, against the oracle and exact binary64 products."""

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ninfer_core import reconstruct as oracle
from ninfer_core.formats import GROUPED, Q4G64_F16S, Q5G64_F16S, Q6G64_F16S, W8G32_F16S
from ninfer_core.kernels import cpu, scalar
from ninfer_core.layouts.row_split import groups_per_row, unpack
from ninfer_core.words import E4M3FN, narrow_bf16, value
from tests import strategies
from tests.kernels import oracles

formats = pytest.mark.parametrize("fmt", GROUPED, ids=lambda f: f.name)


def grouped(fmt, columns, planes):
    rows = planes.scales.size // groups_per_row(fmt, columns)
    wide, narrow = np.empty((rows, columns), np.uint32), np.empty((rows, columns), np.uint16)
    cpu.reconstruct_grouped(fmt, columns, planes, wide)
    cpu.reconstruct_grouped(fmt, columns, planes, narrow)
    assert np.array_equal(narrow, narrow_bf16(wide))
    return wide


@pytest.mark.parametrize("fmt", [Q4G64_F16S, Q5G64_F16S, Q6G64_F16S, W8G32_F16S], ids=lambda f: f.name)
def test_every_code_under_every_scale(fmt):
    """Groups that hold every code, one after another, under each of the 31,744 legal scale words."""
    codes = np.resize(np.arange(fmt.qmin, fmt.qmax + 1), -(-len(fmt.codes) // 128) * 128).astype(np.int8)
    scales = np.repeat(np.arange(0x7C00, dtype=np.uint16), codes.size // fmt.group)
    every = np.tile(codes, 0x7C00)
    planes = strategies.pack(fmt, every.reshape(-1, fmt.group), scales)
    got = grouped(fmt, codes.size, planes)
    exact = scales.view(np.float16).astype(np.float64).repeat(fmt.group) * every
    expected = exact.astype(np.float32)
    assert (expected == exact).all()
    assert np.array_equal(got.reshape(-1), expected.view(np.uint32))
    for i in np.random.default_rng(5).integers(0, every.size, 2_000).tolist():
        word = oracle.reconstruct_grouped(int(every[i]), int(scales[i // fmt.group]))
        assert int(got.reshape(-1)[i]) == word


@formats
@settings(max_examples=20, deadline=None)
@given(data=st.data())
def test_grouped_equals_oracle_on_any_shape(fmt, data):
    rows, columns = data.draw(st.integers(1, 3)), data.draw(strategies.WIDTHS)
    planes = data.draw(strategies.planes(fmt, rows, columns))
    got = grouped(fmt, columns, planes)
    for group in oracles.groups(fmt, columns, planes):
        for lane in range(group.logical):
            word = int(got[group.row, group.index * fmt.group + lane])
            assert word == oracle.reconstruct_grouped(group.codes[lane], group.scale)


@formats
@settings(max_examples=10, deadline=None)
@given(data=st.data())
def test_unpack_gives_every_physical_lane(fmt, data):
    columns = data.draw(strategies.WIDTHS)
    planes = data.draw(strategies.planes(fmt, 2, columns))
    words = unpack(fmt, columns, planes.base, planes.high, planes.scales)
    expected = [code for group in oracles.groups(fmt, columns, planes) for code in group.codes]
    assert np.array_equal(words.codes.reshape(-1), expected)


FINITE_CODES = np.array([c for c in range(256) if value(E4M3FN, c) is not None], np.uint8)


def test_every_fp8_code_under_many_row_scales():
    near = (scalar_limit := 0x0500) + np.arange(-4, 5)
    spread = np.arange(0x80, 0x7F80, 61)
    scales = np.unique(np.concatenate([np.arange(0x80), near, spread, [0x7F7F, 0x7F00]])).astype(np.uint16)
    assert scalar_limit in scales
    codes = np.tile(FINITE_CODES, (scales.size, 1))
    wide, narrow = np.empty(codes.shape, np.uint32), np.empty(codes.shape, np.uint16)
    cpu.reconstruct_row(codes, scales, wide)
    cpu.reconstruct_row(codes, scales, narrow)
    assert np.array_equal(narrow, narrow_bf16(wide))
    exact = (
        codes.view(ml_dtypes.float8_e4m3fn).astype(np.float64)
        * scales.view(ml_dtypes.bfloat16).astype(np.float64)[:, None]
    )
    with np.errstate(over="ignore", under="ignore"):
        assert np.array_equal(wide, exact.astype(np.float32).view(np.uint32))
    for row in range(0, scales.size, 7):
        scale = int(scales[row])
        for column in range(0, FINITE_CODES.size, 5):
            code = int(codes[row, column])
            word = oracle.reconstruct_row(code, scale)
            assert int(wide[row, column]) == word == scalar.product_of_row(code, scale)


def test_fp8_nan_codes_and_long_rows():
    codes = np.full((2, 5_000), 0xFF, np.uint8)
    codes[:, 4_999] = 0x7F
    out = np.empty(codes.shape, np.uint32)
    cpu.reconstruct_row(codes, np.array([0x3F80, 0x0001], np.uint16), out)
    assert (out[:, :4_999] == 0xFFC00000).all()
    assert (out[:, 4_999] == 0x7FC00000).all()
    narrow = np.empty(codes.shape, np.uint16)
    cpu.reconstruct_row(codes, np.array([0x3F80, 0x0001], np.uint16), narrow)
    assert np.array_equal(narrow, narrow_bf16(out))


@pytest.mark.parametrize(
    "divisor", [0x00000001, 0x7F7FFFFF, 0x007FFFFF, 0x00800000, 0x3F800000, 0x40400000, 0x4B1C77A3]
)
def test_every_nvfp4_code_under_every_scale(divisor):
    scales = np.arange(0x7F, dtype=np.uint8)
    codes = np.tile(np.arange(16, dtype=np.uint8), scales.size)
    packed = (codes[0::2] | codes[1::2] << 4).reshape(1, -1)
    wide, narrow = np.empty((1, codes.size), np.uint32), np.empty((1, codes.size), np.uint16)
    cpu.reconstruct_nvfp4(packed, scales.reshape(1, -1), divisor, wide)
    cpu.reconstruct_nvfp4(packed, scales.reshape(1, -1), divisor, narrow)
    expected = [oracle.reconstruct_nvfp4(code, scale, divisor) for scale in range(0x7F) for code in range(16)]
    assert np.array_equal(wide.reshape(-1), expected)
    assert np.array_equal(narrow, narrow_bf16(wide))


def test_wrong_outputs_and_divisors_are_refused():
    with pytest.raises(ValueError, match="output"):
        cpu.reconstruct_row(np.zeros((1, 4), np.uint8), np.zeros(1, np.uint16), np.empty((1, 5), np.uint32))
    with pytest.raises(ValueError, match="binary32 or BF16"):
        cpu.reconstruct_row(np.zeros((1, 4), np.uint8), np.zeros(1, np.uint16), np.empty((1, 4), np.float32))
    codes, scales = np.zeros((1, 8), np.uint8), np.zeros((1, 1), np.uint8)
    with pytest.raises(ValueError, match="divisor"):
        cpu.reconstruct_nvfp4(codes, scales, 0, np.empty((1, 16), np.uint32))
    with pytest.raises(ValueError, match="do not go"):
        cpu.reconstruct_nvfp4(codes, np.zeros((1, 2), np.uint8), 1, np.empty((1, 16), np.uint32))
