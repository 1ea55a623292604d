"""Metrics of a pair of tensors as plain JSON values: what is undefined is null with a reason, never a NaN."""

import math
from typing import Any

from ninfer_core.compare.outcomes import Changes
from ninfer_core.kernels.values import ErrorSums
from ninfer_core.layouts.base import Shape

VALUES = ("nmse", "max_abs_error", "sqnr_db")
WORDS = (
    "words",
    "changed_words",
    "changed_share",
    "scales",
    "changed_scales",
    "divisor_changed",
    "first_change",
)


def pair_metrics(
    shape: Shape, changes: Changes | None, sums: ErrorSums | None, no_values: str
) -> dict[str, Any]:
    """Of B against A: words that differ, and by how much the values do."""
    undefined: dict[str, str] = {}
    words: dict[str, Any] = dict.fromkeys(WORDS)
    if changes is None:
        undefined |= dict.fromkeys(WORDS, "the formats differ")
    else:
        words = {
            "words": changes.codes,
            "changed_words": changes.changed_codes,
            "changed_share": changes.changed_codes / changes.codes,
            "scales": changes.scales,
            "changed_scales": changes.changed_scales,
            "divisor_changed": changes.divisor_changed,
            "first_change": _place(shape, changes.first),
        }
    values, reasons = _values(sums, no_values)
    return {**words, **values, "undefined": undefined | reasons}


def no_metrics(why: str) -> dict[str, Any]:
    """Where nothing can be compared."""
    names = (*WORDS, *VALUES)
    return {**dict.fromkeys(names), "undefined": dict.fromkeys(names, why)}


def _values(sums: ErrorSums | None, no_values: str) -> tuple[dict[str, float | None], dict[str, str]]:
    values: dict[str, float | None] = dict.fromkeys(VALUES)
    if sums is None:
        return values, dict.fromkeys(VALUES, no_values)
    # Before any ratio: a NaN or an infinity on either side never compares as fine, and its sums are not finite.
    if not all(map(math.isfinite, (sums.squared_error, sums.source_squares, sums.value_squares))):
        return values, dict.fromkeys(VALUES, "values of A or B are not all finite")
    undefined: dict[str, str] = {}
    values["max_abs_error"] = sums.largest_error
    if sums.source_squares == 0:
        undefined = dict.fromkeys(("nmse", "sqnr_db"), "every value of A is zero")
        return values, undefined
    values["nmse"] = sums.squared_error / sums.source_squares
    if sums.squared_error == 0:
        undefined["sqnr_db"] = "there is no error"
    else:
        values["sqnr_db"] = 10 * math.log10(sums.source_squares / sums.squared_error)
    return values, undefined


def _place(shape: Shape, flat: int | None) -> list[int] | None:
    """The coordinates of an element, in C order."""
    if flat is None:
        return None
    place = []
    for size in reversed(shape):
        flat, at = divmod(flat, size)
        place.append(at)
    return place[::-1]
