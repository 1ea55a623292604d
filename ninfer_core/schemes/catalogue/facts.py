"""What programs are told of the catalogue: schemes and forms as strict JSON values, for command line and service."""

import math
from fractions import Fraction
from typing import Any

from ninfer_core.schemes.catalogue import Scheme
from ninfer_core.schemes.catalogue.examples import UNPACKED, Example, examples_of
from ninfer_core.schemes.catalogue.forms import forms_of
from ninfer_core.schemes.drawing import Box
from ninfer_core.schemes.form import REQUIRED, Form, Kind, Parameter, Part
from ninfer_core.schemes.reading import array_type
from ninfer_core.schemes.run import complete, refuse_shape, stored_shapes


def part_bits(form: Form, example: Example) -> dict[str, int]:
    """Bits of each stored part whose size is fixed by shape and parameters, of the optional ones those it has.

    Raises: SchemeRefused.
    """
    stored = stored_shapes(form, example.shape, example.params)
    dtypes = example.dtypes(form)
    return {
        name: math.prod(stored[name]) * 8 * array_type(dtypes[name]).itemsize
        for name in dtypes
        if name in stored
    }


def bits_per_weight(form: Form, example: Example) -> Fraction:
    """Stored bits over weights, exactly. Raises: SchemeRefused, also where there is no weight."""
    if not math.prod(example.shape):
        raise refuse_shape(form.name, example.shape, "at least one value")
    return Fraction(sum(part_bits(form, example).values()), math.prod(example.shape))


def rounded(bits: Fraction) -> str:
    """Bits per weight as people write them: up to four digits after the point, at least one."""
    text = f"{float(bits):.4f}".rstrip("0")
    return f"{text}0" if text.endswith(".") else text


def span(scheme: Scheme, kind: Kind) -> str:
    """Bits per weight of all examples of the scheme's forms of a kind, lowest and highest; empty without forms."""
    bits = sorted(_figures(scheme, kind))
    shown = list(dict.fromkeys(map(rounded, bits)))
    return "" if not shown else shown[0] if len(shown) == 1 else f"{shown[0]} to {shown[-1]}"


def encodes(scheme: Scheme) -> str:
    """Which forms of a scheme have an encoder: `both` kinds, `literal` or `files` alone, or `no`."""
    able = {form.kind for form in forms_of(scheme) if form.encode is not None}
    if len(able) == 2:
        return "both"
    return {"literal": "literal", "file": "files"}[able.pop()] if able else "no"


def scheme_json(scheme: Scheme) -> dict[str, Any]:
    """One line of the catalogue."""
    forms = forms_of(scheme)
    return {
        "name": scheme.name,
        "title": scheme.title,
        "row": scheme.row,
        "profiles": scheme.profiles,
        "summary": scheme.summary,
        "aliases": list(scheme.aliases),
        "bits_per_weight": {
            "claimed": scheme.claimed or None,
            "declared": _bits_json(scheme, "literal"),
            "real": _bits_json(scheme, "file"),
        },
        "contradictions": list(scheme.contradictions),
        "apart": scheme.apart or None,
        "forms": list(scheme.forms),
        "encode": {form.name: form.encoding if form.encode is not None else None for form in forms},
        "oracles": list(dict.fromkeys(form.oracle for form in forms)),
    }


def form_json(form: Form) -> dict[str, Any]:
    """Everything about a form but its functions."""
    return {
        "name": form.name,
        "kind": form.kind,
        "summary": form.summary,
        "axes": list(form.axes),
        "parts": [_part(part) for part in form.parts],
        "parameters": [_parameter(parameter) for parameter in form.parameters],
        "encode": form.encoding if form.encode is not None else None,
        "compiled": form.fast is not None,
        "arithmetic": form.arithmetic,
        "oracle": form.oracle,
        "notes": form.notes,
    }


def sizes_json(form: Form, example: Example) -> dict[str, Any]:
    """What a value of that shape takes, part by part. Raises: SchemeRefused."""
    params = complete(form, example.params)
    return {
        "shape": list(example.shape),
        "params": {name: _plain(value) for name, value in params.items()},
        "parts": {name: list(counts) for name, counts in form.stored(example.shape, params).items()},
        "bits": part_bits(form, example),
        "bits_per_weight": float(bits_per_weight(form, example)) if math.prod(example.shape) else None,
    }


def box_json(box: Box) -> dict[str, Any]:
    """A drawn layout."""
    return {
        "name": box.name,
        "what": box.what,
        "offset_bits": box.offset,
        "bits": box.bits,
        "counts": list(box.counts),
        "constant": box.constant,
        "inside": [box_json(inner) for inner in box.inside],
    }


def _figures(scheme: Scheme, kind: Kind) -> list[Fraction]:
    return [
        bits_per_weight(form, example)
        for form in forms_of(scheme)
        if form.kind == kind and form.name not in UNPACKED
        for example in examples_of(form, scheme.name)
    ]


def _bits_json(scheme: Scheme, kind: Kind) -> dict[str, list[float]]:
    return {
        form.name: [float(bits_per_weight(form, example)) for example in examples_of(form, scheme.name)]
        for form in forms_of(scheme)
        if form.kind == kind and form.name not in UNPACKED
    }


def _part(part: Part) -> dict[str, Any]:
    return {
        "name": part.name,
        "dtypes": list(part.dtypes),
        "axes": part.axes,
        "meaning": part.meaning,
        "optional": part.optional,
    }


def _parameter(parameter: Parameter) -> dict[str, Any]:
    required = parameter.default is REQUIRED
    return {
        "name": parameter.name,
        "kind": parameter.kind,
        "meaning": parameter.meaning,
        "required": required,
        "default": None if required else _plain(parameter.default),
        "choices": [_plain(choice) for choice in parameter.choices],
    }


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value
