"""Shapes of groups and rows, extremes and repetitions against plain Python, lane by lane."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ninfer_core.formats import GROUPED, W8G32_F16S, GroupedFormat
from ninfer_core.kernels import cpu
from ninfer_core.kernels.values import GroupedPlanes
from ninfer_core.layouts.row_split import groups_per_row
from tests import strategies
from tests.kernels import oracles

formats = pytest.mark.parametrize("fmt", GROUPED, ids=lambda f: f.name)
SCALE_CLASSES = [
    0x0000,
    0x0001,
    0x0002,
    0x03FF,
    0x0400,
    0x3C00,
    0x7BFF,
    0x7C00,
    0x7E01,
    0x8000,
    0xBC00,
    0xFFFF,
]


def is_odd(fmt: GroupedFormat, scale: int, codes: tuple[int, ...]) -> bool:
    """Targets, C4: the rule as it is written."""
    zero = not any(codes)
    if scale > 0x7BFF or scale == 0:
        return False  # C1 says what is wrong, if anything is
    if zero:
        return scale != 0x0001
    if scale < 0x0400:
        return False
    return max(map(abs, codes)) != fmt.qmax or -fmt.qmax - 1 in codes


def odd_groups(fmt: GroupedFormat, columns: int, planes: GroupedPlanes) -> tuple[int, int]:
    places = [
        place
        for place, group in enumerate(oracles.groups(fmt, columns, planes))
        if group.logical and is_odd(fmt, group.scale, group.codes[: group.logical])
    ]
    return len(places), places[0] if places else -1


def group_codes(fmt: GroupedFormat) -> st.SearchStrategy[list[int]]:
    ends = [0, 1, -1, fmt.qmax, -fmt.qmax, -fmt.qmax - 1, fmt.qmax - 1]
    few = st.lists(st.sampled_from(ends), min_size=fmt.group, max_size=fmt.group)
    one = st.tuples(st.integers(0, fmt.group - 1), st.sampled_from(ends)).map(
        lambda at: [at[1] if lane == at[0] else 0 for lane in range(fmt.group)]
    )
    return few | one


@formats
@settings(max_examples=80, deadline=None)
@given(data=st.data())
def test_odd_groups_equal_the_oracle(fmt, data):
    rows, columns = data.draw(st.integers(1, 3)), data.draw(strategies.WIDTHS)
    groups = rows * groups_per_row(fmt, columns)
    kinds = data.draw(st.lists(group_codes(fmt), min_size=1, max_size=3))
    codes = np.array([data.draw(st.sampled_from(kinds)) for _ in range(groups)], np.int8)
    scales = np.array(
        [data.draw(st.sampled_from(SCALE_CLASSES) | st.integers(0, 0xFFFF)) for _ in range(groups)], np.uint16
    )
    planes = strategies.pack(fmt, codes, scales)  # padding holds anything, and is not judged
    assert cpu.odd_groups(fmt, columns, planes) == odd_groups(fmt, columns, planes)


@formats
def test_one_group_of_many(fmt):
    columns, rows = 2048, 20
    groups = rows * groups_per_row(fmt, columns)
    codes = np.zeros((groups, fmt.group), np.int8)
    codes[:, 5] = fmt.qmax
    scales = np.full(groups, 0x3C00, np.uint16)
    assert cpu.odd_groups(fmt, columns, strategies.pack(fmt, codes, scales)) == (0, -1)
    for scale, code, odd in (
        (0x3C00, -fmt.qmax, False),
        (0x3C00, -fmt.qmax - 1, True),
        (0x3C00, fmt.qmax - 1, True),
        (0x0400, 0, True),
        (0x03FF, fmt.qmax - 1, False),
        (0x03FF, 0, True),
        (0x0002, 0, True),
        (0x0001, 0, False),
        (0x7C00, 1, False),
        (0x0000, 1, False),
    ):
        codes[333, 5], scales[333] = code, scale
        expected = (1, 333) if odd else (0, -1)
        assert cpu.odd_groups(fmt, columns, strategies.pack(fmt, codes, scales)) == expected, (scale, code)
    codes[:, 5] = 1
    scales[:] = 0x3C00
    assert cpu.odd_groups(fmt, columns, strategies.pack(fmt, codes, scales)) == (groups, 0)


@formats
def test_padding_of_the_tail_is_not_judged(fmt):
    columns = fmt.group + 3
    groups = groups_per_row(fmt, columns)
    codes = np.zeros((groups, fmt.group), np.int8)
    codes[0, 0] = codes[1, 2] = fmt.qmax
    scales = np.full(groups, 0x3C00, np.uint16)
    codes[1, 3] = -fmt.qmax - 1  # the first padding lane
    assert cpu.odd_groups(fmt, columns, strategies.pack(fmt, codes, scales)) == (0, -1)
    codes[1, 2], codes[1, 3] = 1, fmt.qmax  # only a padding lane holds the largest code
    assert cpu.odd_groups(fmt, columns, strategies.pack(fmt, codes, scales)) == (1, 1)


def test_minus_128_is_not_127():
    codes = np.zeros((4, 32), np.int8)
    codes[:, 0] = 127
    codes[2, 0] = -128
    planes = strategies.pack(W8G32_F16S, codes, np.full(4, 0x3C00, np.uint16))
    assert cpu.odd_groups(W8G32_F16S, 128, planes) == (1, 2)


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_row_masks_equal_the_oracle_and_add_up(data):
    rows, columns = data.draw(st.integers(1, 4)), data.draw(strategies.WIDTHS)
    seed = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    words = data.draw(
        st.sampled_from([[0], [0, 0x80], [0, 0x80, 1], [0x7E, 0xFE, 1], [0x7F, 0xFF], [0x7D, 0]])
    )
    codes = seed.choice(np.array(words, np.uint8), (rows, columns))
    expected = [
        (0x7E in (magnitudes := {int(code) & 0x7F for code in row}))
        | (2 if magnitudes - {0} else 0)
        | (4 if 0x80 in row else 0)
        for row in codes.tolist()
    ]
    masks = np.zeros(rows, np.uint8)
    cpu.row_masks(codes, masks)
    assert masks.tolist() == expected
    cut = columns // 2
    parts = np.zeros(rows, np.uint8)
    cpu.row_masks(np.ascontiguousarray(codes[:, :cut]), parts)
    cpu.row_masks(np.ascontiguousarray(codes[:, cut:]), parts)
    assert parts.tolist() == expected


@pytest.mark.parametrize("dtype", [np.uint16, np.uint32])
@pytest.mark.parametrize("size", [0, 1, 7, 64, 1000])
def test_largest_magnitude(dtype, size):
    top = np.iinfo(dtype).max
    words = np.random.default_rng(size).integers(0, top, size, dtype, endpoint=True)
    assert cpu.largest_magnitude(words) == max((int(word) & top >> 1 for word in words), default=0)


def test_used_bits():
    words = np.zeros(1000, np.uint32)
    assert cpu.used_bits(words) == 0
    words[999], words[3] = 0x80000000, 0x11
    assert cpu.used_bits(words) == 0x80000011


@settings(max_examples=60, deadline=None)
@given(
    words=st.lists(st.integers(90, 130) | st.integers(0, 2**32 - 1), max_size=40), low=st.integers(80, 110)
)
def test_repetitions_equal_the_oracle(words, low):
    seen, found = np.zeros(3, np.uint8), np.array([0, -1, 0], np.int64)
    cut = len(words) // 2
    array = np.array(words, np.uint32)
    cpu.repetitions(array[:cut], low, 100, seen, found)
    cpu.repetitions(array[cut:], low, 100 + cut, seen, found)
    again = [
        (place, word) for place, word in enumerate(words) if low <= word < low + 24 and word in words[:place]
    ]
    first = (100 + again[0][0], again[0][1]) if again else (-1, 0)
    assert (int(found[0]), (int(found[1]), int(found[2]))) == (len(again), first)
