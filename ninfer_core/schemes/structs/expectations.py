"""What the author of a document expects, against what is: sizes, and the leaves with their first elements."""

from collections.abc import Mapping
from typing import Any, Final

from ninfer_core.schemes.structs.document import Expected
from ninfer_core.schemes.structs.faults import Faults, StructFault
from ninfer_core.schemes.structs.limits import Limits
from ninfer_core.schemes.structs.numbers import Number, numbers
from ninfer_core.schemes.structs.plans import LeafPlan
from ninfer_core.schemes.structs.view import LeafArray, leaf_array
from ninfer_core.strict_json import Json, Real

_ELEMENTS: Final = ("n_values", "raw_bits", "values")
SHOWN: Final = 64  # elements of one leaf that a document lists


def compare(
    expected: Expected,
    bits: int,
    plans: tuple[LeafPlan, ...],
    payload: bytes | None,
    limits: Limits,
    faults: Faults,
) -> None:
    """Adds `expectation_differs` for each member that is otherwise; without a payload none of its elements holds."""
    sizes = {"size_bits": (expected.size_bits, bits), "size_bytes": (expected.size_bytes, bits // 8)}
    for member, (size, found) in sizes.items():
        if size is not None:
            _differ(member, size, found, faults)
    if expected.leaves is None:
        return
    if len(plans) != len(expected.leaves):
        _differ("leaves", f"{len(expected.leaves)} leaves", f"{len(plans)} leaves", faults)
    for index, (stated, plan) in enumerate(zip(expected.leaves, plans, strict=False)):
        array = leaf_array(plan, None if payload is None else memoryview(payload), limits)
        try:
            known = _leaf(plan, array, stated)
        except StructFault as fault:  # more than is unpacked at once, or a shape that no array has
            faults.findings.extend(fault.findings)
            continue
        real = plan.element.kind == "float"
        for member in stated:
            value = _plain(stated[member], real and member == "values")
            _differ(f"leaves[{index}].{member}", value, known[member], faults)


def _leaf(plan: LeafPlan, array: LeafArray | None, stated: Mapping[str, Json]) -> dict[str, Any]:
    found: dict[str, Any] = {
        "path": plan.path,
        "elem_type": plan.label,
        "shape": list(plan.shape),
        "constant": plan.constant is not None,
        **dict.fromkeys(_ELEMENTS, "no payload to compare with"),
    }
    if array is not None and any(member in stated for member in _ELEMENTS):
        first = array.words.reshape(-1)[:SHOWN]
        found["n_values"] = array.words.size
        found["raw_bits"] = first.tolist()
        found["values"] = [_spelled(number) for number in numbers(first, plan.element)]
    return found


def _spelled(number: Number) -> Any:
    # NaN and infinities have names, zeros their sign: 0.0 and -0.0 are different words.
    return repr(number) if isinstance(number, float) else number


def _plain(value: Json, real: bool) -> Any:
    if isinstance(value, list):
        return [_plain(item, real) for item in value]
    if isinstance(value, Real):
        return repr(value.value)
    return f"{value}.0" if real and type(value) is int else value


def _differ(member: str, stated: object, found: object, faults: Faults) -> None:
    if stated != found or type(stated) is not type(found):
        faults.add("expectation_differs", member, "the document expects something else.", stated, found)
