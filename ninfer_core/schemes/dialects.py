"""Conventions that one label hides: which one the content fits, and how sure that is.

A form states how its arrays are read. Where files with the same label are read in another way, a `Dialect` knows every
reading, what the content alone says, and how each reading decodes, so that values at hand decide by comparison.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, Literal

import numpy as np

from ninfer_core.findings import Finding, Findings
from ninfer_core.schemes.form import Array, Form, Params, Parts, Shape, Values
from ninfer_core.schemes.run import SchemeRefused, prepared

Confidence = Literal["certain", "strong", "weak"]
CONTRADICTED: Final = "scheme.dialect_contradicted"
_BLOCK: Final = 1 << 20
_STRONG: Final = 2.0  # how many times the error of the likely reading the stated one must have
_WEAK: Final = 1.1


@dataclass(frozen=True, slots=True)
class Likely:
    """The convention that the content fits better than the stated one, and why."""

    convention: str
    confidence: Confidence
    why: str


@dataclass(frozen=True, slots=True)
class Dialect:
    """One label with several conventions.

    `stated` names the one that a form and its parameters state. `read` decodes the parts of a form by any of them. `content` judges without values to compare with, None where nothing speaks against the stated one.
    """

    name: str
    forms: tuple[str, ...]
    part: str  # the array whose reading is in question
    conventions: Mapping[str, str]  # each with what it means
    stated: Callable[[str, Params], str]
    read: Callable[[str, str, Parts, Shape, Params], Values]  # by form and convention
    content: Callable[[str, Parts, Shape, Params], Likely | None]  # by the stated convention


@dataclass(frozen=True, slots=True)
class Convention:
    """How one array of a form is read, where files with the same label are read in another way too."""

    dialect: str
    part: str
    stated: str
    meaning: str


@cache
def dialects() -> tuple[Dialect, ...]:
    """Every dialect there is."""
    from ninfer_core.schemes.floating.conventions import NVFP4_DIVISOR, NVFP4_FACTOR
    from ninfer_core.schemes.integer.conventions import GPTQ_ZERO_POINTS, NIBBLE_ORDER
    from ninfer_core.schemes.ternary.conventions import BITNET_SCALE

    return GPTQ_ZERO_POINTS, NIBBLE_ORDER, NVFP4_DIVISOR, NVFP4_FACTOR, BITNET_SCALE


def conventions(form: Form, params: Params) -> tuple[Convention, ...]:
    """The conventions that a form and its complete parameters state, of those that a label hides."""
    stated = [(one, one.stated(form.name, params)) for one in dialects() if form.name in one.forms]
    return tuple(Convention(one.name, one.part, name, one.conventions[name]) for one, name in stated)


def examine(
    form: Form, parts: Parts, shape: Shape, given: Mapping[str, Any], values: Array | None = None
) -> list[Finding]:
    """What contradicts the conventions that the label states.

    `values` are the tensor's own, from before quantization or from another decoder; they decide over the content.
    Raises: SchemeRefused for parts that do not fit the form, about which `run.check` says the same.
    """
    findings = Findings()
    parts, params = prepared(form, parts, shape, given)
    for dialect in dialects():
        if form.name not in dialect.forms:
            continue
        stated = dialect.stated(form.name, params)
        with np.errstate(all="ignore"):
            likely = dialect.content(stated, parts, shape, params)
            if values is not None and values.shape == tuple(shape):
                errors = _errors(dialect, form.name, parts, shape, params, values)
                likely = _by_errors(stated, errors, likely)
        if likely is not None:
            _report(findings, dialect, stated, likely)
    return list(findings.items)


def _errors(
    dialect: Dialect, form: str, parts: Parts, shape: Shape, params: Params, values: Array
) -> dict[str, tuple[float, bool]]:
    """Of each convention that decodes at all: its RMS error, infinite where there is none, and whether every word is met."""
    errors: dict[str, tuple[float, bool]] = {}
    for convention in dialect.conventions:
        try:
            read = dialect.read(form, convention, parts, shape, params)
        except SchemeRefused:
            continue
        errors[convention] = _error(read.reshape(-1), np.ascontiguousarray(values).reshape(-1))
    return errors


def _error(read: Array, values: Array) -> tuple[float, bool]:
    word = np.dtype(f"u{values.dtype.itemsize}")
    squares, pairs, equal = 0.0, 0, True
    for start in range(0, read.size, _BLOCK):
        ours, theirs = read[start : start + _BLOCK], values[start : start + _BLOCK]
        equal = equal and np.array_equal(ours.astype(theirs.dtype).view(word), theirs.view(word))
        numbers = np.isfinite(theirs)
        apart = ours[numbers].astype(np.float64) - theirs[numbers].astype(np.float64)
        squares += float(np.sum(apart * apart))
        pairs += apart.size
    rms = math.sqrt(squares / pairs) if pairs and math.isfinite(squares) else math.inf
    return rms, equal


def _by_errors(stated: str, errors: dict[str, tuple[float, bool]], content: Likely | None) -> Likely | None:
    """What the errors say; the content's word stands where they are too close to each other."""
    if stated not in errors or len(errors) < 2:
        return content
    own, met = errors[stated]
    others = {name: error for name, error in errors.items() if name != stated}
    best = min(others, key=lambda name: others[name][0])
    error, exact = others[best]
    if met or (math.isfinite(own) and own * _WEAK <= error):
        return None
    if exact:
        return Likely(best, "certain", "it gives every word of the values compared with")
    if math.isinf(error) or error * _WEAK > own:
        return content
    confidence: Confidence = "strong" if error * _STRONG <= own else "weak"
    return Likely(best, confidence, f"its error is {error:.4g} (RMS), that of the stated one {own:.4g}")


def _report(findings: Findings, dialect: Dialect, stated: str, likely: Likely) -> None:
    meaning, other = dialect.conventions[stated], dialect.conventions[likely.convention]
    findings.add(
        CONTRADICTED,
        f"{dialect.part}: the label states `{stated}` ({meaning}), the content fits `{likely.convention}` ({other}): "
        f"{likely.why}",
        where={
            "part": dialect.part,
            "dialect": dialect.name,
            "stated": stated,
            "likely": likely.convention,
            "confidence": likely.confidence,
        },
        expected=stated,
        found=likely.convention,
        severity="advisory" if likely.confidence == "weak" else "error",
    )
