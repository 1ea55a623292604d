"""Named integer lists of a document: what the variables of its templates run through."""

from collections.abc import Collection, Mapping

from ninfer_core import strict_json
from ninfer_core.documents.fields import Faults, Fields, Path
from ninfer_core.documents.templates import Each
from ninfer_core.sources.json_text import listed
from ninfer_core.strict_json import Json

Sets = dict[str, tuple[int, ...] | None]  # None: a set that is named but faulty


def read_sets(fields: Fields) -> Sets:
    """The member `sets`, every list without a repeated value."""
    members = fields.object("sets")
    if members is None:
        return {}
    reader = Fields(fields.faults, members, fields.path("sets"), (), tuple(members))
    sets: Sets = {}
    for name in members:
        values = reader.integers(name)
        if values is not None and len(set(values)) != len(values):
            reader.wrong_value(name, "integers that are all different")
            values = None
        sets[name] = values
    return sets


def read_set(
    faults: Faults, path: Path, name: Json, sets: Sets, filled: bool = True
) -> tuple[int, ...] | None:
    """The set of a name; None after a finding here or where it is defined. An empty one is a finding when `filled` is asked."""
    shown = strict_json.show(name)
    if not isinstance(name, str) or name not in sets:
        faults.add("set_unknown", path, f"no set {shown}.", listed(sets), shown)
        return None
    values = sets[name]
    if filled and values == ():
        message = f"the set {shown} is empty, so nothing comes of it."
        faults.add("set_empty", path, message, "a filled set", "an empty set")
        return None
    return values


def read_each(fields: Fields, sets: Sets) -> tuple[Each | None, Collection[str]]:
    """The member `each`: variables and their values, None after a finding; and the variables alone."""
    members: Mapping[str, Json] = fields.object("each") or {}
    found = {
        variable: read_set(fields.faults, (*fields.path("each"), variable), name, sets)
        for variable, name in members.items()
    }
    each = tuple((variable, values) for variable, values in found.items() if values is not None)
    stated = "each" not in fields or isinstance(fields.raw("each"), dict)
    return (each if stated and len(each) == len(members) else None), members
