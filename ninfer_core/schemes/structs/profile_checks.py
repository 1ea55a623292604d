"""What two uses of struct types demand beyond their bytes: children of decision trees, and pages of one cache."""

from collections.abc import Sequence

import numpy as np

from ninfer_core.findings import Finding
from ninfer_core.schemes.structs.faults import Faults
from ninfer_core.schemes.structs.limits import LIMITS, Limits
from ninfer_core.schemes.structs.model import Declaration, Declared, Value
from ninfer_core.schemes.structs.view import Payload, view

_MOST = 16  # findings of one leaf


def check_decision_tree(
    declared: Declared,
    payload: Payload,
    children: Sequence[str] = ("nodes.left", "nodes.right"),
    limits: Limits = LIMITS,
) -> list[Finding]:
    """Every child of a tree that is neither -1 nor the index of a node: `profile_tree_child`.

    `children` are the paths of integer leaves with one element for each node. Raises: StructFault where the payload does not
    fit its type, KeyError for a leaf that the type does not have.
    """
    faults = Faults()
    arrays = {leaf.plan.path: leaf for leaf in view(declared, payload, limits)}
    for path in children:
        words = arrays[path].array.reshape(-1)
        wrong = np.flatnonzero((words < -1) | (words >= words.size))
        for index in wrong[:_MOST].tolist():
            child = int(words[index])
            faults.add(
                "profile_tree_child",
                f"{path}[{index}]",
                f"child {child} in a tree of {words.size:,} nodes.",
                f"-1 to {words.size - 1}",
                child,
                leaf=path,
                index=index,
                word=child,
                limit=words.size,
            )
        if wrong.size > _MOST:
            message = f"{wrong.size - _MOST:,} more children at fault."
            faults.add("profile_tree_child", path, message, "", "", int(wrong.size) - _MOST, leaf=path)
    return list(faults.findings.items)


def check_paged_kv(model: tuple[Declaration, ...], pages: Sequence[Value]) -> list[Finding]:
    """Every page that decodes to another type or shape than the first, or not at all: `profile_kv_signature`.

    The pages select types without a fault, of any formats; their dims are bound to the parameters of each type.
    """
    from ninfer_core.schemes.functions.signatures import decoded_type

    faults = Faults()
    first: str | None = None
    for index, page in enumerate(pages):
        declaration = model[page.type] if page.declaration is None else page.declaration
        bound = dict(zip(declaration.dims_param, page.dims, strict=True))
        found = None if declaration.decoder is None else decoded_type(declaration.decoder, bound)
        place = f"pages[{index}]"
        if found is None:
            faults.add("profile_kv_signature", place, "no decoder says what it means.", "a decoder", "none")
        elif first is None:
            first = found
        elif found != first:
            message = f"it decodes to {found}, the pages before to {first}."
            faults.add("profile_kv_signature", place, message, first, found)
    return list(faults.findings.items)
