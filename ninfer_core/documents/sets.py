"""Named integer lists of a document: what the variables of its templates run through."""

from ninfer_core.documents.fields import Fields

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
