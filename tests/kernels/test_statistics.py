"""Statistics against counts made one lane at a time."""

import functools
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ninfer_core.formats import FP8_E4M3FN_ROW_BF16S, GROUPED, NVFP4
from ninfer_core.kernels import cpu
from ninfer_core.kernels.values import SOURCE_DTYPES, CodeStatistics, GroupedPlanes
from ninfer_core.layouts import row_split
from ninfer_core.layouts.row_split import high_bytes
from ninfer_core.words import Kind, classify, finite_value, i32_value, sign_of
from tests import strategies
from tests.kernels import oracles


def assert_tallies(got, scales, zero_groups):
    nonzero = [scale for scale in scales if scale]
    assert (got.groups, got.zero_scales, got.zero_groups) == (
        len(scales),
        len(scales) - len(nonzero),
        zero_groups,
    )
    assert got.smallest_scale == min(nonzero, default=None)
    assert got.largest_scale == max(nonzero, default=None)


@pytest.mark.parametrize("fmt", GROUPED, ids=lambda f: f.name)
@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_grouped(fmt, data):
    columns = data.draw(strategies.WIDTHS)
    parts = [data.draw(strategies.planes(fmt, data.draw(st.integers(1, 3)), columns)) for _ in range(2)]
    got, merged = CodeStatistics.empty(fmt), CodeStatistics.empty(fmt)
    logical = []
    for planes in parts:
        cpu.statistics_grouped(fmt, columns, planes, got)
        part = CodeStatistics.empty(fmt)
        cpu.statistics_grouped(fmt, columns, planes, part)
        merged = merged.merge(part)
        logical += [group for group in oracles.groups(fmt, columns, planes) if group.logical]
    codes = Counter(code for group in logical for code in group.codes[: group.logical])
    assert got.histogram.tolist() == [codes[got.first_code + i] for i in range(got.histogram.size)]
    assert_tallies(got, [g.scale for g in logical], sum(not any(g.codes[: g.logical]) for g in logical))
    assert np.array_equal(merged.histogram, got.histogram)
    assert np.array_equal(merged.tallies, got.tallies)


