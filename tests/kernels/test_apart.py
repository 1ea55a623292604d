"""Elements of two encodings of one source are never found apart; others are, one by one as plain fractions say."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ninfer_core.formats import GROUPED, Q4G64_F16S, W8G32_F16S
from ninfer_core.kernels import cpu
from ninfer_core.kernels.values import EncodeFault, GroupedPlanes
from ninfer_core.layouts.row_split import groups_per_row
from ninfer_core.words import BINARY16, finite_value
from tests import strategies
from tests.kernels import oracles

pairs = pytest.mark.parametrize(("a", "b"), [(a, b) for a in GROUPED for b in GROUPED], ids=lambda f: f.name)


def encoded(fmt, source, dtype="BF16"):
    planes = GroupedPlanes.empty(fmt, *source.shape)
    assert not isinstance(cpu.encode(fmt, source, dtype, planes), EncodeFault)
    return planes


def oracle(a, a_planes, b, b_planes, columns):
    """Every logical element by itself, in fractions."""
    rows = a_planes.scales.size // groups_per_row(a, columns)
    sides = []
    for fmt, planes in ((a, a_planes), (b, b_planes)):
        values = {}
        for group in oracles.groups(fmt, columns, planes):
            logical = group.codes[: group.logical]
            legal = group.scale <= 0x7BFF and not (group.scale == 0 and any(logical))
            scale = finite_value(BINARY16, group.scale) if legal else None
            for lane, code in enumerate(logical):
                reach = None
                if scale is not None:
                    reach = scale * (Fraction(1, 2) + Fraction(1, 1 << 16))
                    if 0 < group.scale < 0x400:
                        reach += Fraction(fmt.qmax, 1 << 25)
                values[group.row, group.index * fmt.group + lane] = ((scale and code * scale) or 0, reach)
        sides.append(values)
    counts = [0] * rows
    for place, (x, reach) in sides[0].items():
        y, other = sides[1][place]
        if reach is not None and other is not None and abs(x - y) > reach + other:
            counts[place[0]] += 1
    return counts


@pairs
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_two_encodings_of_one_source_are_never_apart(a, b, data):
    fmt = min(a, b, key=lambda one: one.qmax)  # its scales are the larger ones
    source = data.draw(strategies.finite_rows(fmt, "BF16"))
    planes = [GroupedPlanes.empty(one, *source.shape) for one in (a, b)]
    outcomes = [cpu.encode(one, source, "BF16", out) for one, out in zip((a, b), planes, strict=True)]
    if not any(isinstance(outcome, EncodeFault) for outcome in outcomes):
        assert not cpu.rows_apart(a, planes[0], b, planes[1], source.shape[1]).any()


@pairs
def test_every_scale_from_the_rescued_to_the_largest(a, b):
    """Groups whose largest value sweeps all scales, each filled with what lies worst for the rounding."""
    rng = np.random.default_rng(5)
    tops = np.arange(1, 0x4780, 3, dtype=np.uint16)  # BF16 words up to 2**16
    largest = (tops.astype(np.uint32) << 16).view(np.float32)[:, None]
    values = (largest * rng.uniform(-1, 1, (tops.size, 64))).astype(np.float32)
    source = (values.view(np.uint32) >> 16).astype(np.uint16)
    source[:, 0], source[:, 32] = tops, tops
    planes = [encoded(fmt, source) for fmt in (a, b)]
    assert not cpu.rows_apart(a, planes[0], b, planes[1], 64).any()


@pairs
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_counts_equal_the_oracle(a, b, data):
    columns = data.draw(strategies.WIDTHS)
    rows = data.draw(st.integers(1, 2))
    planes = [data.draw(strategies.planes(fmt, rows, columns)) for fmt in (a, b)]
    for one in planes:
        place = data.draw(st.integers(0, one.scales.size - 1))
        one.scales[place] = data.draw(
            st.sampled_from([0, 1, 0x3FF, 0x400, 0x7BFF, 0x7C00, 0x7E00, 0x8000, 0xFFFF])
        )
        close = data.draw(st.booleans())
        if close:  # scales so near each other that some elements fit and some do not
            one.scales[:] = np.where(one.scales == 0, 0, 0x3000 + (one.scales & 0x3FF))
    counts = cpu.rows_apart(a, planes[0], b, planes[1], columns)
    assert counts.tolist() == oracle(a, planes[0], b, planes[1], columns)


def test_one_element_of_one_row():
    source = (
        np.random.default_rng(1).normal(size=(40, 300)).astype(np.float32).view(np.uint32) >> 16
    ).astype(np.uint16)
    head, draft = encoded(W8G32_F16S, source), encoded(Q4G64_F16S, source)
    assert not cpu.rows_apart(Q4G64_F16S, draft, W8G32_F16S, head, 300).any()
    code = int(head.base.view(np.int8)[17 * 384 + 299])
    head.base.view(np.int8)[17 * 384 + 299] = code - 100 if code > 0 else code + 100
    counts = cpu.rows_apart(Q4G64_F16S, draft, W8G32_F16S, head, 300)
    assert counts.nonzero()[0].tolist() == [17]
    assert counts[17] == 1
    head.base[17 * 384 + 300] = 100  # a padding lane
    assert cpu.rows_apart(Q4G64_F16S, draft, W8G32_F16S, head, 300)[17] == 1


def test_rows_of_another_number_are_refused():
    a, b = GroupedPlanes.empty(Q4G64_F16S, 2, 128), GroupedPlanes.empty(W8G32_F16S, 3, 128)
    with pytest.raises(ValueError, match="rows"):
        cpu.rows_apart(Q4G64_F16S, a, W8G32_F16S, b, 128)
