"""The one way to a form's functions: parameters, parts and shapes are checked here, and so is the length of the result.

Whatever is wrong is collected as findings; `decode` raises them together where the question cannot be answered.
"""

import math
import reprlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from ninfer_core.errors import NinferError
from ninfer_core.findings import Finding, Findings
from ninfer_core.schemes.form import REQUIRED, Array, Form, Parameter, Params, Parts, Shape, Values

MAX_RANK: Final = 16
MAX_VALUES: Final = 1 << 40  # of one decoded tensor; memory follows the parts, whose sizes are exact
_STORED_PER_VALUE: Final = 8  # of what an encoder makes: codes, scales, zero points, indices
_STORED_BESIDE: Final = 1 << 20  # tables and numbers of the tensor
_SMALL_FLOATS: Final = (
    "float8_e4m3fn",
    "float8_e4m3fnuz",
    "float8_e5m2",
    "float8_e5m2fnuz",
    "float8_e8m0fnu",
    "float4_e2m1fn",
)


class SchemeRefused(NinferError):
    """Parameters, parts or a shape that a form does not take; `findings` say all of it."""

    code = "scheme_refused"

    def __init__(self, form: str, findings: Findings) -> None:
        first = findings.items[0].message if findings.items else "nothing was found"
        more = len(findings.items) - 1
        super().__init__(f"{form}: {first}" + (f" (and {more} more)" if more > 0 else ""))
        self.form = form
        self.findings = findings


class CannotEncode(NinferError):
    """A form that has no encoder, or values that it cannot hold."""

    code = "cannot_encode"


@dataclass(slots=True)
class Refusal:
    """Collects what is wrong with a request for one form; for the functions of forms as well."""

    form: str
    findings: Findings = field(default_factory=Findings)

    def add(self, slug: str, message: str, expected: object = "", found: object = "", **where: Any) -> None:
        """One finding `scheme.<slug>`."""
        self.findings.add(f"scheme.{slug}", message, where=where, expected=expected, found=found)

    def settle(self) -> None:
        """Raises: SchemeRefused, with all that was added, if anything was."""
        if self.findings.items:
            raise SchemeRefused(self.form, self.findings)


def refuse_shape(form: str, shape: Shape, expected: str) -> SchemeRefused:
    """The exception for a logical shape that a form cannot hold."""
    refusal = Refusal(form)
    refusal.add("shape", f"shape {list(shape)} does not fit: {expected}", expected, list(shape))
    return SchemeRefused(form, refusal.findings)


def refuse_parameter(form: str, name: str, expected: str, found: object) -> SchemeRefused:
    """The exception for a parameter that a form cannot take beside the others."""
    refusal = Refusal(form)
    refusal.add("parameter", f"{name}: {expected}, not {found!r}", expected, found, parameter=name)
    return SchemeRefused(form, refusal.findings)


def complete(form: Form, given: Mapping[str, Any]) -> Params:
    """`given` with defaults filled in. Raises: SchemeRefused for unknown, missing or illegal parameters."""
    refusal = Refusal(form.name)
    known = {parameter.name: parameter for parameter in form.parameters}
    for name in given:
        if name not in known:
            listed = ", ".join(known) or "none"
            refusal.add("parameter", f"{name} is no parameter of {form.name}", listed, name, parameter=name)
    params: dict[str, Any] = {}
    for name, parameter in known.items():
        if name not in given or (given[name] is None and parameter.default is None):  # complete ones again
            if parameter.default is REQUIRED:
                refusal.add(
                    "parameter", f"{name} is needed: {parameter.meaning}", name, "absent", parameter=name
                )
            else:
                params[name] = parameter.default
            continue
        value = _typed(parameter, given[name])
        if value is None or (parameter.choices and value not in parameter.choices):
            expected = ", ".join(map(str, parameter.choices)) or parameter.kind
            kind = f"one of {expected}" if parameter.choices else f"of the kind {expected}"
            message = f"{name} is {reprlib.repr(given[name])}, not {kind} ({parameter.meaning})"
            refusal.add("parameter", message, expected, given[name], parameter=name)
        else:
            params[name] = value
    refusal.settle()
    return params


def _typed(parameter: Parameter, value: Any) -> Any:
    """The value as the parameter's kind, or None where it is another."""
    kind = parameter.kind
    if kind == "flag":
        return value if isinstance(value, bool) else None
    if kind == "text":
        return value if isinstance(value, str) else None
    if kind in ("integers", "numbers"):
        if not isinstance(value, list | tuple):
            return None
        one = Parameter("", "integer" if kind == "integers" else "number", "")
        items = tuple(_typed(one, item) for item in value)
        return None if None in items else items
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if kind == "integer":
        return value if isinstance(value, int) else None
    try:
        number = float(value)
    except OverflowError:  # an integer beyond binary64
        return None
    return number if math.isfinite(number) else None


def _check_shape(refusal: Refusal, shape: Shape) -> None:
    whole = all(isinstance(n, int) and not isinstance(n, bool) and n >= 0 for n in shape)
    # A dimension of zero makes no other one small: numpy holds none beyond its limits.
    if not whole or len(shape) > MAX_RANK or math.prod(n or 1 for n in shape) > MAX_VALUES:
        expected = f"up to {MAX_RANK} dimensions, none negative, of {MAX_VALUES:,} values in all"
        refusal.add("shape", f"shape {list(shape)} is none that can be decoded", expected, list(shape))


def _check_missing(form: Form, refusal: Refusal, parts: Parts) -> None:
    for part in form.parts:
        if part.name not in parts and not part.optional:
            message = f"{part.name} is missing: {part.meaning}"
            refusal.add("part_missing", message, part.axes, "absent", part=part.name)


