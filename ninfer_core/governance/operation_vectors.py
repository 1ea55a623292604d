"""What operations beside reconstruction answer to fixed questions: the meaning of their profiles, from the slow oracles."""

from collections.abc import Callable
from dataclasses import asdict
from fractions import Fraction
from typing import Any, Final

import numpy as np

from ninfer_core.compute import ComputeProfile
from ninfer_core.encoders import MAXABS_BF16S_RECIP_E4M3FN_RNE_V1, MAXABS_F16_RECIP_RNE_V1
from ninfer_core.encoders.known_answers import known_answers
from ninfer_core.encoders.maxabs_f16 import to_binary32
from ninfer_core.formats import BlockFormat, DirectFormat, GroupedFormat, NumericFormat
from ninfer_core.oracles.checks import check_block_scales, check_grouped, check_rows
from ninfer_core.oracles.parity import Sums, sum_grouped, sum_words
from ninfer_core.oracles.statistics import (
    CodeCounts,
    count_floats,
    count_grouped,
    count_integers,
    count_nvfp4,
    count_rows,
)
from ninfer_core.words import BFLOAT16, BINARY16, BINARY32, BINARY64, FloatFormat, finite_value

_SCALES: Final = (0, 1, 0x3FF, 0x3C00, 0x7BFF, 0x7C00, 0x8000)
_ROW_SCALES: Final = (0, 1, 0x3F80, 0x7F7F, 0x7F80, 0x8000)
_BLOCK_SCALES: Final = (0, 1, 0x38, 0x7E, 0x7F, 0x80)
_WORDS32: Final = (0, 1, 0x80000000, 0x3F800000, 0xBF800001, 0x7F7FFFFF, 0x7F800000, 0xFF800000, 0x7FC00000)
_WIDE: Final = (
    0x3FF0000000000001,
    0x36A0000000000000,
    0x3690000000000000,
    0x47EFFFFFF0000000,
    0x7FF0000000000000,
)


def operation_vectors(profile: ComputeProfile) -> list[Any]:
    """Questions and answers for every format of a profile that is not a reconstruction."""
    return _ANSWERS[profile.operation](profile)


def _encode(profile: ComputeProfile) -> list[Any]:
    if not isinstance(profile.formats[0], GroupedFormat):
        return known_answers(MAXABS_BF16S_RECIP_E4M3FN_RNE_V1)
    rounded = [[f"{word:016x}", to_binary32(BINARY64, word)] for word in _WIDE]
    return [*known_answers(MAXABS_F16_RECIP_RNE_V1), ["F64", rounded]]


def _check(profile: ComputeProfile) -> list[Any]:
    return [[fmt.name, *_masks(fmt)] for fmt in profile.formats]


