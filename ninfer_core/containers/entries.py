"""The objects of a directory: members, registry names, sizes, then their places in the payload."""

from bisect import bisect_left
from dataclasses import replace

from ninfer_core.containers.directory import ArtifactObject, BrokenObject, ResourceObject, TensorObject
from ninfer_core.containers.framing import entry_label
from ninfer_core.containers.members import Record, require_record
from ninfer_core.containers.spelling import REVISIONS, Revision
from ninfer_core.errors import IllegalPair, IllegalShape, SizeOverflow
from ninfer_core.findings import Findings
from ninfer_core.formats import NumericFormat
from ninfer_core.layouts import LAYOUTS, RESOURCE_ENCODING
from ninfer_core.layouts.base import MAX_RANK, TENSOR_ALIGNMENT, U64_MAX, Layout, Shape
from ninfer_core.rejected_names import why_not
from ninfer_core.retired import retirement
from ninfer_core.strict_json import Json, show

_TENSOR = ("kind", "shape", "format", "layout", "offset", "bytes")
_NAMED = 16  # names listed where many objects share a fault
_RESOURCE = ("kind", "encoding", "offset", "bytes")


def read_entries(entries: list[Json], revision: Revision, findings: Findings) -> list[ArtifactObject]:
    """Every entry in order; one with an error becomes a `BrokenObject`. Places are checked by `place`."""
    objects: list[ArtifactObject] = []
    positions: dict[str, int] = {}
    for ordinal, entry in enumerate(entries):
        label = entry_label(entry, ordinal, revision)
        record = require_record(entry, label, f"objects[{ordinal}]", findings, ordinal)
        if record is None:
            objects.append(BrokenObject(ordinal, None, None, None, None, None, None, None))
            continue
        item = _entry(record, ordinal, revision, findings)
        name = item.name
        if name is not None and positions.setdefault(name, ordinal) != ordinal:
            findings.add(
                "structure.object_name_duplicate",
                f"{show(name)} names objects {positions[name]} and {ordinal}",
                object=name,
                ordinal=ordinal,
                where={"positions": [positions[name], ordinal]},
                expected="one object of this name",
                found="two",
            )
            item = broken(item)
        objects.append(item)
    return objects


def broken(item: ArtifactObject) -> BrokenObject:
    """The same entry as one that may not be read."""
    match item:
        case TensorObject():
            return BrokenObject(
                item.ordinal,
                item.name,
                "tensor",
                item.shape,
                item.format.name,
                item.layout.name,
                item.offset,
                item.bytes,
            )
        case ResourceObject():
            return BrokenObject(
                item.ordinal, item.name, "resource", None, None, None, item.offset, item.bytes
            )
        case BrokenObject():
            return item


def _entry(record: Record, ordinal: int, revision: Revision, findings: Findings) -> ArtifactObject:
    kind = record.members.get("kind")
    name = record.text(revision.key, nul=revision.number < 3)  # only revision 3 forbids U+0000
    if kind == "resource":
        closed = record.closed((revision.key, *_RESOURCE))
        return _resource(record, ordinal, name, closed, revision, findings)
    closed = record.closed((revision.key, *_TENSOR))
    if kind != "tensor" and record.text("kind") is not None:
        record.value_error("kind", '"tensor" or "resource"')
    return _tensor(record, ordinal, name, closed and kind == "tensor", revision, findings)


def _resource(
    record: Record, ordinal: int, name: str | None, closed: bool, revision: Revision, findings: Findings
) -> ArtifactObject:
    encoding = record.text("encoding")
    offset, size = record.integer("offset", 0), record.integer("bytes", 1)
    if encoding is not None and encoding != revision.encoding:
        findings.add(
            "structure.encoding_unregistered",
            f"encoding {show(encoding)} is not registered in revision {revision.number}",
            object=record.label,
            ordinal=record.ordinal,
            expected=revision.encoding,
            found=show(encoding),
        )
        encoding = None
    if not (closed and record.sound) or name is None or encoding is None or offset is None or size is None:
        return BrokenObject(ordinal, name, "resource", None, None, None, offset, size)
    return ResourceObject(ordinal, name, RESOURCE_ENCODING, offset, size)


