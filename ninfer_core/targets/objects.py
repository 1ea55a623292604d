"""The member `objects` of a target document: entries and loops, expanded in canonical writer order."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from ninfer_core import strict_json
from ninfer_core.documents.fields import Faults, Fields, Path
from ninfer_core.documents.templates import fill
from ninfer_core.errors import IllegalShape, SizeOverflow
from ninfer_core.formats import FORMATS, NumericFormat
from ninfer_core.layouts import LAYOUTS, RESOURCE_ENCODING, canonical_layout
from ninfer_core.layouts.base import Layout, Shape
from ninfer_core.rejected_names import why_not
from ninfer_core.sources.json_text import json_path
from ninfer_core.strict_json import Json, Members
from ninfer_core.targets.expansion import Expansion
from ninfer_core.targets.target import TargetObject

Again = dict[tuple[Path, Path], dict[str, None]]  # first and second entry: the names that both make
Layouts = Mapping[str, Layout]  # by the name of the format

_LOOP: Final = ("each", "in", "body")
_TENSOR: Final = ("tensor", "shape", "format")
_RESOURCE: Final = ("resource", "encoding")


@dataclass(frozen=True, slots=True)
class _Entry:
    """An entry in which everything fits; `only` is the set of loop values it is made for, None for all of them."""

    path: Path
    template: str
    shape: Shape | None
    format: NumericFormat | None
    layout: Layout | None
    encoding: str | None
    bundle: str | None
    only: frozenset[int] | None

    def object(self, name: str) -> TargetObject:
        if self.encoding is not None:
            return TargetObject(name, "resource", None, None, None, self.encoding, self.bundle)
        return TargetObject(name, "tensor", self.shape, self.format, self.layout, None, self.bundle)


def read_layouts(fields: Fields) -> Layouts:
    """The member `layouts`: format to layout; formats that it leaves out have their canonical one."""
    layouts = {fmt.name: canonical_layout(fmt) for fmt in FORMATS}
    members = fields.object("layouts") or Members()
    reader = Fields(fields.faults, members, fields.path("layouts"), (), tuple(members))
    for name in members:
        fmt, layout = _known_format(fields.faults, name, reader.path(name)), reader.text(name)
        if layout is None or fmt is None:
            continue
        shown = strict_json.show(layout)
        if layout not in LAYOUTS:
            known = ", ".join(LAYOUTS.names)
            message = f"{shown} is no registered layout."
            fields.faults.add("layout_unknown", reader.path(name), message, known, shown)
        elif fmt not in LAYOUTS[layout].formats:
            message = f"layout {layout} does not hold {name}."
            expected = canonical_layout(fmt).name
            fields.faults.add("format_layout_pair", reader.path(name), message, expected, shown)
        else:
            layouts[name] = LAYOUTS[layout]
    return layouts


def read_objects(fields: Fields, expansion: Expansion, layouts: Layouts) -> tuple[TargetObject, ...]:
    """Every object in writer order; what is wrong becomes findings."""
    objects: list[TargetObject] = []
    makers: dict[str, Path] = {}
    again: Again = {}
    stated = fields.array("objects")
    if stated == []:
        fields.wrong_value("objects", "at least one object")
    for index, value in enumerate(stated or []):
        path = (*fields.path("objects"), index)
        if isinstance(value, Members) and "body" in value:
            _loop(value, path, expansion, layouts, objects, makers, again)
            continue
        entry = _entry(value, path, expansion, layouts, None)
        if entry is not None and expansion.spend(path, 1, len(entry.template)):
            _add(entry, entry.template, objects, makers, again)
    _refuse_again(expansion.faults, again)
    return tuple(objects)


def _loop(
    value: Members,
    path: Path,
    expansion: Expansion,
    layouts: Layouts,
    objects: list[TargetObject],
    makers: dict[str, Path],
    again: Again,
) -> None:
    fields = Fields(expansion.faults, value, path, _LOOP)
    variable, values = fields.text("each"), expansion.values(fields, "in")
    body = fields.array("body")
    if body == []:
        fields.wrong_value("body", "at least one entry")
    read = [
        _entry(inner, (*fields.path("body"), index), expansion, layouts, variable or "")
        for index, inner in enumerate(body or [])
    ]
    entries = [entry for entry in read if entry is not None]
    if variable is None or values is None:
        return
    if not expansion.steps(path, len(values) * len(entries)):
        return
    made = {entry.only: _count(values, entry.only) for entry in entries}
    for entry in entries:
        if not expansion.spend(entry.path, made[entry.only], len(entry.template)):
            return
    for number in values:
        for entry in entries:
            if entry.only is None or number in entry.only:
                _add(entry, fill(entry.template, {variable: number}), objects, makers, again)


def _count(values: tuple[int, ...], only: frozenset[int] | None) -> int:
    return len(values) if only is None else len(only.intersection(values))


def _entry(
    value: Json, path: Path, expansion: Expansion, layouts: Layouts, variable: str | None
) -> _Entry | None:
    """One entry; `variable` is that of the loop around it, None outside."""
    faults = expansion.faults
    if variable is not None and isinstance(value, Members) and "body" in value:
        faults.add(
            "loop_nested", path, "a loop within a loop.", "an entry of a tensor or a resource", "a loop"
        )
        return None
    resource = isinstance(value, Members) and "resource" in value
    optional = ("bundle",) if variable is None else ("bundle", "only")
    fields = Fields(faults, value, path, _RESOURCE if resource else _TENSOR, optional)
    variables = () if not variable else (variable,)
    template = expansion.template(fields, "resource" if resource else "tensor", variables)
    bundle = fields.text("bundle")
    only = expansion.members(fields, "only") if "only" in fields else None
    if "only" in fields and only is None:
        return None
    if resource:
        encoding = fields.choice("encoding", RESOURCE_ENCODING)
        if template is None or encoding is None:
            return None
        return _Entry(path, template, None, None, None, encoding, bundle, only)
    shape, fmt = fields.integers("shape", 1), _format(fields)
    if template is None or shape is None or fmt is None:
        return None
    layout = layouts[fmt.name]
    try:
        layout.encoded_size(fmt, shape)
    except (IllegalShape, SizeOverflow) as error:
        message = f"{fmt.name} ({layout.name}): {error}"
        faults.add("shape_unsupported", path, message, f"a shape for {layout.name}", list(shape))
        return None
    return _Entry(path, template, shape, fmt, layout, None, bundle, only)


def _format(fields: Fields) -> NumericFormat | None:
    name = fields.text("format")
    return None if name is None else _known_format(fields.faults, name, fields.path("format"))


def _known_format(faults: Faults, name: str, path: Path) -> NumericFormat | None:
    if name in FORMATS:
        return FORMATS[name]
    known, shown = ", ".join(FORMATS.names), strict_json.show(name)
    reason = f": {why}" if (why := why_not(name)) else ""
    faults.add("format_unknown", path, f"{shown} is no registered numeric format{reason}.", known, shown)
    return None


def _add(
    entry: _Entry, name: str, objects: list[TargetObject], makers: dict[str, Path], again: Again
) -> None:
    first = makers.get(name)
    if first is None:
        makers[name] = entry.path
        objects.append(entry.object(name))
    else:
        again.setdefault((first, entry.path), {})[name] = None


def _refuse_again(faults: Faults, again: Again) -> None:
    """One finding for each pair of entries that make the same names."""
    for (first, path), names in again.items():
        others = f" and {len(names) - 1:,} more names are" if len(names) > 1 else " is"
        shown = f"{strict_json.show(next(iter(names)))}{others}"
        message = f"{shown} listed here and at {json_path(first)}."
        if first == path:
            message = f"{shown} made again and again: the name lacks the variable of its loop."
        found = f"{json_path(first)} and {json_path(path)}"
        faults.add("object_duplicate", path, message, "one entry", found, names, other=json_path(first))
