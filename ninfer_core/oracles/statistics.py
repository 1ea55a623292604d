"""Counts over logical words, one word after the other."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from ninfer_core.formats import GroupedFormat
from ninfer_core.words import FloatFormat, finite_value, i32_value, is_finite


@dataclass(frozen=True, slots=True)
class CodeCounts:
    """How often each code occurs, and what the scales are like; a group is what owns one scale."""

    codes: dict[
        int, int
    ]  # signed codes of grouped formats, code words of the others; none with a count of zero
    groups: int
    zero_scales: int
    zero_groups: int
    smallest_scale: int | None  # words that are not zero
    largest_scale: int | None


@dataclass(frozen=True, slots=True)
class WordCounts:
    """What direct words stand for; the extremes are finite words by value, a zero given as +0."""

    count: int
    positive_zeros: int
    negative_zeros: int
    nans: int
    infinities: int
    smallest: int | None
    largest: int | None


def _count(groups: Iterable[tuple[int, Sequence[int]]], zeros: tuple[int, ...]) -> CodeCounts:
    codes: Counter[int] = Counter()
    scales, empty = [], 0
    for scale, lanes in groups:
        codes.update(lanes)
        scales.append(scale)
        empty += all(code in zeros for code in lanes)
    some = [scale for scale in scales if scale]
    extremes = (min(some, default=None), max(some, default=None))
    return CodeCounts(dict(codes), len(scales), len(scales) - len(some), empty, *extremes)


def count_grouped(fmt: GroupedFormat, codes: NDArray[Any], scales: NDArray[Any]) -> CodeCounts:
    """Of logical codes [N, K] and scale words [N, groups]; groups wholly past K are left out."""
    columns = codes.shape[1]
    starts = range(0, columns, fmt.group)
    return _count(
        (
            (int(scales[row, i]), [int(code) for code in codes[row, start : start + fmt.group]])
            for row in range(len(codes))
            for i, start in enumerate(starts)
        ),
        (0,),
    )


def count_rows(codes: NDArray[Any], scales: NDArray[Any]) -> CodeCounts:
    """Of FP8 rows: E4M3FN words [N, K] and BF16 words [N]."""
    return _count(((int(scale), row.tolist()) for scale, row in zip(scales, codes, strict=True)), (0, 0x80))


def count_nvfp4(codes: NDArray[Any], scales: NDArray[Any]) -> CodeCounts:
    """Of E2M1 words [N, K] and E4M3FN words [N, K / 16], both in natural order."""
    groups = codes.reshape(-1, 16)
    pairs = zip(scales.reshape(-1), groups, strict=True)
    return _count(((int(scale), group.tolist()) for scale, group in pairs), (0, 8))


def count_floats(fmt: FloatFormat, words: Iterable[int]) -> WordCounts:
    """Of floating-point words."""
    every = list(words)
    finite = [word for word in every if is_finite(fmt, word)]
    nans = sum(word & (fmt.sign_bit - 1) > fmt.exponent_mask for word in every)
    # A zero of either sign is given as +0.
    by_value = {finite_value(fmt, word): word if word & (fmt.sign_bit - 1) else 0 for word in finite}
    return WordCounts(
        len(every),
        every.count(0),
        every.count(fmt.sign_bit),
        nans,
        len(every) - len(finite) - nans,
        by_value[min(by_value)] if by_value else None,
        by_value[max(by_value)] if by_value else None,
    )


def count_integers(words: Iterable[int]) -> WordCounts:
    """Of 32-bit two's complement words."""
    every = list(words)
    smallest, largest = min(every, key=i32_value, default=None), max(every, key=i32_value, default=None)
    return WordCounts(len(every), every.count(0), 0, 0, 0, smallest, largest)
