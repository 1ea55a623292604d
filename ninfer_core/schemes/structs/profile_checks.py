"""What two uses of struct types demand beyond their bytes: children of decision trees, and pages of one cache."""

from collections.abc import Sequence

import numpy as np

from ninfer_core.findings import Finding
from ninfer_core.schemes.structs.check import check_type
from ninfer_core.schemes.structs.faults import Faults
from ninfer_core.schemes.structs.limits import LIMITS, Limits
from ninfer_core.schemes.structs.model import Declaration, Declared, Value
from ninfer_core.schemes.structs.view import Payload, view


def check_decision_tree(
    declared: Declared,
    payload: Payload,
    children: Sequence[str] = ("nodes.left", "nodes.right"),
    limits: Limits = LIMITS,
) -> list[Finding]:
    """Every child of a tree that is neither -1 nor the index of a node: `profile_tree_child`.

    `children` are the paths of integer leaves with one element for each node. Raises: StructFault where the payload does
    not fit its type.
    """
    faults = Faults()
    arrays = {leaf.plan.path: leaf.array for leaf in view(declared, payload, limits)}
    for path in children:
        if path not in arrays or arrays[path].dtype.kind not in "iu":
            message = "no integer leaf gives the children."
            faults.add("profile_tree_child", path, message, "an integer leaf", "none", leaf=path)
            continue
        words = arrays[path].reshape(-1)
        wrong = np.flatnonzero((words < -1) | (words >= words.size))
        for index in wrong[:1].tolist():
            child, last = int(words[index]), words.size - 1
            faults.add(
                "profile_tree_child",
                f"{path}[{index}]",
                f"child {child} in a tree of {words.size:,} nodes.",
                f"-1 to {last}",
                child,
                int(wrong.size),
                leaf=path,
                index=index,
                word=child,
                limit=words.size,
            )
    return list(faults.findings.items)


def check_paged_kv(model: tuple[Declaration, ...], pages: Sequence[Value]) -> list[Finding]:
    """Every page that decodes to another type or shape than the first, or not at all: `profile_kv_signature`.

    Pages may be of any formats; the dims of each are bound to the parameters of its type. A page whose type has a fault
    gives the findings of that.
    """
    from ninfer_core.schemes.functions.signatures import decoded_type

    faults = Faults()
    first: str | None = None
    for index, page in enumerate(pages):
        place = f"pages[{index}]"
        wrong = check_type(model, page)
        if wrong:
            faults.take(wrong, place)
            continue
        declaration = model[page.type] if page.declaration is None else page.declaration
        bound = dict(zip(declaration.dims_param, page.dims, strict=True))
        found = None if declaration.decoder is None else decoded_type(declaration.decoder, bound)
        if found is None:
            faults.add("profile_kv_signature", place, "no decoder says what it means.", "a decoder", "none")
        elif first is None:
            first = found
        elif found != first:
            message = f"it decodes to {found}, the pages before to {first}."
            faults.add("profile_kv_signature", place, message, first, found)
    return list(faults.findings.items)
