"""Faults of a model's declarations as a whole, and of the static types that its graph gives to values."""

from dataclasses import replace

from ninfer_core.findings import Finding
from ninfer_core.schemes.structs.check import SIZED_ANYWAY, overflows
from ninfer_core.schemes.structs.constants import MAX_UINT64
from ninfer_core.schemes.structs.contents import check_contents
from ninfer_core.schemes.structs.contents import check_names as check_name_list
from ninfer_core.schemes.structs.faults import Faults
from ninfer_core.schemes.structs.layout import lay_out
from ninfer_core.schemes.structs.limits import LIMITS, Limits
from ninfer_core.schemes.structs.model import Declaration, Reference
from ninfer_core.schemes.structs.parameters import check_parameters
from ninfer_core.schemes.structs.reach import reach_all


def check_names(model: tuple[Declaration, ...]) -> list[Finding]:
    """The names of declarations, which a model has to give and not twice: `missing_name`, `duplicate_name`."""
    faults = Faults()
    check_name_list((declaration.name for declaration in model), lambda: "types", "declaration", faults)
    return list(faults.findings.items)


def check_model(model: tuple[Declaration, ...], limits: Limits = LIMITS) -> list[Finding]:
    """Every fault of a model's declarations but their names; what only a value decides is left to `check_value`."""
    faults = Faults()
    reached = reach_all(model, limits, faults)
    nodes = tuple(node for index in range(len(model)) for node in reached.nodes[index])
    # A limit of one root, which many declarations together may pass.
    check_contents(nodes, replace(limits, constant_bytes=MAX_UINT64), faults)
    check_parameters(reached, limits, faults)
    if all(finding.code in SIZED_ANYWAY for finding in faults.findings):
        static = {index: one for index, one in reached.declarations.items() if not one.dims_param}
        for laid in lay_out(replace(reached, declarations=static), ()).values():
            if overflows(laid, faults):
                break  # what contains it overflows as well
    return list(faults.findings.items)


def check_static(
    form: Declaration, model: tuple[Declaration, ...] | None, place: str = "static"
) -> list[Finding]:
    """The static type of a graph value or of a container's elements: a reference, or nothing at all, and no more.

    Without a model no index is out of its range. Adds `static_form_extras` and `type_index_out_of_range`.
    """
    faults = Faults()
    extras = {
        "decoder": form.decoder,
        "encoder": form.encoder,
        "name": form.name,
        "dims_param": form.dims_param,
        "metadata_props": form.metadata,
        "an inline declaration": None if isinstance(form.type, Reference) else form.type,
    }
    for what, given in extras.items():
        if given is not None and given not in ("", ()):
            message = f"a static type cannot carry {what}."
            faults.add("static_form_extras", place, message, "a reference or nothing", what)
    if model is not None and isinstance(form.type, Reference) and not 0 <= form.type.index < len(model):
        message = f"no declaration {form.type.index} among {len(model)}."
        expected = f"below {len(model)}"
        faults.add("type_index_out_of_range", f"{place}.type_index", message, expected, form.type.index)
    return list(faults.findings.items)
