"""Dimension parameters: what lists them, what uses them, and the counts that a value gives (section 4)."""

from collections.abc import Iterator

from ninfer_core.schemes.structs.constants import MAX_UINT64
from ninfer_core.schemes.structs.faults import Faults
from ninfer_core.schemes.structs.limits import Limits
from ninfer_core.schemes.structs.model import Array, Count, Dim, PackedArray, Reference
from ninfer_core.schemes.structs.reach import Reached, place_of
from ninfer_core.schemes.structs.walk import Node


def counts_of(nodes: tuple[Node, ...]) -> Iterator[tuple[Node, Count]]:
    """Each count of a declaration, with the node that it repeats."""
    for node in nodes:
        if isinstance(node.type, Array | PackedArray):
            yield node, node.type.count


def check_parameters(reached: Reached, limits: Limits, faults: Faults) -> None:
    """What declarations list and use.

    Adds `parametric_nested`, `dims_index_out_of_range`, `unused_dimension_parameter`, `value_invalid` and
    `limit_dimension_parameters`.
    """
    for index in reached.downwards():
        _check_declaration(reached, index, limits, faults)
    for node in reached.all_nodes():
        if isinstance(node.type, Reference):
            target = reached.declarations.get(node.type.index)
            if target is not None and target.dims_param:
                place = place_of(node.type.index)
                message = f"{place} has parameters, so no other type can contain it."
                faults.add("parametric_nested", node.place, message, "a type without parameters", place)


def _check_declaration(reached: Reached, index: int, limits: Limits, faults: Faults) -> None:
    declared = len(reached.declarations[index].dims_param)
    if declared > limits.dimension_parameters:
        limit = limits.dimension_parameters
        message = f"{declared:,} parameters are more than {limit}."
        faults.add("limit_dimension_parameters", place_of(index), message, limit, declared, limit=limit)
    used: set[int] = set()
    for node, count in counts_of(reached.nodes[index]):
        if isinstance(count, Dim):
            used.add(count.index)
            if not 0 <= count.index < declared:
                message = f"dims_index {count.index} with {declared} parameters."
                faults.add("dims_index_out_of_range", node.place, message, f"below {declared}", count.index)
        elif not 0 <= count <= MAX_UINT64:
            message = f"a count of {count}."
            faults.add("value_invalid", node.place, message, "an unsigned 64-bit integer", count)
    for parameter, name in enumerate(reached.declarations[index].dims_param):
        if parameter not in used:
            place = f"{place_of(index)}.dims_param[{parameter}]"
            faults.add("unused_dimension_parameter", place, f"no count uses {name!r}.", "a count", "none")


def check_dims(reached: Reached, dims: tuple[int, ...], faults: Faults) -> None:
    """The counts that a value gives to its root. Adds `dims_count_mismatch` and `value_invalid`."""
    if not reached.declarations:
        return
    parameters = len(reached.declarations[reached.downwards()[0]].dims_param)
    if len(dims) != parameters:
        message = f"{len(dims)} counts for {parameters} parameters."
        faults.add("dims_count_mismatch", "value.dims", message, parameters, len(dims))
    for index, count in enumerate(dims):
        if not 0 <= count <= MAX_UINT64:
            message = f"a count of {count}."
            faults.add("value_invalid", f"value.dims[{index}]", message, "an unsigned 64-bit integer", count)
