"""Samples: repeatable, bounded, never without the rows at which mistakes are made; and what they can find."""

from itertools import combinations, pairwise
from math import comb

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ninfer_core.containers.directory import TensorObject
from ninfer_core.formats import (
    BF16,
    FP8_E4M3FN_ROW_BF16S,
    I32,
    NVFP4,
    Q4G64_F16S,
    W8G32_F16S,
    NumericFormat,
)
from ninfer_core.layouts import canonical_layout
from ninfer_core.verify.sample import MOST_UNITS, Sample, blocks_of, detection, matrix_of, plan_rows


def tensor(fmt: NumericFormat, *shape: int, name: str = "w") -> TensorObject:
    layout = canonical_layout(fmt)
    return TensorObject(0, name, shape, fmt, layout, 0, layout.encoded_size(fmt, shape))


def rows_in(ranges: tuple[range, ...]) -> set[int]:
    return {row for one in ranges for row in one}


@pytest.mark.parametrize("fraction", [0, -0.1, 1.01, float("nan"), float("inf")])
def test_a_sample_is_a_share(fraction):
    with pytest.raises(ValueError, match="share"):
        Sample(fraction)


LARGE = [
    tensor(Q4G64_F16S, 5000, 512),
    tensor(W8G32_F16S, 999, 1000),
    tensor(FP8_E4M3FN_ROW_BF16S, 3000, 256),
]
LARGE += [
    tensor(NVFP4, 128 * 400, 64),
    tensor(BF16, 4096, 64),
    tensor(BF16, 700, 4, 60),
    tensor(I32, 1 << 20),
]