@pytest.mark.parametrize("fmt", GROUPED, ids=lambda f: f.name)
@pytest.mark.parametrize(("rows", "columns"), [(3, 5_000), (1, 3 * 8_192 + 128), (70, 130), (2, 16_384)])
def test_grouped_beyond_one_step(fmt, rows, columns):
    """Every byte of the planes drawn, padding too: more codes than a step of the histogram takes, and a part of one."""
    seed = np.random.default_rng(rows)
    planes = GroupedPlanes.empty(fmt, rows, columns)
    for plane in (planes.base, planes.high, planes.scales.view(np.uint8)):
        plane[:] = seed.integers(0, 256, plane.size)
    planes.base[:640], planes.high[: 20 * high_bytes(fmt)], planes.scales[:9] = 0, 0, 0
    words = row_split.unpack(fmt, columns, planes.base, planes.high, planes.scales)
    codes, groups = words.codes[:, :columns], -(-columns // fmt.group)
    got = CodeStatistics.empty(fmt)
    cpu.statistics_grouped(fmt, columns, planes, got)
    wanted = np.bincount(codes.reshape(-1).astype(int) - got.first_code, minlength=got.histogram.size)
    assert got.histogram.tolist() == wanted.tolist()
    lanes = np.zeros((rows, groups * fmt.group), bool)
    lanes[:, :columns] = codes != 0
    zeros = int((~lanes.reshape(rows, groups, fmt.group).any(axis=2)).sum())
    assert_tallies(got, words.scales[:, :groups].reshape(-1).tolist(), zeros)


def test_any_number_of_threads_counts_the_same():
    fmt, seed = GROUPED[0], np.random.default_rng(3)
    blocks = [GroupedPlanes.empty(fmt, 8, 1_000) for _ in range(12)]
    for block in blocks:
        for plane in (block.base, block.scales.view(np.uint8)):
            plane[:] = seed.integers(0, 256, plane.size)

    def count(block):
        acc = CodeStatistics.empty(fmt)
        cpu.statistics_grouped(fmt, 1_000, block, acc)
        return acc

    def merged(parts):
        whole = functools.reduce(CodeStatistics.merge, parts)
        return whole.histogram.tobytes() + whole.tallies.tobytes()

    alone = merged(map(count, blocks))
    for threads in (1, 2, 5):
        with ThreadPoolExecutor(threads) as pool:
            assert merged(pool.map(count, blocks)) == alone


@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_fp8_rows(data):
    rows, columns = data.draw(st.integers(1, 5)), data.draw(strategies.WIDTHS)
    seed = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    codes = seed.integers(0, 256, (rows, columns)).astype(np.uint8)
    scales = seed.integers(0, 0x7F80, rows).astype(np.uint16)
    codes[0] &= 0x80
    scales[0] = 0
    got = CodeStatistics.empty(FP8_E4M3FN_ROW_BF16S)
    cpu.statistics_row(codes, scales, got)
    assert got.histogram.tolist() == np.bincount(codes.reshape(-1), minlength=256).tolist()
    assert_tallies(got, scales.tolist(), sum(not any(c & 0x7F for c in line) for line in codes.tolist()))


@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_nvfp4(data):
    rows, groups = data.draw(st.integers(1, 3)), data.draw(st.integers(1, 9))
    seed = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    nibbles = seed.integers(0, 16, (rows * groups, 16)).astype(np.uint8)
    nibbles[0] &= 8
    scales = seed.integers(0, 0x7F, (rows, groups)).astype(np.uint8)
    scales[0, 0] = 0
    packed = (nibbles[:, 0::2] | nibbles[:, 1::2] << 4).reshape(rows, -1)
    got = CodeStatistics.empty(NVFP4)
    cpu.statistics_nvfp4(packed, scales, got)
    assert got.histogram.tolist() == np.bincount(nibbles.reshape(-1), minlength=16).tolist()
    assert_tallies(got, scales.reshape(-1).tolist(), sum(not any(n & 7 for n in g) for g in nibbles.tolist()))


@pytest.mark.parametrize("dtype", list(SOURCE_DTYPES))
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_direct_floats(dtype, data):
    fmt = SOURCE_DTYPES[dtype]
    words = data.draw(st.lists(strategies.any_words(fmt), max_size=40))
    got = cpu.statistics_direct(np.array(words, strategies.DTYPES[dtype]), dtype)
    kinds = Counter(classify(fmt, word) for word in words)
    assert got.count == len(words)
    assert got.positive_zeros == words.count(0)
    assert got.negative_zeros == words.count(fmt.sign_bit)
    assert (got.nans, got.infinities) == (kinds[Kind.NAN], kinds[Kind.INFINITY])
    finite = [finite_value(fmt, w) for w in words if classify(fmt, w) not in (Kind.NAN, Kind.INFINITY)]
    if not finite:
        assert (got.smallest, got.largest) == (None, None)
    else:
        assert finite_value(fmt, got.smallest) == min(finite)
        assert finite_value(fmt, got.largest) == max(finite)
        assert all(sign_of(fmt, w) == 0 for w in (got.smallest, got.largest) if finite_value(fmt, w) == 0)


@given(st.lists(st.integers(0, 2**32 - 1), min_size=1, max_size=40))
def test_direct_integers(words):
    got = cpu.statistics_direct(np.array(words, np.uint32), "I32")
    values = [i32_value(word) for word in words]
    assert (i32_value(got.smallest), i32_value(got.largest)) == (min(values), max(values))
    assert (got.positive_zeros, got.negative_zeros, got.nans, got.infinities) == (words.count(0), 0, 0, 0)


@pytest.mark.parametrize("dtype", ["BF16", "FP32", "I32"])
@given(data=st.data())
def test_merging_direct_parts_gives_the_whole(dtype, data):
    width, kind = (16, np.uint16) if dtype == "BF16" else (32, np.uint32)
    parts = [data.draw(st.lists(st.integers(0, 2**width - 1), max_size=8)) for _ in range(2)]
    left, right = (cpu.statistics_direct(np.array(part, kind), dtype) for part in parts)
    assert left.merge(right) == cpu.statistics_direct(np.array(parts[0] + parts[1], kind), dtype)
