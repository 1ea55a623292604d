"""Sequences, maps and optionals of structured values, and the static types that a graph gives to them (section 8).

A static type that refers to a declaration accepts only values of that declaration; an unconstrained one accepts any,
so that the pages of one cache may be of different formats. A sequence or optional says the type of its elements itself.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from ninfer_core.findings import Finding
from ninfer_core.schemes.structs.check import check_value
from ninfer_core.schemes.structs.faults import Faults
from ninfer_core.schemes.structs.limits import LIMITS, Limits
from ninfer_core.schemes.structs.model import Declaration, Reference, Value
from ninfer_core.schemes.structs.models import check_static


@dataclass(frozen=True, slots=True)
class SequenceType:
    """The type of a sequence: that of its elements."""

    element: "StaticType"


@dataclass(frozen=True, slots=True)
class OptionalType:
    """The type of an optional: that of what it may hold."""

    element: "StaticType"


@dataclass(frozen=True, slots=True)
class MapType:
    """The type of a map: the leaf type or STRING of its keys, and the type of its values."""

    key: str
    value: "StaticType"


# The static form of a declaration is a reference or nothing, see `check_static`.
StaticType = Declaration | SequenceType | OptionalType | MapType
UNCONSTRAINED = Declaration(None)


def exactly(index: int) -> Declaration:
    """The static type of values of one declaration."""
    return Declaration(Reference(index))


@dataclass(frozen=True, slots=True)
class Sequence:
    """Values in order; `value_type` is the type of each, None where the container fails to say it."""

    value_type: StaticType | None
    values: tuple["Contained", ...]


@dataclass(frozen=True, slots=True)
class Optional:
    """One value or none."""

    value_type: StaticType | None
    value: "Contained | None"


@dataclass(frozen=True, slots=True)
class Map:
    """Keys and, in a sequence, the value of each."""

    keys: tuple[int | str, ...]
    values: Sequence


Contained = Value | Sequence | Optional | Map


def check_contained(
    model: tuple[Declaration, ...], static: StaticType, value: Contained, limits: Limits = LIMITS
) -> list[Finding]:
    """Every fault of a value of any category under its static type, outermost first.

    Adds `static_type_mismatch`, `value_type_missing`, `value_type_disagrees`, `map_keys` and `limit_nesting` beside the
    codes of static types and of values.
    """
    faults = Faults()
    _check_form(model, static, limits, faults)
    todo: list[tuple[StaticType, Contained, str, int]] = [(static, value, "value", 1)]
    while todo:
        type_, one, place, level = todo.pop()
        if level > limits.nesting:
            message = f"containers are nested more than {limits.nesting} deep."
            faults.add("limit_nesting", place, message, limits.nesting, level, limit=limits.nesting)
            continue
        inner = list(_check_one(model, type_, one, place, limits, faults))
        todo.extend((element, item, where, level + 1) for element, item, where in reversed(inner))
    return list(faults.findings.items)


def _check_form(model: tuple[Declaration, ...], static: StaticType, limits: Limits, faults: Faults) -> None:
    place = "static"
    for _ in range(limits.nesting):
        match static:
            case SequenceType(element=inner) | OptionalType(element=inner) | MapType(value=inner):
                static, place = inner, f"{place}.element"
            case Declaration():
                faults.take(check_static(static, model, place))
                return
    faults.add(
        "limit_nesting",
        place,
        f"more than {limits.nesting} levels.",
        limits.nesting,
        "more",
        limit=limits.nesting,
    )


def _check_one(
    model: tuple[Declaration, ...],
    static: StaticType,
    value: Contained,
    place: str,
    limits: Limits,
    faults: Faults,
) -> Iterator[tuple[StaticType, Contained, str]]:
    match static, value:
        case Declaration(), Value():
            if isinstance(static.type, Reference) and value.type != static.type.index:
                message = f"a value of type {value.type} where only {static.type.index} is accepted."
                faults.add("static_type_mismatch", place, message, static.type.index, value.type)
            faults.take(check_value(model, value, limits), place)
        case SequenceType(element=element), Sequence():
            _check_value_type(element, value.value_type, place, faults)
            yield from ((element, one, f"{place}.values[{i}]") for i, one in enumerate(value.values))
        case OptionalType(element=element), Optional():
            _check_value_type(element, value.value_type, place, faults)
            if value.value is not None:
                yield element, value.value, f"{place}.value"
        case MapType(value=element), Map():
            _check_keys(static, value, place, faults)
            yield SequenceType(element), value.values, f"{place}.values"
        case _:
            expected, found = _shown(static), type(value).__name__.lower()
            message = f"a {found} where {expected} is expected."
            faults.add("static_type_mismatch", place, message, expected, found)


def _check_value_type(element: StaticType, stated: StaticType | None, place: str, faults: Faults) -> None:
    if stated is None:
        faults.add("value_type_missing", place, "no value_type.", "value_type", "nothing")
    elif stated != element:
        shown = _shown(element), _shown(stated)
        faults.add("value_type_disagrees", f"{place}.value_type", "another type than the graph's.", *shown)


def _shown(static: StaticType) -> str:
    match static:
        case Declaration(type=Reference(index=index)):
            return f"a value of type {index}"
        case Declaration():
            return "a value of any type"
        case SequenceType():
            return "a sequence"
        case OptionalType():
            return "an optional"
        case MapType():
            return "a map"


def _check_keys(static: MapType, value: Map, place: str, faults: Faults) -> None:
    kind = str if static.key == "STRING" else int
    wrong = [key for key in value.keys if type(key) is not kind]
    if wrong:
        faults.add(
            "map_keys", f"{place}.keys", f"{wrong[0]!r} is no {static.key}.", static.key, wrong[0], len(wrong)
        )
    if len(value.keys) != len(value.values.values):
        message = f"{len(value.keys)} keys for {len(value.values.values)} values."
        faults.add("map_keys", f"{place}.keys", message, len(value.values.values), len(value.keys))
    if len(set(value.keys)) != len(value.keys):
        faults.add("map_keys", f"{place}.keys", "a key stands twice.", "different keys", "one twice")
