"""Magic, lengths and the directory text of an entry file: nothing is believed before it is compared with the file."""

from dataclasses import dataclass

from ninfer_core.containers.directory import Limits
from ninfer_core.containers.members import is_text
from ninfer_core.containers.spelling import MAGIC_STEM, PAGE, PART_MAGIC, REVISIONS, ROOT_MEMBERS, Revision
from ninfer_core.findings import Findings
from ninfer_core.io import ByteSource, read
from ninfer_core.layouts.base import U64_MAX, align_up
from ninfer_core.sources.pointer import pointer_stub
from ninfer_core.strict_json import Json, Malformed, Members, Problem, parse

_HEAD_BYTES = 512  # enough for every magic and for the text of a large-file pointer
_FOREIGN = {
    b"GGUF": "a GGUF file",
    b"PK\x03\x04": "a ZIP archive, such as a PyTorch checkpoint",
    b"\x89HDF": "an HDF5 file",
    b"{": "JSON text, such as a recipe",
}


@dataclass(frozen=True, slots=True)
class Framing:
    """A legal header: the JSON text lies at [header_bytes, header_bytes + json_bytes) of the entry."""

    revision: Revision
    json_bytes: int
    artifact_id: bytes  # empty before revision 3
    payload_offset: int


def read_framing(entry: ByteSource, limits: Limits, findings: Findings) -> Framing | None:
    """The header of an entry file, or None with a finding. Raises: CutShort, CannotRead."""
    head = read(entry, 0, min(entry.size, _HEAD_BYTES))
    revision = _revision(entry, head, findings)
    if revision is None:
        return None
    if entry.size < revision.header_bytes:
        _too_short(entry, revision.header_bytes, findings)
        return None
    json_bytes = int.from_bytes(head[8:16], "little")
    json_end = revision.header_bytes + json_bytes
    where = {"member": "json_bytes", "offset": 8, "file": entry.name}
    if json_bytes == 0:
        findings.add(
            "structure.json_length_zero",
            "json_bytes is 0",
            where=where,
            expected="a positive length",
            found=0,
        )
        return None
    if align_up(json_end, PAGE) > U64_MAX:
        message = f"json_bytes is {json_bytes}: header, JSON and alignment exceed 2^64-1"
        findings.add(
            "structure.json_range_overflow",
            message,
            where=where,
            expected=f"at most {entry.size - revision.header_bytes}",
            found=json_bytes,
        )
        return None
    if json_end > entry.size:
        message = f"json_bytes is {json_bytes:,}, but only {entry.size - revision.header_bytes:,} bytes follow the header"
        findings.add(
            "structure.json_range_past_end",
            message,
            where=where,
            expected=f"at most {entry.size - revision.header_bytes}",
            found=json_bytes,
        )
        return None
    if json_bytes > limits.directory_bytes:
        message = f"the directory has {json_bytes:,} bytes, the limit is {limits.directory_bytes:,}"
        findings.add(
            "structure.directory_too_large",
            message,
            where=where,
            expected=f"at most {limits.directory_bytes}",
            found=json_bytes,
        )
        return None
    payload_offset = align_up(json_end, PAGE)
    if payload_offset > entry.size:
        message = f"the payload begins at {payload_offset:,}, the file ends at {entry.size:,}"
        findings.add(
            "structure.payload_start_past_end",
            message,
            where={"offset": payload_offset, "file": entry.name},
            expected=f"at least {payload_offset} bytes",
            found=f"{entry.size} bytes",
        )
    return Framing(revision, json_bytes, head[16 : revision.header_bytes], payload_offset)


def _revision(entry: ByteSource, head: bytes, findings: Findings) -> Revision | None:
    stub = pointer_stub(head)
    where = {"offset": 0, "file": entry.name}
    if stub is not None:
        findings.add(
            "structure.pointer_stub",
            "this is the pointer text of a large file that was not fetched",
            where={**where, "sha256": stub.sha256, "bytes": stub.bytes},
            expected="the file itself",
            found=f"pointer text naming {stub.bytes} bytes, sha256 {stub.sha256}",
        )
    elif len(head) < 8:
        _too_short(entry, 8, findings)
    elif head[:8] == PART_MAGIC:
        findings.add(
            "structure.part_not_entry",
            "this is a continuation part; open the entry file",
            where=where,
            expected="an entry file",
            found=head[:8].hex(" "),
        )
    elif not head.startswith(MAGIC_STEM):
        foreign = next(
            (what for magic, what in _FOREIGN.items() if head.startswith(magic)), "no known kind of file"
        )
        findings.add(
            "structure.unrecognised",
            f"the file does not begin with the magic of a .ninfer file; it looks like {foreign}",
            where=where,
            expected=MAGIC_STEM.hex(" "),
            found=head[:8].hex(" "),
        )
    elif head[7] not in REVISIONS:
        supported = sorted(REVISIONS)
        findings.add(
            "structure.revision_unsupported",
            f"framing revision {head[7]} is not one this reader knows",
            where={**where, "revision": head[7], "supported": supported},
            expected=" or ".join(map(str, supported)),
            found=head[7],
        )
    else:
        return REVISIONS[head[7]]
    return None


