"""Scales as files store them: their values, the rules about them, and what encoders divide by."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ninfer_core.findings import Findings
from ninfer_core.schemes import small_floats
from ninfer_core.schemes.faults import report
from ninfer_core.schemes.form import Array, Params, Parts, Rule, Shape, Values
from ninfer_core.schemes.run import CannotEncode

FLOATS = ("float32", "float16", "bfloat16")


def words_of(array: Array) -> NDArray[np.uint8]:
    """The bytes of small floats, whichever type the array calls them."""
    return array if array.dtype == np.uint8 else array.view(np.uint8)


def binary32(array: Array) -> Values:
    """The values of a float array, exact; bytes are E8M0 words."""
    if array.dtype.itemsize == 1:
        return small_floats.expand_e8m0(words_of(array))
    return array.astype(np.float32)


def sound_scales(part: str) -> Rule:
    """The rule that the scales of a part, where it is there, are finite and have no sign."""

    def rule(parts: Parts, shape: Shape, params: Params, findings: Findings) -> None:
        if part in parts:
            judge(part, parts[part], binary32(parts[part]), findings)

    return rule


def sound_divisors(part: str) -> Rule:
    """The same for scales that divide: zero is none."""

    def rule(parts: Parts, shape: Shape, params: Params, findings: Findings) -> None:
        if part in parts:
            values = binary32(parts[part])
            judge(part, parts[part], values, findings)
            message = "divides by zero, which leaves no finite value"
            report(
                findings, "scale_not_finite", part, values == 0, parts[part], message, "a divisor above zero"
            )

    return rule


def judge(part: str, stored: Array, values: Values, findings: Findings, **where: Any) -> None:
    """The findings about stored scales of these values: NaN or infinite ones, and negative ones."""
    finite = np.isfinite(values)
    report(
        findings,
        "scale_not_finite",
        part,
        ~finite,
        stored,
        "holds NaN or infinity",
        "a finite scale",
        **where,
    )
    negative = np.signbit(values) & finite
    message = "holds scales with a sign, which encoders of the scheme never write"
    report(findings, "scale_sign_ignored", part, negative, stored, message, "zero or above", **where)


def finite_source(form: str, values: Values) -> Values:
    """The values, once none is NaN or infinite: no scale can be taken from such. Raises: CannotEncode."""
    at_fault = ~np.isfinite(values)
    if at_fault.any():
        first = [int(n) for n in np.unravel_index(int(np.argmax(at_fault)), values.shape)]
        count = int(np.count_nonzero(at_fault))
        raise CannotEncode(f"{form} takes finite values: {count:,} are NaN or infinite, the first at {first}")
    return values


def divided(values: Values, scales: Values) -> Values:
    """Values over scales, and zero where the scale is zero: nothing else decodes to what such a group can hold."""
    quotients: Values = np.divide(values, scales, out=np.zeros_like(values), where=scales != 0)
    return quotients


def largest(values: Values, axis: Any) -> Values:
    """The largest magnitude along axes that are kept with length one; zero where there is no value."""
    result: Values = np.max(np.abs(values), axis=axis, keepdims=True, initial=np.float32(0))
    return result


def half_away(values: Values) -> Values:
    """The nearest whole numbers, halves away from zero; the half is compared, for adding it would round."""
    whole = np.trunc(values)
    rounded: Values = whole + np.copysign(np.abs(values - whole) >= np.float32(0.5), values)
    return rounded
