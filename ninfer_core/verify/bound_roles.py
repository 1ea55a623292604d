"""B7 in revision 3: what a file binds under the names of a target's objects and roles has to be what the target says.

A tensor is bound as a whole under its own name, which is what `convert` writes, or in parts: its roles, views and
aliases that the target states, hold every element of it. In revisions 1 and 2 a file binds nothing: a view whose parent
passes B3 binds as the target was read, since its rows were compared with the parent's there.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import prod
from typing import Any, Literal

from ninfer_core.containers.directory import ResourceObject, TensorObject
from ninfer_core.findings import Findings
from ninfer_core.strict_json import show
from ninfer_core.targets.target import Alias, Target

Stored = Mapping[str, TensorObject | ResourceObject]
Parts = list[tuple[str, int, int]]  # object, first element, end


@dataclass(frozen=True, slots=True)
class _Role:
    """A name other than an object's own; `parts` are what the target binds it to."""

    kind: Literal["view", "alias"]
    name: str
    objects: tuple[str, ...]
    parts: Parts
    judged: bool = True  # an axis order, or several objects, is nothing that a binding can express


def check_roles(sections: Mapping[str, Any], target: Target, stored: Stored, findings: Findings) -> None:
    """Compare the bindings of a file with objects, views and aliases; `stored` are those that pass B2 and B3.

    What concerns other objects is not judged. A role other than an object's own name may be left out.
    """
    bindings: Mapping[str, Any] = sections.get("bindings") or {}
    held: dict[
        str, list[tuple[int, int]]
    ] = {}  # elements of each object that a role holds as the target says
    for role in _roles(target, stored):
        if role.name not in bindings:
            continue
        found = bound_parts(bindings[role.name], stored)
        if found == role.parts:
            for name, begin, end in found:
                held.setdefault(name, []).append((begin, end))
        elif role.judged:
            _report_role(role, found, findings)
    for wanted in target.objects:
        item = stored.get(wanted.name)
        if not isinstance(item, TensorObject):
            continue
        whole = [_whole(item)]
        if item.name not in bindings:
            if not _tiles(held.get(item.name, []), whole[0][2]):
                _report_object(item, whole, None, findings)
        elif (found := bound_parts(bindings[item.name], stored)) != whole:
            _report_object(item, whole, found, findings)


def judged_roles(sections: Mapping[str, Any], target: Target, stored: Stored) -> frozenset[str]:
    """The names about whose bindings `check_roles` has the last word: those it judges, and those that are right."""
    bindings: Mapping[str, Any] = sections.get("bindings") or {}
    names = set(target.by_name)
    for role in _roles(target, stored):
        right = role.name in bindings and bound_parts(bindings[role.name], stored) == role.parts
        if role.judged or right:
            names.add(role.name)
    return frozenset(names)


def bound_parts(binding: Mapping[str, Any], stored: Stored) -> Parts:
    """What a binding holds, neighbouring parts of one object joined; its form was checked with the structure."""
    if "object" in binding:
        item = stored.get(binding["object"])
        return [_whole(item) if isinstance(item, TensorObject) else (binding["object"], 0, 0)]
    joined: Parts = []
    for part in binding["parts"]:
        begin, end = part["range"]
        if joined and joined[-1][0] == part["object"] and joined[-1][2] == begin:
            joined[-1] = (part["object"], joined[-1][1], end)
        else:
            joined.append((part["object"], begin, end))
    return joined


def _roles(target: Target, stored: Stored) -> Iterator[_Role]:
    """Views and aliases whose objects are all there."""
    for view in target.views:
        parent = stored.get(view.parent)
        if isinstance(parent, TensorObject):
            yield _Role("view", view.name, (view.parent,), [_rows(parent, view.begin, view.end)])
    for alias in target.aliases:
        items = [stored.get(name) for name in alias.objects]
        tensors = [item for item in items if isinstance(item, TensorObject)]
        if len(tensors) == len(items):
            expressible = alias.axes is None and len(items) == 1
            yield _Role("alias", alias.role, alias.objects, _alias_parts(alias, tensors), expressible)


def _alias_parts(alias: Alias, items: list[TensorObject]) -> Parts:
    if alias.rows is None:
        return [_whole(item) for item in items]
    return [_rows(item, *alias.rows) for item in items]


def _whole(item: TensorObject) -> tuple[str, int, int]:
    return item.name, 0, prod(item.shape)


def _rows(item: TensorObject, begin: int, end: int) -> tuple[str, int, int]:
    """Rows as the range of logical elements that a binding states."""
    width = prod(item.shape[1:])
    return item.name, begin * width, end * width


def _tiles(ranges: list[tuple[int, int]], count: int) -> bool:
    """Whether the ranges hold every element; one may be in several."""
    reached = 0
    for begin, end in sorted(ranges):
        if begin > reached:
            return False
        reached = max(reached, end)
    return reached >= count


def _report_role(role: _Role, found: Parts, findings: Findings) -> None:
    expected, bound = _shown(role.parts), _shown(found)
    code, word = "inventory.alias_unbound", "role"
    where: dict[str, Any] = {"role": role.name, "objects": list(role.objects)}
    if role.kind == "view":
        code, word = "inventory.view_unbound", "view"
        where = {"view": role.name, "parent": role.objects[0]}
    findings.add(
        code,
        f"the {word} {show(role.name)} is bound to {bound}, not to {expected}",
        object=role.objects[0],
        where=where,
        expected=expected,
        found=bound,
    )


def _report_object(item: TensorObject, whole: Parts, found: Parts | None, findings: Findings) -> None:
    expected = _shown(whole)
    bound = "no binding of its name, nor of roles that hold all of it" if found is None else _shown(found)
    told = f"has {bound}" if found is None else f"is bound to {bound}, not to all of the object"
    findings.add(
        "inventory.object_unbound",
        f"{show(item.name)} {told}",
        object=item.name,
        ordinal=item.ordinal,
        where={"path": f"bindings.{item.name}"},
        expected=expected,
        found=bound,
    )


def _shown(parts: Parts) -> str:
    first = ", ".join(f"elements [{begin}, {end}) of {show(name)}" for name, begin, end in parts[:8])
    return f"{first} and {len(parts) - 8} more" if len(parts) > 8 else first