def _tensor(
    record: Record, ordinal: int, name: str | None, closed: bool, revision: Revision, findings: Findings
) -> ArtifactObject:
    shape = _shape(record)
    offset, size = record.integer("offset", 0), record.integer("bytes", 1)
    fmt = _format(record, revision, findings)
    layout = _layout(record, revision, findings)
    kind = "tensor" if record.members.get("kind") == "tensor" else None
    format_name = fmt.name if fmt is not None else None
    layout_name = layout.name if layout is not None else None
    remains = BrokenObject(ordinal, name, kind, shape, format_name, layout_name, offset, size)
    if fmt is None or layout is None or shape is None:
        return remains
    needed = _needed(record, fmt, layout, shape, findings)
    if needed is None or size is None:
        return remains
    if size != needed:
        message = f"{fmt.name} {list(shape)} in {layout.name} takes {needed:,} bytes, the entry says {size:,}"
        findings.add(
            "structure.object_size_mismatch",
            message,
            object=record.label,
            ordinal=record.ordinal,
            where={"member": "bytes", "path": record.path},
            expected=needed,
            found=size,
        )
        return remains
    if name is None or offset is None or not closed or not record.sound:
        return remains
    return TensorObject(ordinal, name, shape, fmt, layout, offset, size)


def _needed(
    record: Record, fmt: NumericFormat, layout: Layout, shape: Shape, findings: Findings
) -> int | None:
    try:
        return layout.encoded_size(fmt, shape)
    except IllegalPair as error:
        pairs = " or ".join(entry.name for entry in layout.formats)
        findings.add(
            "structure.format_layout_pair",
            str(error),
            object=record.label,
            ordinal=record.ordinal,
            expected=f"{layout.name} with {pairs}",
            found=fmt.name,
        )
    except IllegalShape as error:
        findings.add(
            "structure.layout_shape",
            f"{layout.name}: {error}",
            object=record.label,
            ordinal=record.ordinal,
            where={"rule": error.rule},
            expected=error.rule,
            found=show(list(shape)),
        )
    except SizeOverflow as error:
        findings.add(
            "structure.member_value",
            str(error),
            object=record.label,
            ordinal=record.ordinal,
            where={"member": "shape", "path": record.path},
            expected="a size below 2^64",
            found=show(list(shape)),
        )
    return None


def _shape(record: Record) -> Shape | None:
    dimensions = record.array("shape")
    if dimensions is None:
        return None
    if len(dimensions) > MAX_RANK:
        record.value_error("shape", f"an array of rank 0 to {MAX_RANK}")
        return None
    if not all(type(size) is int and 0 < size <= U64_MAX for size in dimensions):
        record.value_error("shape", "an array of positive integers below 2^64")
        return None
    return tuple(dimensions)


def _format(record: Record, revision: Revision, findings: Findings) -> NumericFormat | None:
    name = record.members.get("format")
    if not isinstance(name, str):
        record.text("format")
        return None
    if name in revision.formats:
        return revision.formats[name]
    others = [str(other.number) for other in REVISIONS.values() if name in other.formats]
    reason = f"that is how revision {' and '.join(others)} spells it" if others else why_not(name)
    message = f"{show(name)} is not a registered format of revision {revision.number}" + (
        f": {reason}" if reason else ""
    )
    findings.add(
        "structure.format_unregistered",
        message,
        object=record.label,
        ordinal=record.ordinal,
        where={"format": show(name)[1:-1]},
        expected=", ".join(revision.formats),
        found=show(name),
    )
    return None


def _layout(record: Record, revision: Revision, findings: Findings) -> Layout | None:
    name = record.members.get("layout")
    if not isinstance(name, str):
        record.text("layout")
        return None
    if name in revision.layouts:
        return revision.layouts[name]
    former = retirement(LAYOUTS.what, name)
    findings.add(
        "structure.layout_unregistered",
        f"{show(name)} is not a registered layout of revision {revision.number}"
        + (f": {former}" if former else ""),
        object=record.label,
        ordinal=record.ordinal,
        where={"layout": show(name)[1:-1]},
        expected=", ".join(revision.layouts),
        found=show(name),
    )
    return None


def place(objects: list[ArtifactObject], payload_bytes: int, findings: Findings) -> list[ArtifactObject]:
    """Order, overlap, alignment and bounds of every object whose place is known; who may not be read becomes broken."""
    bounded = {item.ordinal: _bounds(item, payload_bytes, findings) for item in objects}
    overlaps = _overlaps([item for item in objects if bounded[item.ordinal]])
    cursor = 0
    result: list[ArtifactObject] = []
    for item in objects:
        if item.offset is None or item.bytes is None:
            result.append(item)
            continue
        if isinstance(item, TensorObject) and item.offset % TENSOR_ALIGNMENT:
            findings.add(
                "structure.object_misaligned",
                f"offset {item.offset} is no multiple of {TENSOR_ALIGNMENT}",
                object=_label(item),
                ordinal=item.ordinal,
                where={"alignment": TENSOR_ALIGNMENT},
                expected=f"a multiple of {TENSOR_ALIGNMENT}",
                found=item.offset,
            )
        other = overlaps.get(item.ordinal)
        if item.offset < cursor:
            _out_of_place(item, item.offset, None if other is None else objects[other], cursor, findings)
        cursor = max(cursor, min(item.offset + item.bytes, payload_bytes))
        result.append(item if bounded[item.ordinal] and other is None else broken(item))
    return result


