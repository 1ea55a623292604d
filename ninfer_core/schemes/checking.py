"""Everything that can be said of stored arrays: structure, legal words, dialect, values. For command line and jobs alike."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

from ninfer_core.findings import Finding, Findings
from ninfer_core.schemes.dialects import Convention, conventions, examine
from ninfer_core.schemes.form import Array, Form, Parts, Shape
from ninfer_core.schemes.measures import Measures, comparable, measure, measures_json, report
from ninfer_core.schemes.run import SchemeRefused, check, complete, decode, implied_shape, prepared

SCHEME_CHECK_SCHEMA: Final = "ninfer-gate/scheme-check/1"
Verdict = Literal["passed", "failed"]
Extent = Literal["full", "none"]

# Of parts that fit by their shapes and not by what stands in other parts, so that their words mean nothing.
_MISFIT: Final = frozenset(f"scheme.{slug}" for slug in ("part_missing", "part_dtype", "part_shape"))


@dataclass(frozen=True, slots=True)
class Stored:
    """What a part was: its type, shape and bytes."""

    dtype: str
    shape: Shape
    bytes: int


@dataclass(frozen=True, slots=True)
class Checked:
    """The answer about the parts of one value.

    `shape` is None where nothing says it; `given` are the complete parameters once the parts fit them. `words` says
    whether every stored word was judged, which needs parts that fit; the measures are None where no such array was given
    or nothing could be decoded.
    """

    form: Form
    shape: Shape | None
    given: Mapping[str, Any]
    parts: Mapping[str, Stored]
    findings: tuple[Finding, ...]
    words: Extent = "none"
    against_reference: Measures | None = None
    against_source: Measures | None = None
    conventions: tuple[Convention, ...] = ()  # those that were stated, whatever the content says of them

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
    unseen = _unseen(form, parts, given, shape)
    try:
        if shape is None:
            shape = implied_shape(form, parts, given)
        prepared(form, parts, shape, given)
    except SchemeRefused as refused:  # a profile's own faults as well
        return replace(unseen, shape=shape, findings=tuple(refused.findings))
    found = check(form, parts, shape, given)
    if any(one.code in _MISFIT for one in found):
        return replace(unseen, shape=shape, findings=tuple(found))
    params = complete(form, given)
    findings = Findings()
    fit_reference = reference is not None and comparable(shape, reference, findings)
    fit_source = source is not None and comparable(shape, source, findings, "source")
    to_reference = to_source = None
    try:
        found += examine(
            form, parts, shape, given, source if fit_source else reference if fit_reference else None
        )
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
    return replace(
        unseen,
        shape=shape,
        given=params,
        findings=(*found, *findings),
        words="full",
        conventions=conventions(form, params),
        against_reference=to_reference,
        against_source=to_source,
    )


def check_read(
    form: Form,
    parts: Parts,
    given: Mapping[str, Any],
    shape: Shape | None,
    found: Sequence[Finding],
    *,
    reference: Array | None = None,
    within: float = 0.0,
    source: Array | None = None,
) -> Checked:
    """As `check_parts`, after what reading the files `found`: where one could not be read, that is all of the answer."""
    if any(one.severity == "error" for one in found):
        return replace(_unseen(form, parts, given, shape), findings=tuple(found))
    checked = check_parts(form, parts, given, shape, reference=reference, within=within, source=source)
    return replace(checked, findings=(*found, *checked.findings))


def _unseen(form: Form, parts: Parts, given: Mapping[str, Any], shape: Shape | None) -> Checked:
    stored = {name: Stored(array.dtype.name, array.shape, array.nbytes) for name, array in parts.items()}
    return Checked(form, shape, given, stored, ())


def checked_json(checked: Checked) -> dict[str, Any]:
    """The answer as one document, without a verdict's circumstances (files, times)."""
    from ninfer_core.verify.report import finding_json, versions

    stored = sum(part.bytes for part in checked.parts.values())
    return {
        "schema": SCHEME_CHECK_SCHEMA,
        "verdict": checked.verdict,
        "form": checked.form.name,
        "kind": checked.form.kind,
        "shape": None if checked.shape is None else list(checked.shape),
        "params": {name: list(v) if isinstance(v, tuple) else v for name, v in checked.given.items()},
        "parts": {
            name: {"dtype": part.dtype, "shape": list(part.shape), "bytes": part.bytes}
            for name, part in checked.parts.items()
        },
        "coverage": {
            "bytes": {"full": stored if checked.words == "full" else 0, "total": stored},
            "words": checked.words,
            "values": "none" if checked.against_reference is None else "full",
        },
        "reference": None if checked.against_reference is None else measures_json(checked.against_reference),
        "source": None if checked.against_source is None else measures_json(checked.against_source),
        "conventions": [
            {"dialect": one.dialect, "part": one.part, "stated": one.stated, "meaning": one.meaning}
            for one in checked.conventions
        ],
        "arithmetic": checked.form.arithmetic,
        "findings": [finding_json(one) for one in checked.findings],
        "versions": versions(),
    }
