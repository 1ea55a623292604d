"""What a target document says of itself, counted again: `components`, `totals` and the hashes under `checks`."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from ninfer_core import strict_json
from ninfer_core.documents.canonical import lines_sha256, sorted_sha256
from ninfer_core.documents.fields import Faults, Fields, Path
from ninfer_core.strict_json import Members
from ninfer_core.targets.expansion import Expansion
from ninfer_core.targets.target import (
    TargetObject,
    View,
    component_of,
)

_TOTALS: Final = ("objects", "tensors", "resources", "formats", "layouts", "tensor_bytes")
_WITH_RESOURCES: Final = ("resource_bytes", "object_bytes", "payload_span_bytes", "alignment_bytes")
_CHECKS: Final = ("inventory_sha256", "ordered_inventory_sha256", "tensor_bytes_sha256")


def own_hashes(objects: Sequence[TargetObject], views: Iterable[View]) -> dict[str, str]:
    """Bare hex by the names under `checks`; `views` is that of its sorted `view|parent|begin|end` lines."""
    lines = [item.line for item in objects]
    sizes = (f"{item.name}|{item.bytes}" for item in objects if item.bytes is not None)
    return {
        "inventory_sha256": sorted_sha256(lines),
        "ordered_inventory_sha256": lines_sha256(lines),
        "tensor_bytes_sha256": sorted_sha256(sizes),
        "views": sorted_sha256(f"{view.name}|{view.parent}|{view.begin}|{view.end}" for view in views),
    }


def check_totals(fields: Fields, objects: Sequence[TargetObject]) -> None:
    """Compare `totals`; what depends on the lengths of resources, which a target does not state, is not judged."""
    stated = fields.object("totals")
    if stated is None:
        return
    at = fields.path("totals")
    reader = Fields(fields.faults, stated, at, (), (*_TOTALS, *_WITH_RESOURCES))
    tensors = [item for item in objects if item.kind == "tensor"]
    counts = {
        "objects": len(objects),
        "tensors": len(tensors),
        "resources": len(objects) - len(tensors),
        "tensor_bytes": sum(item.bytes or 0 for item in tensors),
    }
    for name, count in counts.items():
        _compare(fields.faults, "totals_differ", reader.path(name), reader.integer(name), count)
    for name in _WITH_RESOURCES:
        reader.integer(name)
    formats = Counter(item.format.name for item in tensors if item.format is not None)
    layouts = Counter(item.layout.name for item in tensors if item.layout is not None)
    for name, counted in (("formats", formats), ("layouts", layouts)):
        members = reader.object(name)
        if members is not None and members != dict(counted):
            _compare(fields.faults, "totals_differ", reader.path(name), dict(members), dict(counted))


def read_components(
    fields: Fields, expansion: Expansion, objects: Sequence[TargetObject]
) -> Mapping[str, tuple[str, ...]]:
    """The name prefixes of each component; the stated counts are compared."""
    stated = fields.object("components")
    if stated is None:
        return {}
    reader = Fields(fields.faults, stated, fields.path("components"), ("prefixes",), ("counts",))
    members = reader.object("prefixes") or Members()
    listed = Fields(fields.faults, members, reader.path("prefixes"), (), tuple(members))
    prefixes = {name: listed.texts(name) for name in members}
    components = {name: texts for name, texts in prefixes.items() if texts is not None}
    counts = reader.object("counts")
    comparisons = len(objects) * sum(map(len, components.values()))
    if len(components) != len(members) or not expansion.steps(reader.path("prefixes"), comparisons):
        return components
    if counts is None:
        return components
    _check_counts(fields.faults, counts, reader.path("counts"), components, objects)
    return components


def _check_counts(
    faults: Faults,
    counts: Members,
    path: Path,
    components: Mapping[str, Sequence[str]],
    objects: Sequence[TargetObject],
) -> None:
    owners: dict[str, list[TargetObject]] = {name: [] for name in components}
    for item in objects:
        owner = component_of(item.name, components)
        if owner is not None:
            owners[owner].append(item)
    reader = Fields(faults, counts, path, (), tuple(components))
    for name in counts:
        if name not in owners:
            continue
        entry = Fields(faults, counts[name], reader.path(name), ("objects",), ("bytes",))
        number, size = entry.integer("objects"), entry.integer("bytes")
        _compare(faults, "totals_differ", entry.path("objects"), number, len(owners[name]))
        if all(item.kind == "tensor" for item in owners[name]):
            total = sum(item.bytes or 0 for item in owners[name])
            _compare(faults, "totals_differ", entry.path("bytes"), size, total)


def check_hashes(
    fields: Fields, own: Mapping[str, str], templates: Mapping[str, int], bindings: Mapping[str, int]
) -> None:
    """Compare `checks` with `own_hashes` and the counts of `views` and `aliases`, before and after expansion.

    `offsets_sha256` and `directory` depend on the lengths of resources, so they are not judged.
    """
    stated = fields.object("checks")
    if stated is None:
        return
    faults = fields.faults
    optional = (*_CHECKS, "offsets_sha256", "views", "aliases", "directory")
    reader = Fields(faults, stated, fields.path("checks"), (), optional)
    for name in _CHECKS:
        _compare(faults, "checks_differ", reader.path(name), reader.sha256(name), own[name])
    reader.sha256("offsets_sha256")
    reader.object("directory")
    for name, count in bindings.items():
        members = reader.object(name)
        if members is None:
            continue
        hashed = ("sha256",) if name == "views" else ()
        entry = Fields(faults, members, reader.path(name), (), ("templates", "bindings", *hashed))
        for member, found in (("templates", templates[name]), ("bindings", count)):
            _compare(faults, "checks_differ", entry.path(member), entry.integer(member), found)
        if hashed:
            digest = entry.sha256("sha256")
            _compare(faults, "checks_differ", entry.path("sha256"), digest, own["views"])


def _compare(faults: Faults, slug: str, path: Path, stated: object, own: object) -> None:
    """A finding when the document states something else than it expands to; nothing stated is nothing wrong."""
    if stated is None or stated == own:
        return
    shown = strict_json.show(stated)
    faults.add(slug, path, f"the document states {shown}, it expands to {own}.", shown, own)
