"""Decoded values against those of a reference: words that differ, by how much, and what the differences look like.

The reference's type is the declared output type: decoded values are cast to it last (scheme rules R14) and compared
word by word, so that a NaN equals only the same NaN. Sums run over blocks of one size, merged in order.
"""

import math
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from ninfer_core.findings import Findings
from ninfer_core.schemes.form import Array, Shape, Values

OUTPUT_TYPES: Final = {"float32": 8, "float16": 4, "bfloat16": 4, "float64": 16}  # hex digits of a word
_BLOCK: Final = 1 << 16
_MOST_SORTED: Final = 1 << 24
_RATIO_SAMPLE: Final = 4096
_LEAST: Final = {"float32": 2.0**-149, "float16": 2.0**-24, "bfloat16": 2.0**-133, "float64": 0.0}  # above 0
_RATIO_TOLERANCE: Final = 1e-3  # a scale that went through a narrow type is still one constant ratio


@dataclass(frozen=True, slots=True)
class Difference:
    """One value that is another than the reference's, with the words of both in the reference's type."""

    index: tuple[int, ...]
    found: float
    expected: float
    found_word: int
    expected_word: int


@dataclass(frozen=True, slots=True)
class Measures:
    """What a comparison of `values` pairs gave.

    Errors are None where a pair that differs, or any pair where a bound is given, is NaN or infinite on a side
    (`not_finite` counts those), and where there is no pair; SQNR also where there is no error or no signal.
    """

    values: int
    dtype: str
    differing: int  # by words
    beyond: int  # further apart than `within`, or not to be ordered; without a bound, all that differ
    within: float
    not_finite: int
    max_abs_error: float | None
    rmse: float | None
    sqnr_db: float | None
    first: Difference | None  # of those beyond
    ratio: float | None  # found over expected, where it is one for all pairs of numbers and not 1
    reordered: bool  # the same words in another order


def comparable(shape: Shape, reference: Array, findings: Findings, what: str = "reference") -> bool:
    """Whether a reference, or `what` it is, can be held against values of `shape`; findings say why not."""
    if reference.dtype.name not in OUTPUT_TYPES:
        expected = " or ".join(OUTPUT_TYPES)
        found = reference.dtype.name
        message = f"The {what} holds {found}, which no decoder gives."
        findings.add("scheme.reference_mismatch", message, expected=expected, found=found)
        return False
    if reference.shape != shape:
        found_shape = list(reference.shape)
        message = f"The {what} has the shape {found_shape}, the decoded tensor {list(shape)}."
        if reference.size == math.prod(shape):  # blocks alone imply no rows
            message += " Both have as many values: say with the parts which shape they are of."
        findings.add("scheme.reference_mismatch", message, expected=list(shape), found=found_shape)
        return False
    return True


def measure(values: Values, reference: Array, within: float = 0.0) -> Measures:
    """`values` against a reference that is `comparable`; pairs up to `within` apart are counted, not judged."""
    with np.errstate(all="ignore"):  # NaN and infinities are words like others here
        return _measure(
            values.reshape(-1), np.ascontiguousarray(reference).reshape(-1), reference.shape, within
        )


def report(measures: Measures, findings: Findings) -> None:
    """One finding for all values that are not the reference's, with the first of them."""
    first = measures.first
    if first is None:
        return
    bound = f"{measures.within:g} apart at most" if measures.within else "every word"
    clue = ""
    if measures.reordered:
        clue = " The same values stand there in another order."
    elif measures.ratio is not None:
        clue = f" Every value is {measures.ratio:.7g} times the reference."
    digits = OUTPUT_TYPES[measures.dtype]
    findings.add(
        "scheme.value_differs",
        f"{measures.beyond:,} of {measures.values:,} values differ from the reference ({bound}); the first at "
        f"{list(first.index)} is {first.found:.9g}, not {first.expected:.9g}.{clue}",
        where={"index": list(first.index)},
        expected=f"{first.expected:.9g} (0x{first.expected_word:0{digits}x})",
        found=f"{first.found:.9g} (0x{first.found_word:0{digits}x})",
        count=measures.beyond,
    )


def measures_json(measures: Measures) -> dict[str, Any]:
    """Measures as strict JSON values: what is no number is null."""
    first = measures.first
    return {
        "values": measures.values,
        "dtype": measures.dtype,
        "differing": measures.differing,
        "beyond": measures.beyond,
        "within": measures.within,
        "not_finite": measures.not_finite,
        "max_abs_error": _number(measures.max_abs_error),
        "rmse": _number(measures.rmse),
        "sqnr_db": _number(measures.sqnr_db),
        "first": None
        if first is None
        else {
            "index": list(first.index),
            "found": _number(first.found),
            "expected": _number(first.expected),
            "found_word": f"0x{first.found_word:x}",
            "expected_word": f"0x{first.expected_word:x}",
        },
        "ratio": _number(measures.ratio),
        "reordered": measures.reordered,
    }


