"""A set of safetensors shards and its index, checked against each other in both directions.

Shard names come out of the index: each is judged on its text, then looked up among the files of the folder.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from ninfer_core import strict_json
from ninfer_core.errors import LeadsOutside
from ninfer_core.findings import Findings
from ninfer_core.io import ByteSource, FileSet, is_plain_name
from ninfer_core.sources.json_text import JsonLimits, printable, read_object
from ninfer_core.sources.safetensors import Header, HeaderLimits, read_header
from ninfer_core.strict_json import Json, Members

_MEMBERS: Final = ("metadata", "weight_map")
_EXTENSION: Final = ".safetensors"


@dataclass(frozen=True, slots=True)
class Index:
    """An index that agrees with its shards: every file that was read, and the headers of the shards."""

    sources: Mapping[str, ByteSource]
    headers: Mapping[str, Header]


def read_index(
    files: FileSet, name: str, findings: Findings, limits: HeaderLimits | None = None
) -> Index | None:
    """The index `name`, one of `files`, and its shards; None after an error finding. Raises: CannotRead."""
    limits = limits if limits is not None else HeaderLimits()
    found = Findings()
    source = files.open(name)
    index: Index | None = None
    root = read_object(source, JsonLimits(limits.header_bytes, limits.depth), found)
    if root is not None:
        index = _read(files, source, root, found, limits)
    findings.extend(found)
    return None if found.errors else index


def _read(
    files: FileSet, source: ByteSource, root: Members, findings: Findings, limits: HeaderLimits
) -> Index | None:
    file = source.name
    for member in root:
        if member not in _MEMBERS:
            findings.add(
                "structure.index_member_unexpected",
                f"{file}: the member {strict_json.show(member)} was not looked at.",
                where={"file": file, "member": member},
                expected=", ".join(_MEMBERS),
                found=strict_json.show(member),
            )
    places = _weight_map(file, root.get("weight_map"), findings)
    shards: dict[str, list[str]] = {}
    for tensor, shard in places.items():
        shards.setdefault(shard, []).append(tensor)
    sources: dict[str, ByteSource] = {file: source}
    headers: dict[str, Header] = {}
    unread = set()
    for shard, tensors in shards.items():
        if shard not in files:
            _add_missing(findings, file, shard, tensors)
            unread.add(shard)
            continue
        try:
            sources[shard] = files.open(shard)
        except LeadsOutside as error:
            findings.add(
                "structure.index_file_name",
                str(error),
                where={"file": file, "shard": shard},
                expected="a file of the folder",
                found="a link",
            )
            unread.add(shard)
            continue
        header = read_header(sources[shard], findings, limits)
        if header is None:
            unread.add(shard)
        else:
            headers[shard] = header
    _compare(file, places, headers, unread, findings)
    _note_strangers(files, file, shards, findings)
    if not unread:
        _compare_total(file, root.get("metadata", Members()), headers, findings)
    return Index(sources, headers)


def _weight_map(file: str, value: Json, findings: Findings) -> dict[str, str]:
    """Shard by tensor, entries with a legal shard name only."""
    places: dict[str, str] = {}
    if not isinstance(value, Members) or not value:
        found = strict_json.show(value) if isinstance(value, Members) else strict_json.type_name(value)
        findings.add(
            "structure.index_weight_map",
            f"{file}: weight_map is not a filled object.",
            where={"file": file, "path": "$.weight_map"},
            expected="tensor names and the shards that hold them",
            found=found,
        )
        return places
    for tensor, shard in value.items():
        where = {"file": file, "tensor": tensor}
        if not isinstance(shard, str):
            findings.add(
                "structure.index_weight_map",
                f"{file}: the shard of tensor {strict_json.show(tensor)} is not a string.",
                object=tensor,
                where=where,
                expected="a file name",
                found=strict_json.show(shard),
            )
        elif not is_plain_name(shard):
            findings.add(
                "structure.index_file_name",
                f"{file}: the shard of tensor {strict_json.show(tensor)} is not a plain file name.",
                object=tensor,
                where=where,
                expected="a plain file name",
                found=strict_json.show(shard),
            )
        else:
            places[tensor] = shard
    return places


def _add_missing(findings: Findings, file: str, shard: str, tensors: list[str]) -> None:
    findings.add(
        "structure.shard_missing",
        f"{file} names the shard {strict_json.show(shard)}, which is not there; it holds {len(tensors):,} tensors.",
        where={"file": file, "files": [shard], "tensors": tensors},
        expected=shard,
        found="no such file",
        count=len(tensors),
    )


def _compare(
    file: str, places: Mapping[str, str], headers: Mapping[str, Header], unread: set[str], findings: Findings
) -> None:
    holders: dict[str, list[str]] = {}
    for shard, header in headers.items():
        for tensor in header.tensors:
            holders.setdefault(tensor, []).append(shard)
    for tensor, shard in places.items():
        held = holders.get(tensor, [])
        if shard not in held and shard not in unread:
            findings.add(
                "structure.shard_tensor_missing",
                f"{file} places tensor {strict_json.show(tensor)} in {strict_json.show(shard)}, which lacks it.",
                object=tensor,
                where={"file": shard, "tensor": tensor},
                expected=shard,
                found=", ".join(held) or "in no shard",
            )
    for tensor, held in holders.items():
        if len(held) > 1:
            findings.add(
                "structure.tensor_in_two_shards",
                f"Tensor {strict_json.show(tensor)} is in {len(held)} shards.",
                object=tensor,
                where={"files": held, "tensor": tensor},
                expected="one shard",
                found=", ".join(held),
            )
        if tensor not in places:
            findings.add(
                "structure.index_tensor_unlisted",
                f"{file} does not list tensor {strict_json.show(tensor)} of {strict_json.show(held[0])}.",
                object=tensor,
                where={"file": held[0], "tensor": tensor},
                expected="listed in weight_map",
                found="not listed",
            )


def _note_strangers(files: FileSet, file: str, shards: Mapping[str, list[str]], findings: Findings) -> None:
    strangers = [printable(name) for name in files.names if name.endswith(_EXTENSION) and name not in shards]
    if strangers:
        findings.add(
            "structure.shard_unlisted",
            f"{file} does not name {len(strangers)} safetensors files beside it, such as {strict_json.show(strangers[0])}.",
            where={"file": file, "files": strangers},
            expected="only named shards",
            found=strict_json.show(strangers[0]),
            count=len(strangers),
        )


def _compare_total(file: str, metadata: Json, headers: Mapping[str, Header], findings: Findings) -> None:
    total = sum(tensor.bytes for header in headers.values() for tensor in header.tensors.values())
    stated = metadata.get("total_size", total) if isinstance(metadata, Members) else None
    if type(stated) is not int or stated != total:
        findings.add(
            "structure.index_total_size",
            f"{file}: metadata.total_size does not agree with the shards.",
            where={"file": file, "path": "$.metadata.total_size"},
            expected=total,
            found=strict_json.show(stated),
        )
