"""Operation trees as the document states them: expanded for one object, in the spelling that hashes are taken of."""

import json
from collections.abc import Mapping
from typing import Any, Final

from ninfer_core.documents.templates import Assignment, fill

_TEMPLATES: Final = ("name", "names", "prefix")  # the members that hold templates


def expanded_tree(template: Mapping[str, Any], values: Assignment) -> dict[str, Any]:
    """The tree with every variable replaced; `template` is plain JSON of a sound rule."""
    return {name: _expanded(name, member, values) for name, member in template.items()}


def _expanded(name: str, member: Any, values: Assignment) -> Any:
    if isinstance(member, Mapping):
        return expanded_tree(member, values)
    if isinstance(member, list):
        return [_expanded(name, element, values) for element in member]
    return fill(member, values) if name in _TEMPLATES and isinstance(member, str) else member


def canonical_tree(tree: Mapping[str, Any]) -> str:
    """JSON text with sorted keys and no spaces."""
    return json.dumps(tree, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def described(tree: Mapping[str, Any]) -> str:
    """The moves of a tree in one line: operations outermost first, the operands of a join in brackets."""
    operand = tree.get("of")
    name = str(tree["op"])
    if isinstance(operand, list):
        inner = [described(part) for part in operand]
        return f"{name}[{', '.join(inner)}]"
    return f"{name} {described(operand)}" if isinstance(operand, Mapping) else name