@settings(max_examples=60, deadline=None)
@given(
    item=st.sampled_from(LARGE),
    fraction=st.floats(1e-6, 1),
    seed=st.integers(0, 1 << 70),
    data=st.data(),
)
def test_ranges_are_ordered_legal_and_hold_every_joint(item, fraction, seed, data):
    joints = data.draw(st.lists(st.integers(0, item.shape[0]), max_size=4))
    sample = Sample(fraction, seed)
    ranges = plan_rows(item, sample, joints)
    assert ranges == plan_rows(item, sample, joints)
    total, width = matrix_of(item)
    assert all(one.step == 1 and 0 <= one.start < one.stop <= total for one in ranges)
    assert all(left.stop < right.start for left, right in pairwise(ranges))
    unit = 128 if item.format is NVFP4 else 1
    assert all(one.start % unit == one.stop % unit == 0 for one in ranges)
    rows = rows_in(ranges)
    per = width if len(item.shape) == 1 else 1
    for joint in (*joints, 0, item.shape[0]):
        assert {side // per for side in (joint - 1, joint) if 0 <= side < item.shape[0]} <= rows
    forced = 2 * unit * (len(joints) + 1)
    assert fraction * total <= len(rows) <= fraction * total + 2 * unit + forced


def test_small_objects_and_whole_fractions_are_whole():
    assert plan_rows(tensor(BF16, 100, 64), Sample(0.01)) == (range(100),)
    assert plan_rows(tensor(BF16), Sample(0.01)) == (range(1),)
    assert plan_rows(tensor(Q4G64_F16S, 5000, 512), Sample(1)) == (range(5000),)


def test_seed_and_name_change_the_choice():
    item = tensor(Q4G64_F16S, 5000, 512)
    one = rows_in(plan_rows(item, Sample(0.1, 1)))
    other_seed = rows_in(plan_rows(item, Sample(0.1, 2)))
    other_name = rows_in(plan_rows(tensor(Q4G64_F16S, 5000, 512, name="v"), Sample(0.1, 1)))
    # 500 of 5,000 twice share 50 on average; the two ends are always there.
    for other in (other_seed, other_name):
        assert 20 < len(one & other) < 90


def test_every_row_is_as_likely_as_any_other():
    item = tensor(FP8_E4M3FN_ROW_BF16S, 300, 256)
    counts = np.zeros(300, np.int64)
    for seed in range(400):
        counts[sorted(rows_in(plan_rows(item, Sample(0.2, seed))))] += 1
    inner = counts[1:-1]  # 400 draws of 0.2: mean 80, standard deviation 8
    assert abs(inner.mean() - 80) < 1
    assert inner.min() > 40
    assert inner.max() < 120


def test_this_choice_never_changes():
    """Pinned, since a report names only the seed: the ranks of SplitMix64 keys, computed here with plain integers."""
    import hashlib

    item = tensor(Q4G64_F16S, 1500, 512)
    state = int.from_bytes(hashlib.sha256(b"7\nw").digest()[:8], "little")
    keys = []
    for place in range(1500):
        state = (state + 0x9E3779B97F4A7C15) % 2**64
        key = state
        key = (key ^ (key >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
        key = (key ^ (key >> 27)) * 0x94D049BB133111EB % 2**64
        keys.append((key ^ (key >> 31), place))
    expected = {place for _, place in sorted(keys)[:15]} | {0, 1499}
    assert rows_in(plan_rows(item, Sample(0.01, 7))) == expected


def test_the_number_of_ranges_is_bounded_whatever_the_shape():
    item = tensor(FP8_E4M3FN_ROW_BF16S, 10_000_000, 1)
    ranges = plan_rows(item, Sample(0.4))
    assert len(ranges) <= MOST_UNITS
    assert len(rows_in(ranges)) / 10_000_000 == pytest.approx(0.4, abs=0.0005)  # the last unit is shorter


@pytest.mark.parametrize("item", [*LARGE, tensor(Q4G64_F16S, 3, 5_000_000)], ids=lambda i: i.format.name)
def test_blocks_hold_exactly_the_rows(item):
    ranges = plan_rows(item, Sample(0.05, 3), (17,))
    width = matrix_of(item)[1]
    count = int(np.prod(item.shape))
    wanted = sorted((one.start * width, min(one.stop * width, count)) for one in ranges)
    held = []
    for block in blocks_of(item, ranges):
        assert block.rows * block.columns <= 1 << 22
        item.layout.spans(item.format, item.shape, block)
        for row in range(block.row, block.row + block.rows):
            start = (
                row * item.shape[-1] + block.column
                if item.format.name not in ("BF16", "I32")
                else block.column
            )
            if held and held[-1][1] == start:
                held[-1] = (held[-1][0], start + block.columns)
            else:
                held.append((start, start + block.columns))
    assert held == wanted


def exhaustive(rows: int, of_rows: int, wrong: int) -> float:
    sets = list(combinations(range(of_rows), wrong))
    return sum(any(place < rows for place in one) for one in sets) / len(sets)


@pytest.mark.parametrize(("rows", "of_rows"), [(0, 5), (1, 5), (3, 7), (5, 5), (2, 11)])
def test_detection_of_few_rows_by_counting(rows, of_rows):
    found = detection(rows, of_rows)
    assert found.one_row == pytest.approx(rows / of_rows)
    assert found.one_percent == found.one_permille == pytest.approx(exhaustive(rows, of_rows, 1))


@settings(max_examples=100, deadline=None)
@given(data=st.data())
def test_detection_equals_the_binomials(data):
    of_rows = data.draw(st.integers(1, 3000))
    rows = data.draw(st.integers(0, of_rows))
    found = detection(rows, of_rows)
    for value, wrong in (
        (found.one_row, 1),
        (found.one_percent, -(-of_rows // 100)),
        (found.one_permille, -(-of_rows // 1000)),
    ):
        missed = comb(of_rows - wrong, rows), comb(of_rows, rows)
        assert value == pytest.approx((missed[1] - missed[0]) / missed[1], rel=1e-12)


def test_detection_of_many_rows_neither_overflows_nor_loses_small_chances():
    assert detection(100_000, 10_000_000).one_percent == 1.0
    assert detection(1, 10**12).one_row == pytest.approx(1e-12, rel=1e-12)
    assert detection(0, 0).one_row == 0.0
    assert detection(10, 10).one_permille == 1.0
