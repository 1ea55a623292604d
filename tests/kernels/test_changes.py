"""Changed codes against a lane-by-lane count, on random planes with single words changed, padding included."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ninfer_core.formats import GROUPED, Q5G64_F16S
from ninfer_core.kernels.changes import changed_codes
from ninfer_core.kernels.values import GroupedPlanes
from tests import strategies
from tests.kernels import oracles


def expected(fmt, columns, a, b):
    """How many logical codes differ, and the first, flat over [rows, columns]."""
    pairs = zip(oracles.groups(fmt, columns, a), oracles.groups(fmt, columns, b), strict=True)
    places = [
        left.row * columns + left.index * fmt.group + lane
        for left, right in pairs
        for lane in range(left.logical)
        if left.codes[lane] != right.codes[lane]
    ]
    return len(places), min(places, default=None)


def copied(planes):
    return GroupedPlanes(planes.base.copy(), planes.high.copy(), planes.scales.copy())


@pytest.mark.parametrize("fmt", GROUPED, ids=lambda f: f.name)
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_count_and_first_place(fmt, data):
    rows, columns = data.draw(st.integers(1, 3)), data.draw(strategies.WIDTHS)
    a = data.draw(strategies.planes(fmt, rows, columns))
    b = copied(a)
    for _ in range(data.draw(st.integers(0, 4))):
        plane = data.draw(st.sampled_from([p for p in (b.base, b.high) if p.size]))
        plane[data.draw(st.integers(0, plane.size - 1))] ^= 1 << data.draw(st.integers(0, 7))
    assert changed_codes(fmt, rows, columns, a, b) == expected(fmt, columns, a, b)


def test_more_than_a_tile():
    """The place is right beyond the first tile of a row, and in the last row."""
    columns, rows = 128 * 33, 2
    groups = rows * columns // 64
    a = GroupedPlanes(
        np.zeros(groups * 32, np.uint8), np.zeros(groups * 8, np.uint8), np.zeros(groups, np.uint16)
    )
    b = copied(a)
    b.high[-1] = 0x80
    assert changed_codes(Q5G64_F16S, rows, columns, a, b) == (1, rows * columns - 1)
    b.base[32 * 65] = 0xFF
    assert changed_codes(Q5G64_F16S, rows, columns, a, b) == (3, 64 * 65)
