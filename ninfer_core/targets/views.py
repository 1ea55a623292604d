"""Views, expert views and aliases of a target document: roles bound to objects, none of them an object of the file."""

import re
from collections.abc import Iterable, Mapping
from typing import Final

from ninfer_core import strict_json
from ninfer_core.documents.fields import Faults, Fields, Path
from ninfer_core.documents.templates import fill
from ninfer_core.layouts.base import MAX_RANK
from ninfer_core.sources.json_text import json_path
from ninfer_core.strict_json import Members
from ninfer_core.targets.expansion import Expansion, row_range
from ninfer_core.targets.target import Alias, ExpertView, TargetObject, View

Objects = Mapping[str, TargetObject]

# Possessive, so that a name is read once: `{a}{b}` matches nothing instead of every way to share the digits.
_DECIMAL: Final = "(?:0|[1-9][0-9]*+)"
_VARIABLE: Final = re.compile(r"\{[^{}]*\}")


class Names:
    """The names taken so far, by objects, views and aliases, each with the path of who took it."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self._taken: dict[str, Path] = {}

    def take(self, faults: Faults, name: str, path: Path) -> bool:
        """Whether the name was free."""
        first = self._taken.get(name)
        if first is None and name not in self._objects:
            self._taken[name] = path
            return True
        shown = strict_json.show(name)
        other = "an object" if first is None else json_path(first)
        message = f"{shown} is a role here, and it is {other} too."
        faults.add("view_duplicate", path, message, "a name of its own", other, (name,), other=other)
        return False


def read_views(fields: Fields, expansion: Expansion, objects: Objects, names: Names) -> tuple[View, ...]:
    """Every view, expanded; the views of a parent have to tile its rows."""
    faults = fields.faults
    views: list[View] = []
    at: dict[str, Path] = {}  # parent: its first view
    sound = True
    for index, value in enumerate(fields.array("views") or []):
        path = (*fields.path("views"), index)
        entry = Fields(faults, value, path, ("view", "of", "rows"), ("each",))
        each, variables = expansion.each(entry)
        name, parent = (expansion.template(entry, member, variables) for member in ("view", "of"))
        rows = row_range(entry, "rows")
        if name is None or parent is None or rows is None or each is None:
            sound = False
            continue
        for values in expansion.rounds(path, each, (name, parent)):
            view = View(fill(name, values), fill(parent, values), *rows)
            at.setdefault(view.parent, path)
            height = _height(faults, objects, view.parent, path)
            if height is None or not _within(faults, path, view.parent, rows, height):
                sound = False
            else:
                names.take(faults, view.name, path)
                views.append(view)  # also under a name that is taken: its rows are no hole
    if sound:  # a missing view would be reported as a hole in its parent, once more
        _check_tiling(faults, views, objects, at)
    return tuple(views)


def _check_tiling(faults: Faults, views: list[View], objects: Objects, at: Mapping[str, Path]) -> None:
    by_parent: dict[str, list[tuple[int, int]]] = {}
    for view in views:
        by_parent.setdefault(view.parent, []).append((view.begin, view.end))
    alike: dict[tuple[Path, str, int, tuple[tuple[int, int], ...]], list[str]] = {}
    for parent, ranges in by_parent.items():
        height = (objects[parent].shape or (0,))[0]
        if (fault := _tiling_fault(ranges, height)) is not None:
            alike.setdefault((at[parent], fault, height, tuple(sorted(ranges))), []).append(parent)
    for (path, fault, height, rows), parents in alike.items():
        message = f"the views of {_some(parents)} {fault}."
        expected = f"[0, {height}) tiled exactly"
        found = ", ".join(f"[{begin}, {end})" for begin, end in rows[:16])
        faults.add("view_tiling", path, message, expected, found, parents, parent=parents[0], rows=height)


def _some(names: list[str]) -> str:
    more = f" and {len(names) - 1:,} more" if len(names) > 1 else ""
    return f"{strict_json.show(names[0])}{more}"


def _tiling_fault(ranges: Iterable[tuple[int, int]], height: int) -> str | None:
    cursor = 0
    for begin, end in sorted(ranges):
        if begin > cursor:
            return f"leave out rows [{cursor}, {begin})"
        if begin < cursor:
            return f"hold rows [{begin}, {min(cursor, end)}) twice"
        cursor = end
    return None if cursor == height else f"leave out rows [{cursor}, {height})"


def _height(faults: Faults, objects: Objects, parent: str, path: Path) -> int | None:
    """Rows of a parent that has any; None after a finding."""
    item = objects.get(parent)
    if item is not None and item.shape:
        return item.shape[0]
    found = "no such object" if item is None else "a resource" if item.shape is None else "a scalar"
    message = f"the parent {strict_json.show(parent)} is {found}."
    faults.add("view_parent_unknown", path, message, "a tensor of the target", found, (parent,))
    return None


def _within(faults: Faults, path: Path, parent: str, rows: tuple[int, int], height: int) -> bool:
    if rows[1] <= height:
        return True
    found = f"[{rows[0]}, {rows[1]})"
    message = f"rows {found} of {strict_json.show(parent)}, which has {height:,}."
    faults.add("view_rows", path, message, f"rows below {height}", found, (parent,))
    return False


def read_expert_views(fields: Fields, expansion: Expansion, objects: Objects) -> tuple[ExpertView, ...]:
    """The expert banks; a `{v}` in `of` stands for every decimal that makes the name of an object."""
    found: list[ExpertView] = []
    for index, value in enumerate(fields.array("expert_views") or []):
        path = (*fields.path("expert_views"), index)
        entry = Fields(fields.faults, value, path, ("of", "experts", "stride", "parts"))
        patterns = entry.texts("of")
        experts, stride = entry.integer("experts", 1), entry.integer("stride", 1)
        parts = _parts(entry, stride)
        if patterns is None or experts is None or stride is None or parts is None:
            continue
        for pattern in patterns:
            wrong: dict[int, list[str]] = {}
            for parent in _matching(pattern, path, expansion, objects):
                height = _height(fields.faults, objects, parent, path)
                if height is not None and height != experts * stride:
                    wrong.setdefault(height, []).append(parent)
                elif height is not None:
                    found.append(ExpertView(parent, experts, stride, parts))
            for height, parents in wrong.items():
                message = (
                    f"{experts} experts of {stride} rows are not the {height:,} rows of {_some(parents)}."
                )
                fields.faults.add("view_tiling", path, message, height, experts * stride, parents)
    return tuple(found)


def _parts(entry: Fields, stride: int | None) -> tuple[tuple[str, int, int], ...] | None:
    members = entry.object("parts")
    if members is None:
        return None
    reader = Fields(entry.faults, members, entry.path("parts"), (), tuple(members))
    ranges = {name: row_range(reader, name) for name in members}
    parts = tuple((name, *rows) for name, rows in ranges.items() if rows is not None)
    if len(parts) != len(members) or stride is None:
        return None
    if (fault := _tiling_fault([(begin, end) for _, begin, end in parts], stride)) is not None:
        shown = strict_json.show(entry.raw("parts"))
        entry.faults.add(
            "view_tiling",
            entry.path("parts"),
            f"the parts {fault}.",
            f"[0, {stride}) tiled exactly",
            shown,
        )
        return None
    return parts


def _matching(pattern: str, path: Path, expansion: Expansion, objects: Objects) -> list[str]:
    variables = tuple(token[0][1:-1] for token in _VARIABLE.finditer(pattern))
    if expansion.check_template(pattern, (*path, "of"), variables) is None:
        return []
    names: list[str] = []
    if not variables:
        names = [pattern] if pattern in objects else []
    elif expansion.spend(path, len(objects), 0):
        literals = (re.escape(text) for text in _VARIABLE.split(pattern))
        compiled = re.compile(_DECIMAL.join(literals))
        names = [name for name in objects if compiled.fullmatch(name)]
    else:
        return []
    if not names:
        message = f"no object is called {strict_json.show(pattern)}."
        expansion.faults.add(
            "view_parent_unknown", path, message, "tensors of the target", "none", (pattern,)
        )
    return names


def read_aliases(fields: Fields, expansion: Expansion, objects: Objects, names: Names) -> tuple[Alias, ...]:
    """Every alias, expanded."""
    faults = fields.faults
    aliases: list[Alias] = []
    for index, value in enumerate(fields.array("aliases") or []):
        path = (*fields.path("aliases"), index)
        entry = Fields(faults, value, path, ("role", "objects"), ("axes", "rows", "each"))
        each, variables = expansion.each(entry)
        role = expansion.template(entry, "role", variables)
        stated = entry.texts("objects")
        if stated == ():
            entry.wrong_value("objects", "at least one object")
        templates = [
            expansion.check_template(text, (*entry.path("objects"), place), variables)
            for place, text in enumerate(stated or ())
        ]
        bound = tuple(text for text in templates if text is not None)
        axes, rows = entry.integers("axes"), row_range(entry, "rows")
        if axes is not None and len(axes) > MAX_RANK:
            entry.wrong_value("axes", f"at most {MAX_RANK} axes")
            continue
        if role is None or each is None or not bound or len(bound) != len(templates):
            continue
        for values in expansion.rounds(path, each, (role, *bound)):
            alias = Alias(fill(role, values), tuple(fill(text, values) for text in bound), axes, rows)
            fits = [_alias_fits(faults, alias, name, objects, path) for name in alias.objects]
            if all(fits) and names.take(faults, alias.role, path):
                aliases.append(alias)
    return tuple(aliases)


def _alias_fits(faults: Faults, alias: Alias, name: str, objects: Objects, path: Path) -> bool:
    item = objects.get(name)
    if item is None:
        message = f"the alias is bound to {strict_json.show(name)}, which is no object."
        faults.add("view_parent_unknown", path, message, "an object of the target", "nothing", (name,))
        return False
    fits = True
    if alias.axes is not None and sorted(alias.axes) != list(range(len(item.shape or ()))):
        message = f"axes {list(alias.axes)} for {strict_json.show(name)} of shape {list(item.shape or ())}."
        expected = f"a permutation of {len(item.shape or ())} axes"
        faults.add("alias_axes", path, message, expected, list(alias.axes), (name,))
        fits = False
    if alias.rows is not None:
        height = _height(faults, objects, name, path)
        fits = height is not None and _within(faults, path, name, alias.rows, height) and fits
    return fits


def count_templates(root: Members, member: str) -> int:
    """How many entries a member of the document has, before expansion."""
    value = root.get(member)
    return len(value) if isinstance(value, list) else 0