def _measure(ours: Array, theirs: Array, shape: Shape, within: float) -> Measures:
    dtype = theirs.dtype
    word = np.dtype(f"u{dtype.itemsize}")
    sums = _Sums(within)
    first: int | None = None
    for begin in range(0, ours.size, _BLOCK):
        expected = theirs[begin : begin + _BLOCK]
        found = ours[begin : begin + _BLOCK].astype(dtype)
        unequal = found.view(word) != expected.view(word)
        beyond = sums.add(found.astype(np.float64), expected.astype(np.float64), unequal)
        if first is None and beyond.any():
            first = begin + int(np.argmax(beyond))
    return Measures(
        ours.size,
        dtype.name,
        sums.differing,
        sums.beyond,
        within,
        sums.not_finite,
        *sums.errors(ours.size),
        None if first is None else _difference(ours, theirs, first, shape, word),
        _ratio(ours, theirs) if sums.beyond else None,
        bool(sums.beyond) and ours.size <= _MOST_SORTED and _reordered(ours, theirs, word),
    )


class _Sums:
    """What the blocks add up to; by words, a pair of equal ones has no error, whatever it holds.

    A bound orders numbers, and what cannot be ordered is beyond it: NaN and infinity, beside themselves too.
    """

    def __init__(self, within: float) -> None:
        self.within = within
        self.differing = self.beyond = self.not_finite = 0
        self.squared_error = self.squares = self.largest = 0.0

    def add(self, ours: Array, theirs: Array, unequal: Array) -> Array:
        """Take a block in; which pairs are further apart than `within`."""
        apart = np.abs(np.where(unequal, ours - theirs, 0.0))
        beyond, finite = unequal, np.isfinite(apart)
        if self.within:
            finite = np.isfinite(ours) & np.isfinite(theirs)
            beyond = ~(finite & (apart <= self.within))
        self.differing += int(np.count_nonzero(unequal))
        self.beyond += int(np.count_nonzero(beyond))
        self.not_finite += int(np.count_nonzero(~finite))
        self.largest = max(self.largest, float(np.max(apart, where=finite, initial=0.0)))
        self.squared_error += float(np.sum(apart * apart, where=finite))
        self.squares += float(np.sum(theirs * theirs, where=np.isfinite(theirs)))
        return beyond

    def errors(self, count: int) -> tuple[float | None, float | None, float | None]:
        """Largest error, RMSE and SQNR in decibels."""
        if self.not_finite or not count:
            return None, None, None
        sqnr = None
        if 0 < self.squares < math.inf and 0 < self.squared_error < math.inf:  # whose quotient may be none
            sqnr = 10 * (math.log10(self.squares) - math.log10(self.squared_error))
        return self.largest, math.sqrt(self.squared_error / count), sqnr


def _ratio(ours: Array, theirs: Array) -> float | None:
    """The ratio of all pairs of numbers, where there is one and it is not 1: guessed from a sample, then held to all."""
    step = max(1, ours.size // _RATIO_SAMPLE)
    some, others = ours[::step].astype(np.float64), theirs[::step].astype(np.float64)
    both = np.isfinite(some) & np.isfinite(others) & (some != 0) & (others != 0)
    if np.count_nonzero(both) < 2:
        return None
    middle = float(np.median(some[both] / others[both]))
    if abs(middle - 1) <= _RATIO_TOLERANCE:
        return None
    # A step may meet the same column of every row, so that a sample alone says little of the others.
    least = _LEAST[theirs.dtype.name] * abs(middle) + _LEAST[ours.dtype.name]
    for begin in range(0, ours.size, _BLOCK):
        found = ours[begin : begin + _BLOCK].astype(np.float64)
        expected = theirs[begin : begin + _BLOCK].astype(np.float64) * middle
        numbers = np.isfinite(found)
        if not np.array_equal(numbers, np.isfinite(expected)):
            return None
        apart, within = np.abs(found - expected), _RATIO_TOLERANCE * np.abs(expected) + least
        if not np.all(apart <= within, where=numbers):
            return None
    return middle


def _reordered(ours: Array, theirs: Array, word: np.dtype[Any]) -> bool:
    words = np.sort(ours.astype(theirs.dtype).view(word))
    return bool(np.array_equal(words, np.sort(theirs.view(word))))


def _difference(ours: Array, theirs: Array, at: int, shape: Shape, word: np.dtype[Any]) -> Difference:
    index = tuple(int(place) for place in np.unravel_index(at, shape))
    found = ours[at : at + 1].astype(theirs.dtype)
    return Difference(
        index,
        float(found.astype(np.float64)[0]),
        float(theirs[at : at + 1].astype(np.float64)[0]),
        int(found.view(word)[0]),
        int(theirs[at : at + 1].view(word)[0]),
    )


def _number(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None