def _too_short(entry: ByteSource, header: int, findings: Findings) -> None:
    findings.add(
        "structure.file_too_short",
        f"the file has {entry.size} bytes, its header alone takes {header}",
        where={"file": entry.name},
        expected=f"at least {header} bytes",
        found=f"{entry.size} bytes",
    )


def read_root(entry: ByteSource, framing: Framing, limits: Limits, findings: Findings) -> Members | None:
    """The directory's root object with every JSON problem reported, or None. Raises: CutShort, CannotRead."""
    text = read(entry, framing.revision.header_bytes, framing.json_bytes)
    try:
        root, problems = parse(text, limits.depth)
    except Malformed as error:
        other = _revision_of_directory(entry, framing, limits)
        if other is not None:
            _contradicted(entry, framing.revision, other, findings)
            return None
        root, problems = None, (error.problem,)
    for problem in problems:
        ordinal = _ordinal(problem)
        label = None if ordinal is None else entry_label(root["objects"][ordinal], ordinal, framing.revision)
        report_problem(problem, label, findings, {"file": entry.name}, ordinal)
    if problems and root is None:
        return None
    if not isinstance(root, Members):
        findings.add(
            "structure.member_type",
            "the directory is not one JSON object",
            where={"member": "", "path": ""},
            expected="object",
            found=type(root).__name__,
        )
        return None
    return root


def _revision_of_directory(entry: ByteSource, framing: Framing, limits: Limits) -> Revision | None:
    """The revision whose header length leads to a directory with exactly its members, where that of the magic leads to none.

    Revisions 1 and 2 have headers of one length, so between those two the members of the root speak for themselves.
    """
    for other in REVISIONS.values():
        if other.header_bytes == framing.revision.header_bytes:
            continue
        if other.header_bytes + framing.json_bytes > entry.size:
            continue
        try:
            root, _ = parse(read(entry, other.header_bytes, framing.json_bytes), limits.depth)
        except Malformed:
            continue
        required, optional = ROOT_MEMBERS[other.number]
        if isinstance(root, Members) and set(required) <= root.keys() <= {*required, *optional}:
            return other
    return None


def _contradicted(entry: ByteSource, stated: Revision, found: Revision, findings: Findings) -> None:
    findings.add(
        "structure.revision_contradicted",
        f"the magic says framing revision {stated.number}, the directory is one of revision {found.number}",
        where={"offset": 7, "file": entry.name, "revision": stated.number, "directory": found.number},
        expected=f"a directory at byte {stated.header_bytes}",
        found=f"a directory at byte {found.header_bytes}",
    )


def report_problem(
    problem: Problem,
    label: str | None,
    findings: Findings,
    where: dict[str, object],
    ordinal: int | None = None,
) -> None:
    """A problem of `strict_json` as a finding of the same slug."""
    path = "".join(
        f"[{step}]" if isinstance(step, int) else f".{step[:100]}" for step in problem.path
    ).lstrip(".")
    place = {**where, "path": path.encode("ascii", "backslashreplace").decode()}
    member = problem.path[-1] if problem.path else None
    if problem.kind == "json_member_duplicate":
        place["member"] = str(member)
    message = f"{problem.found} at {place['path']}" if path else problem.found
    findings.add(
        f"structure.{problem.kind}",
        message,
        object=label,
        where=place,
        expected="strict JSON",
        found=problem.found,
        ordinal=ordinal,
    )


def _ordinal(problem: Problem) -> int | None:
    """The object that a problem lies in."""
    path = problem.path
    return path[1] if len(path) >= 2 and path[0] == "objects" and isinstance(path[1], int) else None


def entry_label(entry: Json, ordinal: int, revision: Revision) -> str:
    """The name of an object's entry, or `objects[i]` when the entry gives no name to trust."""
    name = entry.get(revision.key) if isinstance(entry, Members) else None
    if isinstance(name, str) and name and revision.key not in entry.duplicates and is_text(name):
        return name
    return f"objects[{ordinal}]"
