"""The reader of `.ninfer` artifacts, revisions 1, 2 and 3, split or whole: bytes in, frozen directory and findings out.

Order: header, directory text, root, parts, objects, places, references. Each stage collects every finding it can;
a later stage runs on whatever the earlier ones could make sense of.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from ninfer_core.containers.directory import Artifact, Limits, PayloadFile
from ninfer_core.containers.entries import drop_unreadable, place, read_entries
from ninfer_core.containers.framing import Framing, read_framing, read_root
from ninfer_core.containers.members import Record, is_text, require_record
from ninfer_core.containers.sections import read_sections
from ninfer_core.containers.spelling import (
    PART_HEADER_BYTES,
    PART_MAGIC,
    PART_PAYLOAD_OFFSET,
    ROOT_MEMBERS,
)
from ninfer_core.errors import CannotRead, CutShort, LeadsOutside
from ninfer_core.file_findings import report_cut_short
from ninfer_core.findings import Findings
from ninfer_core.io import ByteSource, FileSet, Joined, is_plain_name, read
from ninfer_core.layouts.base import U64_MAX
from ninfer_core.strict_json import show

_DEFAULT_LIMITS = Limits()


def read_artifact(
    files: FileSet, entry: str, findings: Findings, limits: Limits = _DEFAULT_LIMITS
) -> Artifact | None:
    """The artifact whose entry file is `entry`; None when there is no directory to speak of.

    Every fault is a finding of check `structure`. Raises: CannotRead when the entry itself cannot be opened.
    """
    source = files.open(entry)
    try:
        framing = read_framing(source, limits, findings)
        members = read_root(source, framing, limits, findings) if framing is not None else None
    except CutShort as error:
        report_cut_short(error, findings)
        return None
    if framing is None or members is None:
        return None
    root = Record(members, None, "", findings)
    identity = _identity(root, framing, findings)
    payload = _payload(files, entry, root, framing, findings)
    entries = root.array("objects", nonempty=True) or []
    listed = bool(entries) and len(entries) <= limits.objects
    if len(entries) > limits.objects:
        message = f"the directory holds {len(entries):,} objects, the limit is {limits.objects:,}"
        findings.add(
            "structure.objects_too_many", message, expected=f"at most {limits.objects}", found=len(entries)
        )
        entries = []
    objects = place(read_entries(entries, framing.revision, findings), payload.joined.size, findings)
    objects = drop_unreadable(objects, payload.missing, findings)
    sections = read_sections(root, objects, findings) if framing.revision.number == 3 else {}
    return Artifact(
        framing.revision.number,
        *identity,
        tuple(objects),
        listed,
        payload.sources,
        payload.whole,
        tuple(payload.files),
        payload.joined,
        framing.payload_offset,
        sections,
    )


def _identity(
    root: Record, framing: Framing, findings: Findings
) -> tuple[str | None, str | None, str | None]:
    root.closed(*ROOT_MEMBERS[framing.revision.number])
    match framing.revision.number:
        case 1:
            return root.text("model_id", nul=True), None, None
        case 2:
            identity = root.record("identity")
            if identity is None:
                return None, None, None
            identity.closed(("model_id", "weights_id"))
            return identity.text("model_id", nul=True), identity.text("weights_id", nul=True), None
    metadata = root.members.get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else None
    return None, None, name if isinstance(name, str) and name and is_text(name) else None


@dataclass(frozen=True, slots=True)
class _Payload:
    files: list[PayloadFile]
    joined: Joined
    missing: list[tuple[int, int]]  # ranges of the logical payload that are not there or not to be trusted
    sources: tuple[ByteSource, ...]
    whole: bool


class _Absent:
    """A part that is not there: it has a size, and reading it fails."""

    def __init__(self, name: str, size: int) -> None:
        self.name = name
        self.size = size

    def read_into(self, buffer: bytearray | memoryview, offset: int) -> None:
        raise CannotRead(f"part {self.name} is missing")

    def changed(self) -> None:
        return None


def _payload(files: FileSet, entry: str, root: Record, framing: Framing, findings: Findings) -> _Payload:
    source = files.open(entry)
    start = framing.payload_offset
    if framing.revision.number < 3:
        size = max(0, source.size - start)
        whole = PayloadFile(source, framing.revision.header_bytes + framing.json_bytes, start, size)
        return _Payload([whole], Joined(entry, [(source, start, size)]), [], (source,), True)
    header = framing.revision.header_bytes + framing.json_bytes
    found: list[PayloadFile] = []
    missing: list[tuple[int, int]] = []
    sources: list[ByteSource] = [source]
    known = True
    total = 0
    used = {entry}
    for index, value in enumerate(root.array("files", nonempty=True) or ()):
        record = require_record(value, None, f"files[{index}]", findings)
        length = None
        if record is not None:
            record.closed(("path", "payload_bytes"))
            length = record.integer("payload_bytes", 1)
        if record is None or length is None:
            known = False  # where the payload of every later file begins is not known either
            break
        if total + length > U64_MAX:
            findings.add(
                "structure.payload_overflow",
                f"the payloads of files 0 to {index} exceed 2^64-1 bytes",
                where={"index": index},
                expected="at most 2^64-1",
                found=total + length,
            )
            known = False
            break
        if index == 0:
            part = _entry_part(record, framing, length, source, findings)
        else:
            part = _part(files, record, index, framing, length, used, findings)
            known &= part is not None
            if part is not None:
                sources.append(part.source)
        if part is None:
            part = PayloadFile(_Absent(str(record.members.get("path")), length), 0, 0, length)
            missing.append((total, total + length))
        found.append(part)
        total += length
    if not found:
        found.append(PayloadFile(source, header, start, 0))
    joined = Joined(entry, [(part.source, part.payload_offset, part.payload_bytes) for part in found])
    return _Payload(found, joined, missing, tuple(sources), known)


def _entry_part(
    record: Record,
    framing: Framing,
    size: int,
    source: ByteSource,
    findings: Findings,
) -> PayloadFile | None:
    if record.members.get("path", False) is not None:
        record.value_error("path", "null for the entry file")
    expected = framing.payload_offset + size
    if source.size != expected:
        message = f"the entry file has {source.size:,} bytes, its record says {expected:,}"
        findings.add(
            "structure.entry_size_mismatch",
            message,
            where={"file": source.name},
            expected=expected,
            found=source.size,
        )
        if source.size < expected:
            return None
    return PayloadFile(
        source, framing.revision.header_bytes + framing.json_bytes, framing.payload_offset, size
    )


def _part(
    files: FileSet,
    record: Record,
    index: int,
    framing: Framing,
    size: int,
    used: set[str],
    findings: Findings,
) -> PayloadFile | None:
    path = record.text("path") if isinstance(record.members.get("path"), str) else None
    where = {"index": index, "path": show(record.members.get("path"))}
    if path is None or not is_plain_name(path) or path in used:
        what = "names a file twice" if path in used else "is no plain file name"
        message = f"files[{index}].path {where['path']} {what}"
        findings.add(
            "structure.part_path_unsafe",
            message,
            where=where,
            expected="a plain, unused sibling name",
            found=where["path"],
        )
        return None
    used.add(path)
    where = {"index": index, "file": path}
    if path not in files:
        findings.add(
            "structure.part_missing",
            f"part {index}, {show(path)}, is not in the folder",
            where=where,
            expected=path,
            found="no such file",
        )
        return None
    try:
        source = files.open(path)
        head = read(source, 0, min(source.size, PART_HEADER_BYTES))
    except CutShort as error:
        report_cut_short(error, findings)
        return None
    except LeadsOutside as error:
        # Said without a look at what the link leads to.
        findings.add(
            "structure.part_path_unsafe",
            str(error),
            where=where,
            expected="a file of the folder",
            found="a link",
        )
        return None
    faults = list(_header_faults(head, source.size, path, index, size, framing.artifact_id))
    for slug, message, expected, found in faults:
        findings.add(f"structure.{slug}", message, where=where, expected=expected, found=found)
    # Judged by what was found here, not by what the list of findings still takes.
    return None if faults else PayloadFile(source, PART_HEADER_BYTES, PART_PAYLOAD_OFFSET, size)


def _header_faults(
    head: bytes, file_bytes: int, path: str, index: int, size: int, artifact_id: bytes
) -> Iterator[tuple[str, str, object, object]]:
    """Slug, message, expected and found of everything that is wrong with the header or the length of a part."""
    name, whole = show(path), PART_PAYLOAD_OFFSET + size
    if head[:8] != PART_MAGIC:
        message = f"{name} does not begin with the magic of a part"
        yield "part_magic", message, PART_MAGIC.hex(" "), head[:8].hex(" ")
        return
    if len(head) < PART_HEADER_BYTES:
        yield "part_size_mismatch", f"{name} ends inside its header", whole, file_bytes
        return
    stated = int.from_bytes(head[8:16], "little")
    if stated != index:
        yield "part_index", f"{name} says it is part {stated}, not {index}", index, stated
    if head[16:] != artifact_id:
        yield "part_artifact_id", f"{name} belongs to another artifact", artifact_id.hex(), head[16:].hex()
    if file_bytes != whole:
        message = f"{name} has {file_bytes:,} bytes, its record says {whole:,}"
        yield "part_size_mismatch", message, whole, file_bytes
