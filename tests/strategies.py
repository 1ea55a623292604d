"""Hypothesis strategies for words, matrices and planes: the values that rounding and range rules turn on."""

from fractions import Fraction

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from ninfer_core.formats import GROUPED, GroupedFormat
from ninfer_core.kernels.values import SOURCE_DTYPES, GroupedPlanes
from ninfer_core.layouts.row_split import groups_per_row, high_bytes
from ninfer_core.words import BINARY16, FloatFormat, finite_value, round_to

DTYPES: dict[str, type[np.unsignedinteger]] = {
    "BF16": np.uint16,
    "F16": np.uint16,
    "F32": np.uint32,
    "F64": np.uint64,
}

WIDTHS = st.sampled_from([1, 2, 31, 32, 33, 63, 64, 65, 95, 96, 127, 128, 129, 160, 200, 256, 257, 320])
"""Row lengths around strips, groups and the alignment of 128."""


def grouped_formats() -> st.SearchStrategy[GroupedFormat]:
    """Any grouped format."""
    return st.sampled_from(GROUPED)


def finite_words(fmt: FloatFormat, largest: int | None = None) -> st.SearchStrategy[int]:
    """Finite words of a type up to a magnitude; subnormals, zeros and the largest values come often."""
    top = fmt.largest_finite if largest is None else largest
    magnitude = st.one_of(
        st.integers(0, top),
        st.integers(0, (1 << fmt.fraction_bits) - 1),
        st.just(0),
        st.integers(top - 3, top),
    )
    return st.builds(lambda word, sign: word | sign * fmt.sign_bit, magnitude, st.integers(0, 1))


LARGEST_BINARY64 = 0x47EFFFFFEFFFFFFF  # just below halfway from the largest binary32 value to 2**128


def source_words(dtype: str) -> st.SearchStrategy[int]:
    """Words that stay finite when rounded to binary32."""
    return finite_words(SOURCE_DTYPES[dtype], LARGEST_BINARY64 if dtype == "F64" else None)


def any_words(fmt: FloatFormat) -> st.SearchStrategy[int]:
    """Any word, infinities and NaN included."""
    special = st.integers(fmt.exponent_mask, fmt.sign_bit - 1)
    return st.one_of(finite_words(fmt), special, special.map(lambda word: word | fmt.sign_bit))


def _nearest(fmt: FloatFormat, exact: Fraction, negative: bool, nudge: int) -> int:
    word = round_to(fmt, exact, 0)
    word = min(max(word + nudge, 0), fmt.largest_finite)
    return word | int(negative) * fmt.sign_bit


@st.composite
def lanes_of_a_group(draw: st.DrawFn, fmt: GroupedFormat, dtype: str, lanes: int) -> list[int]:
    """Source words of one group: codes and half codes of a chosen scale, a few units in the last place off."""
    source = SOURCE_DTYPES[dtype]
    if draw(st.integers(0, 7)) == 0:
        return draw(st.lists(source_words(dtype), min_size=lanes, max_size=lanes))
    scale_word = draw(
        st.one_of(
            st.integers(0, 0x7BFF), st.integers(1, 0x3FF), st.integers(0x7BF0, 0x7BFF), st.integers(0, 3)
        )
    )
    scale = finite_value(BINARY16, scale_word) * draw(
        st.sampled_from([Fraction(1), Fraction(1), Fraction(1, 3)])
    )
    seed = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    halves = seed.integers(0, 2 * fmt.qmax + 1, lanes)  # code + half steps: ties
    halves[seed.integers(lanes)] = 2 * fmt.qmax
    signs, nudges = seed.integers(0, 2, lanes), seed.integers(-1, 2, lanes)
    return [
        _nearest(source, scale * int(h) / 2, bool(s), int(n))
        for h, s, n in zip(halves, signs, nudges, strict=True)
    ]


@st.composite
def finite_rows(
    draw: st.DrawFn, fmt: GroupedFormat, dtype: str, max_rows: int = 3
) -> NDArray[np.unsignedinteger]:
    """A matrix [N, K] of finite source words; K is often not a multiple of 128."""
    rows, columns = draw(st.integers(1, max_rows)), draw(WIDTHS)
    matrix = np.zeros((rows, columns), DTYPES[dtype])
    for row in range(rows):
        for start in range(0, columns, fmt.group):
            lanes = min(fmt.group, columns - start)
            if draw(st.integers(0, 9)):  # else an all-zero group
                matrix[row, start : start + lanes] = draw(lanes_of_a_group(fmt, dtype, lanes))
    return matrix


@st.composite
def planes(draw: st.DrawFn, fmt: GroupedFormat, rows: int, columns: int) -> GroupedPlanes:
    """Planes that are valid: scales of every size, zero scales over zero codes, padding zero."""
    seed = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    per_row = groups_per_row(fmt, columns)
    scales = seed.integers(0, 0x7C00, (rows, per_row)).astype(np.uint16)
    scales[seed.random((rows, per_row)) < draw(st.sampled_from([0.0, 0.2, 1.0]))] = 0
    codes = seed.integers(fmt.qmin, fmt.qmax + 1, (rows, per_row, fmt.group))
    codes[scales == 0] = 0
    lanes = np.arange(per_row * fmt.group).reshape(per_row, fmt.group)
    codes[:, lanes >= columns] = 0
    scales[:, lanes[:, 0] >= columns] = 0
    return pack(fmt, codes.reshape(-1, fmt.group), scales.reshape(-1))


def pack(fmt: GroupedFormat, codes: NDArray[np.signedinteger], scales: NDArray[np.uint16]) -> GroupedPlanes:
    """Planes of groups of codes [groups, group], written bit by bit as the layout says."""
    words = codes.astype(np.int64) & ((1 << fmt.code_bits) - 1)
    if fmt.code_bits == 8:
        return GroupedPlanes(words.astype(np.uint8).reshape(-1), np.empty(0, np.uint8), scales)
    low = words & 15
    base = (low[:, 0::2] | low[:, 1::2] << 4).astype(np.uint8).reshape(-1)
    upper = (words >> 4)[:, :, None] >> np.arange(fmt.code_bits - 4) & 1
    high = np.packbits(upper.reshape(-1).astype(np.uint8), bitorder="little")
    assert high.size == scales.size * high_bytes(fmt)
    return GroupedPlanes(base, high, scales)