def _overlaps(objects: list[ArtifactObject]) -> dict[int, int]:
    """Ordinals of objects that share bytes with one listed ahead of them, and that one: one sweep by offset."""
    found: dict[int, int] = {}
    owner: tuple[int, int] | None = None  # end and ordinal of the object that holds the bytes swept so far
    ranges = ((item.offset or 0, item.ordinal, (item.offset or 0) + (item.bytes or 0)) for item in objects)
    for begin, ordinal, end in sorted(ranges):
        if owner is None or begin >= owner[0]:
            owner = (end, ordinal)
        elif ordinal > owner[1]:
            found[ordinal] = owner[1]
        else:
            found[owner[1]] = ordinal
            owner = (end, ordinal)
    return found


def _label(item: ArtifactObject) -> str:
    return item.name if item.name is not None else f"objects[{item.ordinal}]"


def _bounds(item: ArtifactObject, payload_bytes: int, findings: Findings) -> bool:
    if item.offset is None or item.bytes is None:
        return False
    label = _label(item)
    end = item.offset + item.bytes
    if end > U64_MAX:
        findings.add(
            "structure.object_range_overflow",
            f"offset {item.offset} + {item.bytes} bytes exceeds 2^64-1",
            object=label,
            ordinal=item.ordinal,
            expected=f"an end of at most {payload_bytes}",
            found=end,
        )
        return False
    if end > payload_bytes:
        missing = end - payload_bytes
        message = f"{min(missing, item.bytes):,} of {item.bytes:,} bytes are missing: the object ends at {end:,}, the payload at {payload_bytes:,}"
        findings.add(
            "structure.object_past_end",
            message,
            object=label,
            ordinal=item.ordinal,
            where={"offset": item.offset, "missing_bytes": min(missing, item.bytes)},
            expected=f"an end of at most {payload_bytes}",
            found=end,
        )
        return False
    return True


def _out_of_place(
    item: ArtifactObject, begin: int, other: ArtifactObject | None, cursor: int, findings: Findings
) -> None:
    where: dict[str, object] = {"offset": begin, "cursor": cursor}
    if other is None or other.offset is None or other.bytes is None:
        findings.add(
            "structure.object_order",
            f"begins at {begin:,}, before the end of an object listed ahead of it at {cursor:,}",
            object=_label(item),
            ordinal=item.ordinal,
            where=where,
            expected=f"an offset of at least {cursor}",
            found=begin,
        )
        return
    end = other.offset + other.bytes
    shared = min(begin + (item.bytes or 0), end) - max(begin, other.offset)
    findings.add(
        "structure.object_overlap",
        f"begins at {begin:,} and shares {shared:,} bytes with {show(_label(other))}, which ends at {end:,}",
        object=_label(item),
        ordinal=item.ordinal,
        where={**where, "overlaps": _label(other)},
        expected=f"an offset of at least {cursor}",
        found=begin,
    )


def drop_unreadable(
    objects: list[ArtifactObject], ranges: list[tuple[int, int]], findings: Findings
) -> list[ArtifactObject]:
    """Objects that touch a range of the logical payload whose file is missing or foreign become broken."""
    if not ranges:
        return objects

    starts = [start for start, _ in ranges]  # in order, never meeting: they are parts of one payload

    def touches(item: ArtifactObject) -> bool:
        if item.offset is None or item.bytes is None:
            return False
        last = bisect_left(starts, item.offset + item.bytes) - 1
        return last >= 0 and ranges[last][1] > item.offset

    lost = [item for item in objects if not isinstance(item, BrokenObject) and touches(item)]
    if lost:
        names = [item.name for item in lost[:_NAMED]]
        more = f" and {len(lost) - _NAMED:,} more" if len(lost) > _NAMED else ""
        findings.add(
            "structure.objects_unreadable",
            f"{len(lost):,} objects lie in files that are not there: {', '.join(map(show, names))}{more}",
            where={"objects": names},
            expected="every byte of every object",
            found=f"{len(lost)} objects without all their bytes",
            count=len(lost),
        )
    gone = {item.ordinal for item in lost}
    return [replace(broken(item), lost=True) if item.ordinal in gone else item for item in objects]