def _masks(fmt: NumericFormat) -> list[Any]:
    """Scale words with a code that stands for zero and one that does not, and what a grouped row has beside."""
    match fmt:
        case GroupedFormat():
            codes, answers = np.zeros((1, 128), np.int64), []
            for scale in _SCALES:
                for place, code in ((0, 0), (1, 1), (2, fmt.qmin), (2, -(1 << (fmt.code_bits - 1))), (3, 1)):
                    lanes, scales = codes.copy(), np.zeros((1, 128 // fmt.group), np.int64)
                    lanes[0, place], scales[0, 0] = code, scale
                    answers.append([place, code, scale, check_grouped(fmt, 3, lanes, scales)])
            scales = np.zeros((1, 128 // fmt.group), np.int64)
            scales[0, -1] = 1
            return [*answers, ["a scale past K", check_grouped(fmt, 3, codes, scales)]]
        case BlockFormat():
            return [[scale, check_block_scales(np.array([scale]))] for scale in _BLOCK_SCALES]
        case _:
            return [
                [code, scale, check_rows(np.array([[code]]), np.array([scale]))]
                for scale in _ROW_SCALES
                for code in (0, 0x80, 1, 0x7E, 0x7F, 0xFF)
            ]


def _statistics(profile: ComputeProfile) -> list[Any]:
    return [[fmt.name, _counts(fmt)] for fmt in profile.formats]


def _counts(fmt: NumericFormat) -> Any:
    match fmt:
        case DirectFormat(name="I32"):
            return asdict(count_integers(_WORDS32))
        case DirectFormat():
            own: FloatFormat = BFLOAT16 if fmt.word_bits == 16 else BINARY32
            return asdict(count_floats(own, [word >> (32 - own.bits) for word in _WORDS32]))
        case GroupedFormat():
            codes, scales = _grouped(fmt)
            return _shown(count_grouped(fmt, codes, scales))
        case BlockFormat():
            return _shown(count_nvfp4(np.arange(32).reshape(1, 32) % 11, np.array([[0, 0x38]])))
        case _:
            return _shown(count_rows(np.array([[0, 0x80, 0x7E], [0, 0x80, 0]]), np.array([0x3F80, 0])))


def _grouped(fmt: GroupedFormat) -> tuple[Any, Any]:
    """Two rows of 160 codes: one with every kind of code, one with a zero scale over zero codes."""
    span = len(fmt.codes)
    codes = np.array([[fmt.qmin + (7 * lane + 3) % span for lane in range(160)], [0] * 160])
    scales = np.zeros((2, 256 // fmt.group), np.int64)
    scales[0, : -(-160 // fmt.group)] = [0x2E66 + 0x111 * i for i in range(-(-160 // fmt.group))]
    scales[1, 0] = 1
    return codes, scales


def _shown(counts: CodeCounts) -> dict[str, Any]:
    return {**asdict(counts), "codes": [[code, counts.codes[code]] for code in sorted(counts.codes)]}


def _parity(profile: ComputeProfile) -> list[Any]:
    answers = []
    for fmt in profile.formats:
        if isinstance(fmt, GroupedFormat):
            codes, scales = _grouped(fmt)
            values = [[float(finite_value(BINARY16, int(word))) for word in row] for row in scales]
            source = [_source(160, 1), _source(160, 2)]
            answers.append([fmt.name, _hex(sum_grouped(fmt.group, source, codes.tolist(), values))])
        else:
            # Long enough for a second tile, which a row of the grouped formats above is not.
            x, y = _source(4_300, 3), _source(4_300, 4)
            answers.append([fmt.name, _hex(sum_words([x], [y]))])
    return answers


def _source(count: int, seed: int) -> list[float]:
    """Values that BF16 holds exactly, of both signs and a few magnitudes: sums of their squares are rounded."""
    drawn = [(1 + (seed * 7_919 + 104_729 * i) % 255, (seed + 31 * i) % 40 - 30) for i in range(count)]
    return [(-1.0) ** (mantissa % 2) * mantissa * 2.0**exponent for mantissa, exponent in drawn]


def _hex(sums: Sums) -> list[str]:
    values = (sums.squared_error, sums.source_squares, sums.value_squares, sums.largest_error)
    return [value.hex() for value in values]


def _matvec(profile: ComputeProfile) -> list[Any]:
    """Exact products of two weights, under an ordinary and the smallest scale, and an activation."""
    answers = []
    activation = [Fraction(3, 2), Fraction(-5, 4)]
    for fmt in profile.formats:
        smallest = [Fraction(1, 1 << 24), Fraction(1)] if isinstance(fmt, GroupedFormat) else [Fraction(1)]
        for scale in smallest:
            exact = sum((scale * code * a for code, a in zip((1, -2), activation, strict=True)), Fraction(0))
            answers.append([fmt.name, str(scale), str(exact)])
    return answers


_ANSWERS: Final[dict[str, Callable[[ComputeProfile], list[Any]]]] = {
    "encode": _encode,
    "check": _check,
    "statistics": _statistics,
    "parity": _parity,
    "matvec": _matvec,
}
