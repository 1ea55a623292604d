"""Codes of `target`: a target document on its own, before any artifact is compared with it."""

from ninfer_core.findings.definition import Definition, error
from ninfer_core.findings.documents import PATH, TYPING, schema_faults

_EDIT = "Correct the target; its schema is `ninfer-target/1`, described in docs/targets.md."


def _fault(
    slug: str, meaning: str, causes: str = TYPING, remedy: str = _EDIT, where: str = PATH
) -> Definition:
    return error(f"target.{slug}", None, meaning, causes, remedy, where)


TARGET: tuple[Definition, ...] = (
    *schema_faults(_fault, "The document expands to more objects, views or aliases than the limit."),
    _fault("set_unknown", "A loop, an `only` or an `each` names a set that `sets` does not define."),
    _fault("set_empty", "A loop runs over an empty set, so it makes nothing."),
    _fault("loop_nested", "A loop stands in the body of a loop; the schema has one level."),
    _fault(
        "template_invalid", "A name holds a brace that is not part of `{variable}` with a variable in scope."
    ),
    _fault(
        "object_duplicate",
        "Two entries expand to one name.",
        "Entries for different layers whose `only` sets overlap, or a name without the variable of its loop.",
        where=PATH + "; other: path of the first entry; objects: every name concerned",
    ),
    _fault("format_unknown", "The format is not one of the nine persistent formats."),
    _fault("layout_unknown", "The layout is not one of the four registered layouts."),
    _fault("format_layout_pair", "Format and layout are both registered, but not as a pair."),
    _fault(
        "shape_unsupported",
        "The layout of the format does not take this shape.",
        "A shape of another rank, or rows and columns that the layout's tiles do not divide.",
    ),
    _fault(
        "view_parent_unknown",
        "A view, an expert view or an alias speaks of an object that the target does not have.",
        "A renamed object, or an `each` that runs over layers in which the object does not exist.",
    ),
    _fault(
        "view_rows",
        "The row range of a view, an expert view or an alias is not [begin, end) inside its parent.",
        "Ranges counted in elements or bytes instead of rows, or begin and end exchanged.",
    ),
    _fault(
        "view_tiling",
        "The views of a parent do not tile its rows: some rows carry no role, or two.",
        "A missing part, or a range copied from a parent of another height.",
        where=PATH + "; parent; rows: of the parent; objects: every parent with the same fault",
    ),
    _fault(
        "view_duplicate",
        "Two views or aliases of one name, or one named as an object is.",
        "A name without a variable of `each`, or overlapping sets.",
        where=PATH + "; other: path of the first",
    ),
    _fault("alias_axes", "The axes of an alias are not a permutation of the axes of its object."),
    _fault(
        "totals_differ",
        "A count or a size that the document states is not that of its own expansion.",
        "An object added or changed without counting again.",
    ),
    _fault(
        "checks_differ",
        "A hash under `checks` is not that of the document's own expansion.",
        "A document edited after its checks were written, or an expansion that reads it differently.",
        "Take the hashes away, or correct what was changed; `ninfer-gate targets show` prints the right ones.",
    ),
)
