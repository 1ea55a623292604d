"""The checker: every fault of a value and its type, each with its code, in the order of section 8.

Value selection, references and cycles, names, leaf types, constants, dimension parameters, size arithmetic, byte
multiple, payload source, payload length, signatures; limits where they are met. A size is not computed of a type that
has none, so a fault of the type hides what would only follow from it.
"""

from typing import Final

from ninfer_core.findings import Finding, Findings
from ninfer_core.schemes.structs.constants import MAX_UINT64
from ninfer_core.schemes.structs.contents import check_contents, check_names, constants_of, has_dots
from ninfer_core.schemes.structs.faults import Faults
from ninfer_core.schemes.structs.layout import Laid, lay_out
from ninfer_core.schemes.structs.limits import LIMITS, Limits
from ninfer_core.schemes.structs.model import Declaration, Value
from ninfer_core.schemes.structs.parameters import check_dims, check_parameters
from ninfer_core.schemes.structs.payload import check_multiple, check_payload
from ninfer_core.schemes.structs.plans import unroll
from ninfer_core.schemes.structs.reach import INLINE, Reached, place_of, reach
from ninfer_core.schemes.structs.walk import Node

MAX_PATHS: Final = 64 << 20  # characters of all paths of a root: each repeats the names on its way

# Faults that leave the size what it is.
SIZED_ANYWAY: Final = frozenset(
    f"struct.{code}"
    for code in (
        "missing_name",
        "duplicate_name",
        "bad_constant",
        "unused_dimension_parameter",
        "limit_constant_bytes",
        "limit_dimension_parameters",
    )
)


def check_value(
    model: tuple[Declaration, ...],
    value: Value,
    limits: Limits = LIMITS,
    *,
    inline_bytes: int | None = None,
) -> list[Finding]:
    """Every fault of a value and of the type that it selects; only declarations that it reaches are looked at.

    `inline_bytes` is the length of the inline payload where its bytes are not in `value.data`.
    """
    inline = len(value.data) if inline_bytes is None else inline_bytes
    return list(checked(model, value, limits, inline)[0].items)


def check_type(model: tuple[Declaration, ...], value: Value, limits: Limits = LIMITS) -> list[Finding]:
    """The same of the type and the counts alone, whatever payload the value has or lacks."""
    return list(checked(model, value, limits, None)[0].items)


def checked(
    model: tuple[Declaration, ...], value: Value, limits: Limits, inline_bytes: int | None
) -> tuple[Findings, Laid | None]:
    """The same with the layout, None where the type has none; without `inline_bytes` no payload is looked for."""
    faults = Faults()
    reached = select(model, value, limits, faults)
    laid = None if reached is None else judge(reached, value.dims, limits, faults)
    if reached is not None and laid is not None:
        sound = not faults.findings.items
        check_multiple(laid.bits, faults)
        if inline_bytes is not None:
            check_payload(laid.bits, value, inline_bytes, faults)
        if sound:
            check_signatures(reached, laid, value.dims, faults)
        else:
            laid = None
    return faults.findings, laid


def select(model: tuple[Declaration, ...], value: Value, limits: Limits, faults: Faults) -> Reached | None:
    """The declarations of the type that a value selects, or None after `bad_type_sentinel`."""
    given = value.declaration is not None
    if value.type < INLINE or (value.type == INLINE) is not given:
        found = f"type {value.type} {'with' if given else 'without'} struct_type"
        expected = "an index without struct_type, or -1 with it"
        faults.add("bad_type_sentinel", "value.type", f"{found}.", expected, found)
        return None
    return reach(model, value.type, value.declaration, limits, faults)


def judge(reached: Reached, dims: tuple[int, ...], limits: Limits, faults: Faults) -> Laid | None:
    """The faults of a type with its counts, and its layout where they leave it one.

    Adds `size_overflow` and `limit_leaves` beside those of the other modules.
    """
    nodes = tuple(reached.all_nodes())
    check_contents(nodes, limits, faults)
    check_parameters(reached, limits, faults)
    check_dims(reached, dims, faults)
    if any(finding.code not in SIZED_ANYWAY for finding in faults.findings):
        return None
    laid = lay_out(reached, dims)[reached.downwards()[0]]
    if overflows(laid, faults):
        return None
    _check_paths(nodes, laid, limits, faults)
    return laid


def check_signatures(reached: Reached, laid: Laid, dims: tuple[int, ...], faults: Faults) -> None:
    """The functions of the root; those of declarations below it do not count (section 1).

    Adds `decoder_signature`, `decoder_restriction` and `encoder_signature`.
    """
    index = reached.downwards()[0]
    root = reached.declarations[index]
    if root.decoder is not None or root.encoder is not None:
        # Imported here, so that a type without functions is checked without ONNX.
        from ninfer_core.schemes.functions.signatures import check_functions

        check_functions(root, unroll(laid), dims, laid.bits // 8, faults, place_of(index))


def overflows(laid: Laid, faults: Faults) -> bool:
    """Whether a size does not fit 64 bits; adds `size_overflow` then."""
    if laid.overflow is None:
        return False
    message = f"more than {MAX_UINT64:,} bits."
    faults.add("size_overflow", laid.overflow.place, message, f"at most {MAX_UINT64}", "more")
    return True


def _check_paths(nodes: tuple[Node, ...], laid: Laid, limits: Limits, faults: Faults) -> None:
    total = laid.leaves + sum(1 for _ in constants_of(nodes))
    if total > limits.leaves:
        limit = limits.leaves
        message = f"{total:,} leaves are more than {limit:,}."
        faults.add("limit_leaves", nodes[0].place, message, limit, total, limit=limit)
    elif total * laid.longest > MAX_PATHS:
        found = f"{total:,} leaves with paths of up to {laid.longest:,} characters"
        message = f"{found} are more than all names here may take."
        expected = f"at most {MAX_PATHS:,} characters"
        faults.add("limit_leaves", nodes[0].place, message, expected, found, limit=limits.leaves)
    elif not faults.findings.items and has_dots(nodes):
        # Names with dots can make one path of two ways; without them only repeated names can.
        check_names((plan.path or "(root)" for plan in unroll(laid)), lambda: "leaves", "leaf", faults)
