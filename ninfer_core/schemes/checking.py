"""Everything that can be said of stored arrays: structure, legal words, dialect, values. For command line and jobs alike."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from ninfer_core.findings import Finding, Findings
from ninfer_core.schemes.form import Array, Form, Parts, Shape
from ninfer_core.schemes.measures import Measures, comparable, measure, report
from ninfer_core.schemes.run import SchemeRefused, check, decode, implied_shape

Verdict = Literal["passed", "failed"]


@dataclass(frozen=True, slots=True)
class Checked:
    """The answer about the parts of one value.

    `shape` is None where nothing says it; `against_reference` and `against_source` are None where none was given or
    nothing could be decoded.
    """

    form: Form
    shape: Shape | None
    findings: tuple[Finding, ...]
    stored_bytes: int
    against_reference: Measures | None = None
    against_source: Measures | None = None

    @property
    def verdict(self) -> Verdict:
        """`failed` with any error."""
        return "failed" if any(one.severity == "error" for one in self.findings) else "passed"


def check_parts(
    form: Form,
    parts: Parts,
    given: Mapping[str, Any],
    shape: Shape | None = None,
    *,
    reference: Array | None = None,
    within: float = 0.0,
    source: Array | None = None,
) -> Checked:
    """Check the parts of a value: their arrays, every word in them, and what they decode to.

    A `reference` holds what a decoder has to give, word for word or up to `within` apart. A `source` holds the values
    before quantization: the error is measured, and no value of it fails anything.
    """
    stored = sum(array.nbytes for array in parts.values())
    findings = Findings()
    try:
        shape = implied_shape(form, parts, given) if shape is None else shape
    except SchemeRefused as refused:
        return Checked(form, None, tuple(refused.findings), stored)
    found = check(form, parts, shape, given)
    fit_reference = reference is not None and comparable(shape, reference, findings)
    fit_source = source is not None and comparable(shape, source, findings)
    to_reference = to_source = None
    try:
        if fit_reference or fit_source:
            values = decode(form, parts, shape, given)
            if reference is not None and fit_reference:
                to_reference = measure(values, reference, within)
                report(to_reference, findings)
            if source is not None and fit_source:
                to_source = measure(values, source)
    except SchemeRefused as refused:
        # The rules have said the same of the words; what they let pass is said here.
        known = {(one.code, one.message) for one in found}
        found += [one for one in refused.findings if (one.code, one.message) not in known]
    return Checked(form, shape, (*found, *findings), stored, to_reference, to_source)
