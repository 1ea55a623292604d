"""Every pair of formats against an oracle in exact fractions: changed words, and errors of the values."""

import math
from fractions import Fraction
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from ninfer_core.compare.comparison import RANKS
from ninfer_core.formats import (
    BF16,
    DIRECT,
    FORMATS,
    FP32,
    I32,
    NVFP4,
    Q4G64_F16S,
    GroupedFormat,
    NumericFormat,
)
from ninfer_core.layouts import canonical_layout
from tests.compare import oracle
from tests.compare.build import Payload, by_name, finite_payload, in_blocks, pair, run

TILES, ODD = (128, 192), (6, 330)  # the first is what NVFP4 takes; both end inside 128 columns
FLOATS = [fmt for fmt in FORMATS if fmt.name != "I32"]
SIZES = (None, 128, 128 * 192 // 2, 700)  # whole; runs of columns, of 128 rows with NVFP4; rows


def shape_of(*formats: NumericFormat) -> tuple[int, int]:
    return TILES if NVFP4 in formats else ODD


@cache
def sample(fmt: NumericFormat, shape: tuple[int, int], seed: int) -> tuple[Payload, list[Fraction]]:
    payload = finite_payload(fmt, shape, np.random.default_rng(seed))
    return payload, oracle.values(fmt, shape, payload)


@cache
def errors(a: NumericFormat, b: NumericFormat) -> tuple[Fraction, Fraction, Fraction]:
    """Of the samples of two formats; the same however they are cut."""
    shape = shape_of(a, b)
    return oracle.errors(sample(a, shape, 1)[1], sample(b, shape, 2)[1])


@pytest.mark.parametrize("weights", SIZES, ids=["whole", "columns", "wide columns", "rows"])
@pytest.mark.parametrize("b", FLOATS, ids=lambda fmt: fmt.name)
@pytest.mark.parametrize("a", FLOATS, ids=lambda fmt: fmt.name)
def test_errors_of_every_pair(a, b, weights: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    if weights is not None:
        in_blocks(monkeypatch, weights)
    shape = shape_of(a, b)
    left, right = sample(a, shape, 1)[0], sample(b, shape, 2)[0]
    (item,) = run(*pair(tmp_path, {"w": (a, shape, left)}, {"w": (b, shape, right)})).objects
    squared, squares, largest = errors(a, b)
    assert item.status == ("changed" if a == b else "re-encoded")
    assert item.metrics["max_abs_error"] == pytest.approx(float(largest), rel=1e-12)
    assert item.metrics["nmse"] == pytest.approx(float(squared / squares), rel=1e-12)
    assert item.metrics["sqnr_db"] == pytest.approx(10 * math.log10(squares / squared), rel=1e-12)
    if a == b:
        counts = oracle.changed(a, shape, left, right)
        assert {name: item.metrics[name] for name in counts} == counts
        assert item.metrics["undefined"] == {}
    else:
        assert item.metrics["undefined"]["changed_share"] == "the formats differ"
        assert item.metrics["changed_share"] is None


@pytest.mark.parametrize("weights", [None, 128, 512], ids=["whole", "columns", "rows"])
@pytest.mark.parametrize("fmt", FORMATS, ids=lambda fmt: fmt.name)
def test_a_few_changed_words(fmt, weights: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Single bits of the payload flipped: padding bits are no change, all others are, each at its place."""
    if weights is not None:
        in_blocks(monkeypatch, weights)
    shape = shape_of(fmt)
    rng = np.random.default_rng(3)
    left = finite_payload(fmt, shape, rng)
    right = left.copy()
    for byte in rng.integers(0, left.size, 7):
        right[byte] ^= 1 << int(rng.integers(0, 8))
    (item,) = run(*pair(tmp_path, {"w": (fmt, shape, left)}, {"w": (fmt, shape, right)})).objects
    counts = oracle.changed(fmt, shape, left, right)
    assert {name: item.metrics[name] for name in counts} == counts
    assert counts["changed_words"] or counts["changed_scales"]
    assert item.status == "changed"


@pytest.mark.parametrize(
    "fmt", [fmt for fmt in FORMATS if fmt not in DIRECT and fmt is not NVFP4], ids=lambda fmt: fmt.name
)
def test_padding_alone_is_re_packed(fmt, tmp_path: Path):
    shape = (5, 130)
    left = finite_payload(fmt, shape, np.random.default_rng(4))
    right = left.copy()
    if isinstance(fmt, GroupedFormat):
        right[5 * 256 // fmt.group * 32 - 1] = 1  # the last lanes of the last physical row
    else:
        right[5 * 130] = 1  # between the planes
    (item,) = run(*pair(tmp_path, {"w": (fmt, shape, left)}, {"w": (fmt, shape, right)})).objects
    assert item.status == "re-packed"
    assert item.a_identity != item.b_identity
    assert (item.metrics["changed_words"], item.metrics["changed_scales"]) == (0, 0)
    assert item.metrics["nmse"] == 0
    assert item.metrics["undefined"] == {"sqnr_db": "there is no error"}


def test_a_nan_never_compares_as_fine(tmp_path: Path):
    """The same NaN on both sides is the same word, and the error of the tensor is undefined all the same."""
    words = np.array([1.0, np.nan, 2.0, 3.0], "<f4")
    other = np.array([1.0, np.nan, 2.0, 3.5], "<f4")
    (item,) = run(
        *pair(
            tmp_path,
            {"w": (FP32, (4,), words.view(np.uint8))},
            {"w": (FP32, (4,), other.view(np.uint8))},
        )
    ).objects
    assert item.metrics["changed_words"] == 1
    assert item.metrics["first_change"] == [3]
    assert [item.metrics[name] for name in ("nmse", "max_abs_error", "sqnr_db")] == [None] * 3
    assert item.metrics["undefined"] == dict.fromkeys(
        ("nmse", "max_abs_error", "sqnr_db"), "values of A or B are not all finite"
    )
    assert RANKS[item.rank] == "unbounded"


def test_infinities_and_signed_zeros(tmp_path: Path):
    zero, negative = np.array([0, 0], "<u2"), np.array([0x8000, 0], "<u2")
    endless = np.array([0x7F80, 0x3F80], "<u2")
    a = {"zero": (BF16, (2,), zero.view(np.uint8)), "endless": (BF16, (2,), endless.view(np.uint8))}
    b = {"zero": (BF16, (2,), negative.view(np.uint8)), "endless": (BF16, (2,), zero.view(np.uint8))}
    found = by_name(run(*pair(tmp_path, a, b)))
    assert found["zero"].status == "changed"
    assert found["zero"].metrics["changed_words"] == 1
    assert found["zero"].metrics["max_abs_error"] == 0
    assert found["zero"].metrics["undefined"] == dict.fromkeys(
        ("nmse", "sqnr_db"), "every value of A is zero"
    )
    assert found["endless"].metrics["max_abs_error"] is None


def test_illegal_words_stand_for_no_value(tmp_path: Path):
    fmt = Q4G64_F16S
    left = finite_payload(fmt, (2, 128), np.random.default_rng(5))
    right = left.copy()
    scales = canonical_layout(fmt).planes(fmt, (2, 128))[-1].span
    right[scales.offset : scales.offset + 2] = (0x00, 0xFC)  # minus infinity
    (item,) = run(*pair(tmp_path, {"w": (fmt, (2, 128), left)}, {"w": (fmt, (2, 128), right)})).objects
    assert item.metrics["changed_scales"] == 1
    assert item.metrics["nmse"] is None
    assert item.metrics["undefined"]["nmse"].startswith("B: there are words that stand for no value: ")


def test_integers_are_compared_by_their_words(tmp_path: Path):
    left, right = np.arange(6, dtype="<u4"), np.array([0, 1, 9, 3, 4, 9], "<u4")
    a = {"ids": (I32, (2, 3), left.view(np.uint8)), "mixed": (I32, (6,), left.view(np.uint8))}
    b = {"ids": (I32, (2, 3), right.view(np.uint8)), "mixed": (FP32, (6,), left.view(np.uint8))}
    found = by_name(run(*pair(tmp_path, a, b)))
    assert found["ids"].metrics["changed_words"] == 2
    assert found["ids"].metrics["first_change"] == [0, 2]
    assert found["ids"].metrics["undefined"]["nmse"] == "integers are compared by their words"
    assert found["mixed"].status == "re-encoded"
    assert found["mixed"].metrics["undefined"]["nmse"] == "integers are compared by their words"
