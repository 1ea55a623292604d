"""Metrics of a tensor as plain JSON values: what is undefined is null with a reason, never a NaN."""

import math
from typing import Any

from ninfer_core.formats import BlockFormat, DirectFormat, GroupedFormat, NumericFormat
from ninfer_core.kernels.values import CodeStatistics, ErrorSums, WordStatistics
from ninfer_core.words import (
    BFLOAT16,
    BINARY16,
    BINARY32,
    BINARY64,
    E4M3FN,
    FloatFormat,
    finite_value,
    is_finite,
)

WORDS: dict[str, FloatFormat] = {
    "BF16": BFLOAT16,
    "F16": BINARY16,
    "FP32": BINARY32,
    "F32": BINARY32,
    "F64": BINARY64,
}


def code_metrics(fmt: NumericFormat, statistics: CodeStatistics) -> dict[str, Any]:
    """Scale range, zero groups and code use of a quantized tensor; logical lanes and groups only."""
    scale = (
        BINARY16 if isinstance(fmt, GroupedFormat) else E4M3FN if isinstance(fmt, BlockFormat) else BFLOAT16
    )

    ends = {"scale_smallest": statistics.smallest_scale, "scale_largest": statistics.largest_scale}
    undefined = {}
    for name, word in ends.items():
        if word is None:
            undefined[name] = "every scale is zero"
        elif not is_finite(scale, word):
            undefined[name] = f"the scale word 0x{word:x} is not finite"
    scales = {
        name: None if word is None or name in undefined else float(finite_value(scale, word))
        for name, word in ends.items()
    }
    first = statistics.first_code
    counts = statistics.histogram.tolist()
    if isinstance(fmt, GroupedFormat) and first < fmt.qmin and counts[0] == 0:
        first, counts = fmt.qmin, counts[1:]
    return {
        "groups": statistics.groups,
        "zero_scales": statistics.zero_scales,
        "zero_groups": statistics.zero_groups,
        **scales,
        "code_histogram": {"first": first, "counts": counts},
        "undefined": undefined,
    }


def word_metrics(dtype: str, statistics: WordStatistics) -> dict[str, Any]:
    """Zeros, non-finite words and the finite range of direct words."""

    def value(word: int | None) -> float | int | None:
        if word is None:
            return None
        if dtype in WORDS:
            return float(finite_value(WORDS[dtype], word))
        return word - (1 << 32) if word >> 31 else word

    return {
        "elements": statistics.count,
        "zeros": statistics.positive_zeros + statistics.negative_zeros,
        "nan": statistics.nans,
        "infinite": statistics.infinities,
        "smallest": value(statistics.smallest),
        "largest": value(statistics.largest),
    }


def is_all_zero(fmt: NumericFormat, statistics: CodeStatistics | WordStatistics) -> bool:
    """Whether every value is zero, whichever zero words and scales say so."""
    if isinstance(statistics, CodeStatistics):
        return statistics.zero_groups == statistics.groups
    zeros = statistics.positive_zeros + (statistics.negative_zeros if not is_integer(fmt) else 0)
    return zeros == statistics.count


def is_integer(fmt: NumericFormat) -> bool:
    """Whether the words of a format are integers."""
    return isinstance(fmt, DirectFormat) and fmt.name == "I32"


def error_metrics(sums: ErrorSums | None, why_none: str) -> dict[str, Any]:
    """Max abs, RMSE, SQNR (dB) and cosine of stored against source values."""
    names = ("max_abs_error", "rmse", "sqnr_db", "cosine")
    if sums is None:
        return {**dict.fromkeys(names), "undefined": dict.fromkeys(names, why_none)}
    values: dict[str, float | None] = dict.fromkeys(names)
    undefined: dict[str, str] = {}
    if sums.count == 0:
        undefined = dict.fromkeys(names, "no elements were compared")
    elif not all(
        map(math.isfinite, (sums.squared_error, sums.source_squares, sums.value_squares, sums.products))
    ):
        undefined = dict.fromkeys(names, "source or stored values are not all finite")
    else:
        values["max_abs_error"] = sums.largest_error
        values["rmse"] = math.sqrt(sums.squared_error / sums.count)
        if sums.squared_error == 0:
            undefined["sqnr_db"] = "there is no error"
        elif sums.source_squares == 0:
            undefined["sqnr_db"] = "the source is all zero"
        else:
            values["sqnr_db"] = 10 * math.log10(sums.source_squares / sums.squared_error)
        norms = math.sqrt(sums.source_squares) * math.sqrt(sums.value_squares)
        if norms == 0:
            undefined["cosine"] = "source or stored values are all zero"
        else:
            values["cosine"] = max(-1.0, min(1.0, sums.products / norms))
    return {**values, "undefined": undefined}
