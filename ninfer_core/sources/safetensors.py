"""One safetensors file: eight bytes of header length, a JSON header, the data that its ranges tile.

Every number of the header is compared with the file before it is used. What the public reader refuses is refused
here, and also what it lets pass: names given twice at any depth, and members that the format does not have.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from ninfer_core import strict_json
from ninfer_core.errors import CutShort
from ninfer_core.file_findings import report_cut_short
from ninfer_core.findings import Findings
from ninfer_core.io import ByteSource, read
from ninfer_core.layouts.base import Shape
from ninfer_core.sources.entries import Entry, EntryReader
from ninfer_core.sources.json_text import add_pointer, parse_object
from ninfer_core.sources.pointer import HEAD_BYTES
from ninfer_core.strict_json import Json, Members

LENGTH_BYTES: Final = 8
METADATA: Final = "__metadata__"

_NEGATIVE_ZERO = re.compile(rb'"(?:[^"\\]|\\.)*+"?|-0(?![.eE0-9])')
_PATHLIKE = re.compile(r"^$|^/|^[A-Za-z]:|[\\\x00-\x1f]|(^|/)\.\.?(/|$)")


@dataclass(frozen=True, slots=True)
class HeaderLimits:
    """How long a header may be, and how deep its JSON; the length limit is that of the public reader."""

    header_bytes: int = 100_000_000
    depth: int = 16


@dataclass(frozen=True, slots=True)
class SourceTensor:
    """A tensor of a checkpoint: `bytes` stored little-endian at `offset` from the start of `file`, in C order."""

    name: str
    dtype: str
    shape: Shape
    offset: int
    bytes: int
    file: str


@dataclass(frozen=True, slots=True)
class Header:
    """A header in which everything fits; `data_offset` counts from the start of the file."""

    file: str
    data_offset: int
    tensors: Mapping[str, SourceTensor]
    metadata: Mapping[str, str]


def read_header(source: ByteSource, findings: Findings, limits: HeaderLimits | None = None) -> Header | None:
    """The header of a safetensors file, or None after at least one error finding. Raises: CannotRead."""
    limits = limits if limits is not None else HeaderLimits()
    found = Findings()
    try:
        header = _read(source, found, limits)
    except CutShort as cut:
        report_cut_short(cut, found)
        header = None
    findings.extend(found)
    return None if found.errors else header


def _read(source: ByteSource, findings: Findings, limits: HeaderLimits) -> Header | None:
    file = source.name
    head = read(source, 0, min(source.size, HEAD_BYTES))
    if add_pointer(findings, file, head):
        return None
    if source.size < LENGTH_BYTES:
        findings.add(
            "structure.file_too_short",
            f"{file} ends inside the header length.",
            where={"file": file, "offset": 0},
            expected=f"at least {LENGTH_BYTES} bytes",
            found=f"{source.size} bytes",
        )
        return None
    length = int.from_bytes(head[:LENGTH_BYTES], "little")
    if not _length_fits(source, length, findings, limits):
        return None
    text = read(source, LENGTH_BYTES, length)
    if text[:1] != b"{":
        findings.add(
            "structure.header_start",
            f"{file}: the header does not begin with an opening brace.",
            where={"file": file, "offset": LENGTH_BYTES},
            expected="{",
            found=ascii(text[:1])[1:],
        )
        return None
    members = parse_object(text, limits.depth, file, findings, "tensor")
    if members is None:
        return None
    _refuse_negative_zero(text, file, findings)
    metadata = _metadata(members.pop(METADATA, Members()), file, findings)
    data_offset = LENGTH_BYTES + length
    entries = EntryReader(file, source.size - data_offset, findings).read(members)
    _note_paths(entries, file, findings)
    tensors = {
        entry.name: SourceTensor(
            entry.name,
            entry.dtype.name,
            entry.shape,
            data_offset + entry.begin,
            entry.end - entry.begin,
            file,
        )
        for entry in entries
    }
    return Header(file, data_offset, MappingProxyType(tensors), MappingProxyType(metadata))


def _length_fits(source: ByteSource, length: int, findings: Findings, limits: HeaderLimits) -> bool:
    available = source.size - LENGTH_BYTES
    where = {"file": source.name, "field": "header_length", "found": length, "offset": 0}
    if length > available:
        findings.add(
            "structure.header_past_end",
            f"{source.name}: the header should have {length:,} bytes, but only {available:,} follow its length.",
            where={**where, "available": available},
            expected=f"at most {available:,}",
            found=f"{length:,}",
        )
    elif length > limits.header_bytes:
        findings.add(
            "structure.header_too_large",
            f"{source.name}: a header of {length:,} bytes is above the limit.",
            where={**where, "limit": limits.header_bytes},
            expected=f"at most {limits.header_bytes:,}",
            found=f"{length:,}",
        )
    else:
        return True
    return False


def _refuse_negative_zero(text: bytes, file: str, findings: Findings) -> None:
    # The JSON parser reads -0 as the integer 0; a reader of unsigned numbers refuses it.
    if b"-0" not in text:
        return
    for token in _NEGATIVE_ZERO.finditer(text):
        if token[0] == b"-0":
            findings.add(
                "structure.header_number",
                f"{file}: the header spells an integer as -0.",
                where={"file": file, "offset": LENGTH_BYTES + token.start()},
                expected="an unsigned integer",
                found="-0",
            )


def _metadata(value: Json, file: str, findings: Findings) -> dict[str, str]:
    metadata: dict[str, str] = {}
    if not isinstance(value, Members):
        findings.add(
            "structure.header_metadata",
            f"{file}: {METADATA} is not an object.",
            where={"file": file},
            expected="an object of strings",
            found=strict_json.type_name(value),
        )
        return metadata
    for name, member in value.items():
        if isinstance(member, str):
            metadata[name] = member
        else:
            findings.add(
                "structure.header_metadata",
                f"{file}: member {strict_json.show(name)} of {METADATA} is not a string.",
                where={"file": file, "member": name},
                expected="a string",
                found=strict_json.show(member),
            )
    return metadata


def _note_paths(entries: tuple[Entry, ...], file: str, findings: Findings) -> None:
    names = [entry.name for entry in entries if _PATHLIKE.search(entry.name)]
    if names:
        findings.add(
            "structure.tensor_name_pathlike",
            f"{file}: {len(names)} of its tensor names could not be plain file names, such as "
            f"{strict_json.show(names[0])}.",
            where={"file": file, "tensors": names},
            found=strict_json.show(names[0]),
            count=len(names),
        )
