"""Decoded values against a reference: by words, in the reference's type, with a bound only where one is given."""

import json
import math
from unittest.mock import ANY

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from ninfer_core.findings import Findings
from ninfer_core.schemes import measures as room
from ninfer_core.schemes.measures import comparable, measure, measures_json, report

VALUES = np.arange(-6, 6, dtype=np.float32).reshape(3, 4)


def test_equal_words_have_no_error() -> None:
    found = measure(VALUES, VALUES.copy())
    assert (found.differing, found.beyond, found.first, found.max_abs_error) == (0, 0, None, 0.0)
    findings = Findings()
    report(found, findings)
    assert not list(findings)


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (0.0, -0.0),
        (math.nan, 1.0),
        (1.0, math.nan),
        (math.inf, -math.inf),
        (1.0, np.nextafter(np.float32(1), np.float32(2))),
    ],
)
def test_another_word_differs(ours: float, theirs: float) -> None:
    mine, other = VALUES.copy(), VALUES.copy()
    mine[1, 2], other[1, 2] = ours, theirs
    found = measure(mine, other)
    assert (found.differing, found.beyond) == (1, 1)
    assert found.first is not None
    assert found.first.index == (1, 2)


def test_another_nan_is_another_word() -> None:
    mine, other = VALUES.copy(), VALUES.copy()
    mine.view(np.uint32)[0, 0], other.view(np.uint32)[0, 0] = 0x7FC00000, 0x7FC00001
    assert measure(mine, mine.copy()).differing == 0
    found = measure(mine, other)
    assert (found.differing, found.not_finite, found.rmse) == (1, 1, None)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float64])
def test_words_are_those_of_the_reference_type(dtype: type) -> None:
    values = np.array([1 / 3, 2 / 3, 1e-30], np.float32)
    reference = values.astype(dtype)
    assert measure(values, reference).differing == 0
    reference[1] = 0.5
    found = measure(values, reference)
    assert (found.differing, found.dtype) == (1, np.dtype(dtype).name)


def test_a_bound_is_counted_beside_the_words() -> None:
    reference = VALUES + np.float32(0.25)
    reference[2, 3] += 1
    found = measure(VALUES, reference, within=0.5)
    assert (found.differing, found.beyond) == (12, 1)
    assert found.first is not None
    assert found.first.index == (2, 3)
    assert found.max_abs_error == 1.25
    mine = VALUES.copy()
    mine[0, 0] = math.nan
    assert measure(mine, reference, within=100.0).beyond == 1  # no bound lets a NaN pass


def test_a_constant_ratio_and_another_order_are_told() -> None:
    doubled = measure(VALUES, VALUES * 2)
    assert doubled.ratio == 0.5
    turned = measure(VALUES, VALUES[::-1].copy())
    assert turned.reordered
    assert turned.ratio is None
    for found, clue in ((doubled, "0.5 times"), (turned, "another order")):
        findings = Findings()
        report(found, findings)
        (one,) = findings
        assert (one.code, one.count) == ("scheme.value_differs", found.beyond)
        assert clue in one.message


def test_a_ratio_is_that_of_every_pair() -> None:
    reference = np.ones((4096, 16), np.float32)
    mine = reference.copy()
    mine[:, 0] = 2  # all that an evenly spread sample sees
    assert measure(mine, reference).ratio is None
    reference[::3], reference[1::3] = 0.1, 6e-8  # rounded, and subnormal, in the narrow type
    assert measure(reference * 3, reference.astype(np.float16)).ratio == pytest.approx(3, rel=1e-3)
    mine = reference * 3
    mine[7, 7] = math.nan
    assert measure(mine, reference).ratio is None


def test_errors_beyond_binary64_have_no_decibels() -> None:
    apart = measure(np.full(4, 3e38, np.float32), np.full(4, 1e-150))
    assert apart.sqnr_db == pytest.approx(-3769.54, abs=0.01)
    assert measure(np.zeros(4, np.float32), np.full(4, 1e200)).sqnr_db is None


def test_what_cannot_be_compared() -> None:
    for reference in (VALUES.astype(np.int32), VALUES.T.copy(), VALUES.reshape(-1)):
        findings = Findings()
        assert not comparable(VALUES.shape, reference, findings)
        assert [one.code for one in findings] == ["scheme.reference_mismatch"]


@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_blocks_make_no_difference(data: st.DataObject) -> None:
    shape = data.draw(arrays.array_shapes(max_dims=3, max_side=9))
    words = arrays.arrays(np.uint32, shape)
    ours, theirs = data.draw(words).view(np.float32), data.draw(words).view(np.float32)
    whole = measure(ours, theirs)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(room, "_BLOCK", 7)
        pieces = measure(ours, theirs)
    assert measures_json(whole) == measures_json(pieces) | {
        "rmse": ANY,
        "sqnr_db": ANY,
    }  # sums have another order
    unequal = ours.view(np.uint32) != theirs.view(np.uint32)
    assert whole.differing == np.count_nonzero(unequal)
    json.dumps(measures_json(whole), allow_nan=False)
    findings = Findings()
    report(whole, findings)
    assert bool(findings.errors) == bool(unequal.any())