def _check_parts(form: Form, refusal: Refusal, parts: Parts, stored: Mapping[str, Shape]) -> None:
    known = {part.name: part for part in form.parts}
    for name in parts:
        if name not in known:
            refusal.add(
                "part_unknown", f"{name} is no part of {form.name}", ", ".join(known), name, part=name
            )
    _check_missing(form, refusal, parts)
    for name, part in known.items():
        if name not in parts:
            continue
        array = parts[name]
        words = array.dtype == np.uint8 and any(dtype in _SMALL_FLOATS for dtype in part.dtypes)
        if array.dtype.name not in part.dtypes and not words:
            expected = " or ".join(part.dtypes)
            refusal.add(
                "part_dtype", f"{name} holds {array.dtype.name}", expected, array.dtype.name, part=name
            )
        if name in stored and _bare(array.shape) != _bare(stored[name]):
            expected_shape = list(stored[name])
            refusal.add(
                "part_shape", f"{name} does not fit {part.axes}", expected_shape, list(array.shape), part=name
            )


def _bare(shape: Shape) -> Shape:
    """Without its last dimensions of one: files write a scale for each row as [N] or [N, 1], a single one as [] or [1]."""
    while shape and shape[-1] == 1:
        shape = shape[:-1]
    return shape


def stored_shapes(form: Form, shape: Shape, given: Mapping[str, Any]) -> Mapping[str, Shape]:
    """The exact shapes of the parts that hold a tensor of a shape. Raises: SchemeRefused."""
    params = complete(form, given)
    refusal = Refusal(form.name)
    _check_shape(refusal, shape)
    refusal.settle()
    return form.stored(shape, params)


def prepared(form: Form, parts: Parts, shape: Shape, given: Mapping[str, Any]) -> tuple[Parts, Params]:
    """The parts as stated and the complete parameters, of a request that fits. Raises: SchemeRefused."""
    params = complete(form, given)
    stored = stored_shapes(form, shape, params)
    refusal = Refusal(form.name)
    _check_parts(form, refusal, parts, stored)
    refusal.settle()
    return {name: array.reshape(stored.get(name, array.shape)) for name, array in parts.items()}, params


def implied_shape(form: Form, parts: Parts, given: Mapping[str, Any]) -> Shape:
    """The logical shape that the stored arrays imply. Raises: SchemeRefused where they do not say it."""
    params = complete(form, given)
    refusal = Refusal(form.name)
    _check_missing(form, refusal, parts)  # such as all of them, behind a prefix that no tensor has
    refusal.settle()
    if form.infer is None:
        message = "the parts do not say the shape of the decoded tensor; it has to be given"
        refusal.add("shape", message, f"[{', '.join(form.axes)}]", "no shape")
        raise SchemeRefused(form.name, refusal.findings)
    shape = form.infer({name: array.shape for name, array in parts.items()}, params)
    if 0 in shape:  # a file without content would pass for a tensor of which every word is right
        message = "the parts hold no values; where none are meant, the shape has to be given"
        refusal.add("shape", message, "values", list(shape))
        raise SchemeRefused(form.name, refusal.findings)
    return shape


def decode(
    form: Form, parts: Parts, shape: Shape, given: Mapping[str, Any], *, plain: bool = False
) -> Values:
    """The numbers that the parts mean, binary32, of the logical `shape`; `plain` leaves the compiled decoder aside.

    Raises: SchemeRefused.
    """
    parts, params = prepared(form, parts, shape, given)
    if 0 in shape:  # the axes beside one of no length may say any number, and no part backs them
        return np.zeros(shape, np.float32)
    run = form.decode if plain or form.fast is None else form.fast
    with np.errstate(all="ignore"):  # infinities and NaN are numbers like others here; `check` judges them
        values = run(parts, shape, params)
    # The catalogue's dispatcher: the result's length is the product of the logical dims.
    if values.dtype != np.float32 or values.shape != tuple(shape):
        raise ValueError(f"the decoder of {form.name} made {values.dtype} {values.shape} for {shape}")
    return values


def check(form: Form, parts: Parts, shape: Shape, given: Mapping[str, Any]) -> list[Finding]:
    """Every finding about the parts: their structure, or, where that is right, the words in them."""
    try:
        parts, params = prepared(form, parts, shape, given)
    except SchemeRefused as refused:
        return list(refused.findings.items)
    findings = Findings()
    with np.errstate(all="ignore"):
        for rule in form.rules:
            rule(parts, shape, params, findings)
    return list(findings.items)


def encode(form: Form, values: Values, given: Mapping[str, Any]) -> dict[str, Array]:
    """The parts that hold `values`. Raises: SchemeRefused, CannotEncode."""
    if form.encode is None:
        raise CannotEncode(
            f"{form.name} has no encoder here: its tool searches for codes, and no rule fixes the bytes"
        )
    params = complete(form, given)
    refusal = Refusal(form.name)
    _check_shape(refusal, values.shape)
    refusal.settle()
    if values.dtype != np.float32:
        raise CannotEncode(f"{form.name} is encoded from float32, not {values.dtype}")
    stored = form.stored(values.shape, params)
    # An axis of no length leaves no values, and its neighbour could still ask for scales without end.
    if sum(map(math.prod, stored.values())) > _STORED_PER_VALUE * values.size + _STORED_BESIDE:
        raise refuse_shape(form.name, values.shape, "about as many values as numbers that store them")
    with np.errstate(all="ignore"):
        return form.encode(values, params)
