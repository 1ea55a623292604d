"""Counts and sums as answers, whether a kernel or an oracle gave them."""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from ninfer_core.formats import BlockFormat, GroupedFormat, RowFormat
from ninfer_core.kernels.values import CodeStatistics, ErrorSums, WordStatistics
from ninfer_core.oracles.parity import Sums
from ninfer_core.oracles.statistics import CodeCounts, WordCounts
from ninfer_core.selfcheck.questions import Answer, Part


def code_histogram(
    fmt: GroupedFormat | BlockFormat | RowFormat, counts: Iterable[CodeCounts]
) -> NDArray[np.int64]:
    """How often each code occurs in all of them, in the places of `CodeStatistics`."""
    empty = CodeStatistics.empty(fmt)
    histogram = np.zeros_like(empty.histogram)
    for one in counts:
        for code, times in one.codes.items():
            histogram[code - empty.first_code] += times
    return histogram


def code_answer(histogram: NDArray[np.int64], counts: CodeCounts | CodeStatistics) -> Answer:
    """Of codes and their groups."""
    names = ("groups", "zero_scales", "zero_groups")
    parts = [Part(name.replace("_", " "), np.array(getattr(counts, name))) for name in names]
    extremes = _extremes("scale", counts.smallest_scale, counts.largest_scale)
    return Answer("counted", (Part("histogram", histogram.copy(), ("place",)), *parts, *extremes))


def word_answer(counts: WordCounts | WordStatistics) -> Answer:
    """Of direct words."""
    names = ("count", "positive_zeros", "negative_zeros", "nans", "infinities")
    parts = [Part(name.replace("_", " "), np.array(getattr(counts, name))) for name in names]
    return Answer("counted", (*parts, *_extremes("word", counts.smallest, counts.largest)))


def _extremes(what: str, smallest: int | None, largest: int | None) -> tuple[Part, ...]:
    """The extremes; -1 where there are none."""
    return tuple(
        Part(f"{which} {what}", np.array(-1 if word is None else word, np.int64))
        for which, word in (("smallest", smallest), ("largest", largest))
    )


def sums_answer(sums: Sums | ErrorSums) -> Answer:
    """Error sums, as the words of their binary64 numbers."""
    names = ("squared_error", "source_squares", "value_squares", "largest_error")
    parts = (
        Part(f"{name.replace('_', ' ')} as binary64", np.array(getattr(sums, name)).view(np.uint64), (), True)
        for name in names
    )
    return Answer("summed", tuple(parts))
