"""The checker: every fault of a value and its type, each with its code, in the order of section 8.

Value selection, references and cycles, names, leaf types, constants, dimension parameters, size arithmetic, byte
multiple, payload source, payload length, signatures; limits where they are met. A size is not computed of a type that
has none, so a fault of the type hides what would only follow from it.
"""

from typing import Final

from ninfer_core.findings import Finding
from ninfer_core.schemes.structs.constants import MAX_UINT64
from ninfer_core.schemes.structs.contents import check_contents
from ninfer_core.schemes.structs.faults import Faults
from ninfer_core.schemes.structs.layout import Laid, lay_out
from ninfer_core.schemes.structs.limits import LIMITS, Limits
from ninfer_core.schemes.structs.model import Declaration, Value
from ninfer_core.schemes.structs.parameters import check_parameters
from ninfer_core.schemes.structs.payload import check_payload
from ninfer_core.schemes.structs.reach import INLINE, Reached, reach

# Faults that leave the size what it is.
_SIZED_ANYWAY: Final = frozenset(
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
    faults = Faults()
    reached = _select(model, value, limits, faults)
    if reached is not None:
        laid = judge(reached, value.dims, limits, faults)
        if laid is not None:
            inline = len(value.data) if inline_bytes is None else inline_bytes
            check_payload(laid.bits, value, inline, faults)
    return list(faults.findings.items)


def _select(model: tuple[Declaration, ...], value: Value, limits: Limits, faults: Faults) -> Reached | None:
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
    check_contents(tuple(reached.all_nodes()), limits, faults)
    check_parameters(reached, dims, limits, faults)
    if any(finding.code not in _SIZED_ANYWAY for finding in faults.findings):
        return None
    laid = lay_out(reached, dims)
    if laid.overflow is not None:
        message = f"more than {MAX_UINT64:,} bits."
        faults.add("size_overflow", laid.overflow.place, message, f"at most {MAX_UINT64}", "more")
        return None
    return laid
