"""Scans against a lane-by-lane oracle, on valid planes, on mutated ones and on each single defect."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ninfer_core.formats import GROUPED, Q4G64_F16S, Q5G64_F16S, W8G32_F16S
from ninfer_core.kernels import cpu
from ninfer_core.kernels.values import GroupedPlanes
from ninfer_core.layouts.row_split import groups_per_row
from tests import strategies
from tests.kernels import oracles

formats = pytest.mark.parametrize("fmt", GROUPED, ids=lambda f: f.name)


@formats
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_grouped_scan_equals_oracle_under_mutation(fmt, data):
    rows, columns = data.draw(st.integers(1, 3)), data.draw(strategies.WIDTHS)
    planes = data.draw(strategies.planes(fmt, rows, columns))
    assert cpu.scan_grouped(fmt, columns, planes) == 0
    for _ in range(data.draw(st.integers(0, 3))):
        plane = data.draw(st.sampled_from([p for p in (planes.base, planes.high, planes.scales) if p.size]))
        place = data.draw(st.integers(0, plane.size - 1))
        kind = data.draw(st.sampled_from(["flip", "zero", "scale", "min"]))
        if kind == "flip":
            plane[place] ^= plane.dtype.type(1 << data.draw(st.integers(0, plane.itemsize * 8 - 1)))
        elif kind == "zero":
            plane[place] = 0
        elif kind == "scale":
            planes.scales[place % planes.scales.size] = data.draw(
                st.sampled_from([0x7C00, 0x8000, 0x7BFF, 0xFFFF, 0])
            )
        else:
            planes.base[place % planes.base.size] = 0x80
    assert cpu.scan_grouped(fmt, columns, planes) == oracles.scan(fmt, columns, planes)


def large(fmt, columns=2048, rows=20):
    groups = rows * groups_per_row(fmt, columns)
    codes = np.ones((groups, fmt.group), np.int8)
    return strategies.pack(fmt, codes, np.full(groups, 0x3C00, np.uint16))


@formats
def test_each_defect_sets_its_own_bit(fmt):
    planes = large(fmt)
    assert cpu.scan_grouped(fmt, 2048, planes) == 0
    planes.scales[333] = 0x7C00
    assert cpu.scan_grouped(fmt, 2048, planes) == 1
    planes.scales[333] = 0
    assert cpu.scan_grouped(fmt, 2048, planes) == 2
    planes.base[333 * 32 : 334 * 32] = 0
    planes.high[:] = 0
    assert cpu.scan_grouped(fmt, 2048, planes) == 0
    planes.base[333 * 32 + 31] = 0x80
    assert cpu.scan_grouped(fmt, 2048, planes) == (6 if fmt is W8G32_F16S else 2)
    if planes.high.size:
        planes.base[333 * 32 + 31] = 0
        planes.high[334 * (planes.high.size // planes.scales.size) - 1] = 0x80
        assert cpu.scan_grouped(fmt, 2048, planes) == 2


@formats
def test_every_scale_zero(fmt):
    planes = large(fmt)
    planes.scales[:] = 0
    assert cpu.scan_grouped(fmt, 2048, planes) == 2
    planes.base[:] = 0
    planes.high[:] = 0
    assert cpu.scan_grouped(fmt, 2048, planes) == 0


def test_padding_is_judged_by_its_own_bit_only():
    fmt, columns = W8G32_F16S, 40  # group 1 partial, groups 2 and 3 physical only
    planes = GroupedPlanes(np.zeros(128, np.uint8), np.empty(0, np.uint8), np.array([1, 1, 0, 0], np.uint16))
    for lane, wanted in ((39, 4), (40, 8), (64, 8), (127, 8)):
        planes.base[lane] = 0x80
        assert cpu.scan_grouped(fmt, columns, planes) == wanted
        planes.base[lane] = 0
    planes.scales[2] = 0xFFFF
    assert cpu.scan_grouped(fmt, columns, planes) == 8
    planes.scales[2], planes.scales[1] = 0, 0
    planes.base[50] = 1  # a padding lane under a zero scale
    assert cpu.scan_grouped(fmt, columns, planes) == 8


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_row_scan_equals_oracle(data):
    rows, columns = data.draw(st.integers(1, 4)), data.draw(strategies.WIDTHS)
    seed = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    codes = (seed.integers(0, 0x7F, (rows, columns)) | seed.integers(0, 2, (rows, columns)) << 7).astype(
        np.uint8
    )
    scales = seed.integers(0, 0x7F80, rows).astype(np.uint16)
    zero = data.draw(st.integers(0, rows - 1))
    scales[zero] = 0
    if data.draw(st.booleans()):
        codes[zero] &= 0x80
    if data.draw(st.booleans()):
        codes[data.draw(st.integers(0, rows - 1)), data.draw(st.integers(0, columns - 1))] |= 0x7F
    if data.draw(st.booleans()):
        scales[data.draw(st.integers(0, rows - 1))] = data.draw(st.sampled_from([0x7F80, 0x8000, 0xFFFF]))
    expected = 0
    for line, scale in zip(codes.tolist(), scales.tolist(), strict=True):
        expected |= scale > 0x7F7F
        expected |= 2 * (scale == 0 and any(code & 0x7F for code in line))
        expected |= 4 * any(code & 0x7F == 0x7F for code in line)
    assert cpu.scan_row(codes, scales) == expected


def test_block_scales():
    scales = np.zeros(10_000, np.uint8)
    scales[7] = 0x7E
    assert cpu.scan_block_scales(scales) == 0
    for wrong in (0x7F, 0x80, 0xFF):
        scales[9_999] = wrong
        assert cpu.scan_block_scales(scales) == 1


@pytest.mark.parametrize("size", [0, 1, 63, 4096, 4097, 10_000])
def test_any_nonzero_and_same_bytes(size):
    data = np.zeros(size, np.uint8)
    other = data.copy()
    assert not cpu.any_nonzero(data)
    assert cpu.same_bytes(data, other)
    for place in {0, size // 2, size - 1} if size else set():
        data[place] = 0x10
        assert cpu.any_nonzero(data)
        assert not cpu.same_bytes(data, other)
        data[place] = 0
    assert not cpu.same_bytes(data, np.zeros(size + 1, np.uint8))


def test_read_only_and_misaligned_arrays_are_taken():
    raw = np.zeros(1 + 2 * 64 + 7, np.uint8)
    scales = raw[1 : 1 + 4].view(np.uint16)
    scales[:] = 0x3C00
    assert not scales.flags.aligned
    base = raw[5 : 5 + 64]
    base.flags.writeable = False
    assert cpu.scan_grouped(Q4G64_F16S, 128, GroupedPlanes(base, np.empty(0, np.uint8), scales)) == 0


def test_planes_of_another_size_are_refused():
    planes = GroupedPlanes.empty(Q5G64_F16S, 1, 128)
    with pytest.raises(ValueError, match="planes"):
        cpu.scan_grouped(Q5G64_F16S, 300, planes)
    with pytest.raises(ValueError, match="planes"):
        cpu.scan_grouped(Q4G64_F16S, 128, planes)
