"""The consumer operation: a quantized matrix times a vector of BF16 words, its oracle, and what counts as right.

The oracle is the product in binary64 of the public activation and the exactly reconstructed weight (tensor-formats
section 12). A consumer may fuse, reorder and stage as it likes; the criterion `FP32_SUM_TO_BF16` judges its words.

**The criterion.** Let r be the exact product of a row, S = sum |a_k| |w_k|, m the number of a_k that are not zero,
A = sum |a_k|, u = 2**-24. An output word is right when some number within

    E = g S + 2**-149 (m + 1 + A),    g = n u / (1 - n u),    n = m + 4

of r rounds to it, to nearest. So |y - r| <= g S + 2**-149 (m + 1 + A) + half a BF16 step at y, which is at most
2**-8 |y| unless y is subnormal.

**Why no consumer that sums in binary32 fails it, whatever its order.** Every way to add m numbers is a binary tree in
which a term passes at most m - 1 additions, each of which multiplies what it carries by 1 + d, |d| <= u; adding a zero
rounds nothing. Before and after, a term meets at most four roundings more: of its product, of its weight (NVFP4), and
of a scale or of a divisor's reciprocal that is applied to a partial sum. A product of n - 1 such factors differs from 1
by less than g, and the one left over covers what binary64 loses in the oracle itself, at most 2**-53 for each of fewer
than 2**20 terms. Where a result is subnormal the error is absolute instead, at most 2**-150 for each of m products and
for what is scaled at the end (sums of subnormals are exact), and 2**-150 |a_k| for a weight whose own binary32 word is
subnormal; growing on the way at most doubles these. What is scaled at the end brings no more: codes, with the block
scales of NVFP4, times activations are multiples of 2**-143, so where they are subnormal they are exact. That no sum
overflows before it is scaled is the consumer's affair.

Nothing else is allowed for: a lost subnormal, a scale that went through BF16 or a code in a neighbour's place shows
wherever S is small beside what it changes, and a sparse activation makes m small. Where it is not small nothing shows:
one subnormal scale lost among thousands of ordinary ones is below half a BF16 step of the output. A matrix of subnormal
scales alone is what a consumer has to be asked as well: there a single lost group shows.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from ninfer_core.formats import GroupedFormat
from ninfer_core.kernels.values import GroupedPlanes
from ninfer_core.layouts import row_split
from ninfer_core.layouts.block_scale import unpack_codes, unswizzle
from ninfer_core.words import (
    BFLOAT16,
    BINARY32,
    E2M1_AS_BINARY32,
    E4M3FN_AS_BINARY32,
    Words8,
    Words16,
    expand_bf16,
    expand_binary16,
    finite_value,
    is_finite,
    narrow_binary32,
    values_of_binary32,
)

Values = NDArray[np.float64]

UNIT: Final = 2.0**-24  # half a unit in the last place of 1 in binary32
SMALLEST: Final = 2.0**-149  # the smallest binary32 number
OTHER_ROUNDINGS: Final = 5  # the four of a term beside its additions, and one for the oracle's own
MOST_TERMS: Final = 1 << 20
LARGEST_SUM: Final = 2.0**127  # no partial sum of a row may come near the end of binary32


@dataclass(frozen=True, slots=True)
class Reference:
    """What the outputs of one product should be: for each row r, and how far from it a binary32 sum may lie."""

    products: Values  # [N]
    slack: Values  # [N], E of the criterion


@dataclass(frozen=True, slots=True)
class Wrong:
    """One refused output; the interval holds every number that a right consumer may round."""

    row: int
    word: int
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Judgement:
    """How many outputs the criterion refuses, and the first of them."""

    outputs: int
    wrong: int
    first: Wrong | None


_E2M1: Final = values_of_binary32(E2M1_AS_BINARY32)
_E4M3FN: Final = values_of_binary32(E4M3FN_AS_BINARY32)


def weights_grouped(fmt: GroupedFormat, columns: int, planes: GroupedPlanes) -> Values:
    """Logical weights [N, K] of a block of a grouped matrix, exact."""
    words = row_split.unpack(fmt, columns, planes.base, planes.high, planes.scales)
    scales = values_of_binary32(expand_binary16(words.scales))
    return np.multiply(words.codes, np.repeat(scales, fmt.group, axis=1), dtype=np.float64)[:, :columns]


def weights_row(codes: Words8, scales: Words16) -> Values:
    """Weights [N, K] of FP8 rows: the product, rounded to binary32 (tensor-formats 3.4)."""
    exact = _E4M3FN[codes] * values_of_binary32(expand_bf16(scales))[:, None]
    return values_of_binary32(narrow_binary32(exact.view(np.uint64)))


def weights_nvfp4(codes: Words8, scales: Words8, divisor: int, columns: int) -> Values:
    """Weights [N, K] of whole tiles, scales swizzled as they are stored; the quotient (3.3) to 53 bits."""
    values = _E2M1[unpack_codes(codes.reshape(-1), columns)]
    blocks = _E4M3FN[unswizzle(scales.reshape(-1), values.shape[0], columns)]
    return values * np.repeat(blocks, 16, axis=1) / float(finite_value(BINARY32, divisor))


def reference(weights: Values, activation: Words16) -> Reference:
    """The oracle: weights [N, K] times K BF16 words.

    Raises: ValueError, where the criterion says nothing: an activation or a weight that is no number, a row whose
    sum of magnitudes reaches 2**127, 2**20 terms or more.
    """
    if not all(is_finite(BFLOAT16, int(word)) for word in activation) or not np.isfinite(weights).all():
        raise ValueError("the criterion is for activations and weights that are numbers")
    vector = values_of_binary32(expand_bf16(activation))
    magnitudes = np.abs(weights) @ np.abs(vector)
    terms = int(np.count_nonzero(vector))
    if terms >= MOST_TERMS or not (magnitudes < LARGEST_SUM).all():
        raise ValueError(
            "the criterion is for fewer than 2**20 terms whose magnitudes add up to less than 2**127"
        )
    roundings = (terms - 1 + OTHER_ROUNDINGS) * UNIT
    slack = roundings / (1 - roundings) * magnitudes + SMALLEST * (terms + 1 + np.abs(vector).sum())
    return Reference(weights @ vector, slack)


def judge(expected: Reference, out: Words16) -> Judgement:
    """Hold BF16 words [N] to the criterion."""
    if out.shape != expected.products.shape:
        raise ValueError(f"{out.size} outputs do not go with {expected.products.size} rows")
    low, high = expected.products - expected.slack, expected.products + expected.slack
    magnitude = (out & 0x7FFF).astype(np.int64)
    step = np.where(out >= 0x8000, -magnitude, magnitude)  # both zeros are step 0
    right = (low <= _between(step, 1)) & (high >= _between(step, -1)) & (magnitude < BFLOAT16.exponent_mask)
    refused = np.flatnonzero(~right)
    if refused.size == 0:
        return Judgement(out.size, 0, None)
    row = int(refused[0])
    first = Wrong(row, int(out[row]), float(low[row]), float(high[row]))
    return Judgement(out.size, refused.size, first)


def _between(steps: NDArray[np.int64], direction: int) -> Values:
    """Half way from BF16 numbers to their neighbours, exact; what follows the largest is 2**128."""
    return (_number(steps) + _number(steps + direction)) / 2


def _number(steps: NDArray[np.int64]) -> Values:
    magnitude = np.abs(steps)
    exponent = magnitude >> 7
    significand = np.where(exponent > 0, magnitude & 0x7F | 0x80, magnitude).astype(np.float64)
    values: Values = np.copysign(np.ldexp(significand, np.maximum(exponent, 1) - 134), steps)
    return values


def activations(columns: int, seed: int) -> tuple[Words16, ...]:
    """Vectors of BF16 words that a consumer is judged with: one that is dense, and sparse ones.

    The dense one meets every lane. Few terms leave little slack, and where the terms of some row nearly cancel, an
    error in a single weight stands out: that takes some hundred rows.
    """
    random = np.random.default_rng(seed)

    def words(count: int) -> Words16:
        sign, exponent = random.integers(0, 2, count) << 15, random.integers(124, 130, count) << 7
        return (sign | exponent | random.integers(0, 128, count)).astype(np.uint16)

    found = [words(columns)]
    for terms in (1, 2, 4, 8):
        sparse = np.zeros(columns, np.uint16)
        lanes = random.choice(columns, min(terms, columns), replace=False)
        sparse[lanes] = words(lanes.size)
        found.append(sparse)
    last = np.zeros(columns, np.uint16)
    last[-1] = 0x3F80
    return (*found, last)
