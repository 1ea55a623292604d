"""B7 in revision 3: what a file binds under the name of a role of the target has to be what the target binds there.

In revisions 1 and 2 a file binds nothing: a view whose parent passes B3 binds as the target was read, since its rows
were compared with the parent's there.
"""

from collections.abc import Mapping
from math import prod
from typing import Any

from ninfer_core.containers.directory import ResourceObject, TensorObject
from ninfer_core.findings import Findings
from ninfer_core.strict_json import show
from ninfer_core.targets.target import Alias, Target, View

Stored = Mapping[str, TensorObject | ResourceObject]
_Parts = list[tuple[str, int, int]]  # object, first element, end


def check_roles(sections: Mapping[str, Any], target: Target, stored: Stored, findings: Findings) -> None:
    """Compare the bindings of a file with views and aliases; `stored` are the objects that pass B2 and B3.

    A role that the file does not bind, or whose objects are not there, is not judged; nor is an alias with an axis
    order, which a binding cannot express.
    """
    bindings: Mapping[str, Any] = sections.get("bindings") or {}
    for view in target.views:
        parent = stored.get(view.parent)
        if view.name in bindings and isinstance(parent, TensorObject):
            wanted = [_rows(parent, view.begin, view.end)]
            found = _parts(bindings[view.name], stored)
            if found != wanted:
                _report_view(view, wanted, found, findings)
    for alias in target.aliases:
        if alias.role not in bindings or alias.axes is not None or len(alias.objects) != 1:
            continue
        item = stored.get(alias.objects[0])
        if isinstance(item, TensorObject):
            begin, end = alias.rows or (0, item.shape[0] if item.shape else 1)
            wanted = [_rows(item, begin, end)]
            found = _parts(bindings[alias.role], stored)
            if found != wanted:
                _report_alias(alias, wanted, found, findings)


def _rows(item: TensorObject, begin: int, end: int) -> tuple[str, int, int]:
    """Rows as the range of logical elements that a binding states."""
    width = prod(item.shape[1:])
    return item.name, begin * width, end * width


def _parts(binding: Mapping[str, Any], stored: Stored) -> _Parts:
    """What a binding holds, neighbouring parts of one object joined; its form was checked with the structure."""
    if "object" in binding:
        item = stored.get(binding["object"])
        return [(binding["object"], 0, prod(item.shape) if isinstance(item, TensorObject) else 0)]
    joined: _Parts = []
    for part in binding["parts"]:
        begin, end = part["range"]
        if joined and joined[-1][0] == part["object"] and joined[-1][2] == begin:
            joined[-1] = (part["object"], joined[-1][1], end)
        else:
            joined.append((part["object"], begin, end))
    return joined


def _report_view(view: View, wanted: _Parts, found: _Parts, findings: Findings) -> None:
    expected, bound = _shown(wanted), _shown(found)
    findings.add(
        "inventory.view_unbound",
        f"the view {show(view.name)} is bound to {bound}, not to {expected}",
        object=view.parent,
        where={"view": view.name, "parent": view.parent},
        expected=expected,
        found=bound,
    )


def _report_alias(alias: Alias, wanted: _Parts, found: _Parts, findings: Findings) -> None:
    expected, bound = _shown(wanted), _shown(found)
    findings.add(
        "inventory.alias_unbound",
        f"the role {show(alias.role)} is bound to {bound}, not to {expected}",
        object=alias.objects[0],
        where={"role": alias.role, "objects": list(alias.objects)},
        expected=expected,
        found=bound,
    )


def _shown(parts: _Parts) -> str:
    first = ", ".join(f"elements [{begin}, {end}) of {show(name)}" for name, begin, end in parts[:8])
    return f"{first} and {len(parts) - 8} more" if len(parts) > 8 else first
