"""What a declaration is made of, judged piece by piece: names, contents of fields, scalars, components, constants."""

from collections.abc import Callable, Iterable, Iterator
from typing import Final

from ninfer_core.schemes.structs.constants import constant_fault
from ninfer_core.schemes.structs.faults import Faults
from ninfer_core.schemes.structs.leaves import LEAVES
from ninfer_core.schemes.structs.limits import Limits
from ninfer_core.schemes.structs.model import Constant, Leaf, PackedArray, Structure
from ninfer_core.schemes.structs.walk import Node

MAX_COMPONENT_BITS: Final = 64


def check_contents(nodes: tuple[Node, ...], limits: Limits, faults: Faults) -> None:
    """All of it, in the order of section 8: names, fields, scalars with components, constants."""
    _check_widths(nodes, limits, faults)
    _check_node_names(nodes, faults)
    _check_fields(nodes, faults)
    _check_leaves(nodes, faults)
    _check_constants(nodes, limits, faults)


def _check_widths(nodes: tuple[Node, ...], limits: Limits, faults: Faults) -> None:
    for node in nodes:
        match node.type:
            case Structure(fields=parts) if len(parts) > limits.fields:
                _over("fields", node, len(parts), limits.fields, faults)
            case PackedArray(components=parts) if len(parts) > limits.components:
                _over("components", node, len(parts), limits.components, faults)


def _over(what: str, node: Node, found: int, limit: int, faults: Faults) -> None:
    message = f"{found:,} {what} are more than {limit:,}."
    faults.add(f"limit_{what}", node.place, message, limit, found, limit=limit)


def check_names(names: Iterable[str], place: Callable[[], str], what: str, faults: Faults) -> None:
    """Every name filled and different; `place` says the list that they stand in, and is asked only for a fault."""
    seen: set[str] = set()
    for index, name in enumerate(names):
        if not name:
            where = f"{place()}[{index}]"
            faults.add("missing_name", where, f"the {what} has no name.", "a name", "nothing")
        elif name in seen:
            where = f"{place()}[{index}]"
            message = f"a second {what} is called {name!r}."
            faults.add("duplicate_name", where, message, "different names", name, name=name)
        seen.add(name)


def _check_node_names(nodes: tuple[Node, ...], faults: Faults) -> None:
    for node in nodes:
        match node.type:
            case Structure(fields=parts):
                check_names((part.name for part in parts), node.inside("structure"), "field", faults)
            case PackedArray(components=parts):
                place = node.inside("packed_array.components")
                check_names((part.name for part in parts), place, "component", faults)


def _check_fields(nodes: tuple[Node, ...], faults: Faults) -> None:
    for node in nodes:
        if isinstance(node.type, Structure):
            for index, field in enumerate(node.type.fields):
                if (field.type is None) is (field.constant is None):
                    found = "neither" if field.type is None else "both"
                    message = f"field {field.name!r} selects {found} of type and constant."
                    place = f"{node.place}.structure[{index}]"
                    faults.add("field_content", place, message, "a type or a constant", found)


def _check_leaves(nodes: tuple[Node, ...], faults: Faults) -> None:
    for node in nodes:
        match node.type:
            case Leaf(name=name, shape=shape):
                if name not in LEAVES:
                    expected = ", ".join(LEAVES.names)
                    message = f"{name or 'nothing'} is no scalar of a payload."
                    faults.add("bad_leaf_type", node.place, message, expected, name)
                elif shape:
                    message = f"a scalar with shape {list(shape)}; repetition is an array."
                    faults.add("bad_leaf_type", node.place, message, [], list(shape))
            case PackedArray(components=parts):
                place = node.inside("packed_array.components")
                if not parts:
                    faults.add("bad_component_width", place(), "no component.", "a component", "none")
                for index, part in enumerate(parts):
                    if not 1 <= part.bits <= MAX_COMPONENT_BITS:
                        expected = f"1 to {MAX_COMPONENT_BITS}"
                        message = f"component {part.name!r} is {part.bits} bits wide."
                        faults.add("bad_component_width", f"{place()}[{index}]", message, expected, part.bits)


def has_dots(nodes: tuple[Node, ...]) -> bool:
    """Whether a name of a field or component has a dot in it, as the paths of leaves have between names."""
    names = (
        part.name
        for node in nodes
        for part in (
            node.type.fields
            if isinstance(node.type, Structure)
            else node.type.components
            if isinstance(node.type, PackedArray)
            else ()
        )
    )
    return any("." in name for name in names)


def constants_of(nodes: Iterable[Node]) -> Iterator[tuple[Node, int, Constant]]:
    """Each constant with its structure and the index of its field."""
    for node in nodes:
        if isinstance(node.type, Structure):
            for index, field in enumerate(node.type.fields):
                if field.constant is not None:
                    yield node, index, field.constant


def _check_constants(nodes: tuple[Node, ...], limits: Limits, faults: Faults) -> None:
    total = 0
    for node, index, constant in constants_of(nodes):
        total += len(constant.data)
        wrong = constant_fault(constant)
        if wrong is not None:
            faults.add("bad_constant", f"{node.place}.structure[{index}].constant", *wrong)
    if total > limits.constant_bytes:
        limit = limits.constant_bytes
        place = nodes[0].place
        message = f"{total:,} bytes of constants are more than {limit:,}."
        faults.add("limit_constant_bytes", place, message, limit, total, limit=limit)
