"""Where every byte of a new artifact will lie, decided before the first one is written (containers, both chapters)."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ninfer_core.containers.spelling import (
    PAGE,
    PART_MAGIC,
    PART_PAYLOAD_OFFSET,
    REVISIONS,
    Revision,
)
from ninfer_core.errors import Usage
from ninfer_core.formats import NumericFormat
from ninfer_core.layouts.base import TENSOR_ALIGNMENT, Layout, Shape, align_up

DEFAULT_MAX_FILE_BYTES = 32_000_000_000  # headers counted
WRITABLE_REVISIONS = (2, 3)
ARTIFACT_ID_OFFSET = 16
ARTIFACT_ID_BYTES = 16


@dataclass(frozen=True, slots=True)
class TensorSpec:
    """A tensor to be written."""

    name: str
    shape: Shape
    format: NumericFormat
    layout: Layout

    @property
    def bytes(self) -> int:
        """Encoded size."""
        return self.layout.encoded_size(self.format, self.shape)


@dataclass(frozen=True, slots=True)
class ResourceSpec:
    """A resource to be written."""

    name: str
    bytes: int


ObjectSpec = TensorSpec | ResourceSpec


@dataclass(frozen=True, slots=True)
class FileSpec:
    """One file of the output: header text (directory included), then its part of the payload."""

    name: str
    header: bytes
    payload_offset: int
    payload_begin: int  # in the logical payload
    payload_bytes: int

    @property
    def bytes(self) -> int:
        """Size of the finished file."""
        return self.payload_offset + self.payload_bytes


@dataclass(frozen=True, slots=True)
class Blueprint:
    """The whole output: `offsets` are those of the objects in the logical payload, in order."""

    revision: int
    offsets: tuple[int, ...]
    files: tuple[FileSpec, ...]

    @property
    def bytes(self) -> int:
        """Of all files."""
        return sum(file.bytes for file in self.files)


@dataclass(frozen=True, slots=True)
class Heading:
    """What the directory says beside its objects; `sections` are revision 3's open members."""

    model_id: str
    weights_id: str
    components: Mapping[str, Any]
    sections: Mapping[str, Any]  # metadata and provenance, where given


def blueprint(
    entry: str,
    objects: Sequence[ObjectSpec],
    heading: Heading,
    revision: int = 2,
    max_file_bytes: int | None = None,
) -> Blueprint:
    """Lay out objects in the order given, tensors at multiples of 256, without other slack.

    Raises: Usage when the revision cannot be written, or the file limit cannot hold the headers.
    """
    if revision not in WRITABLE_REVISIONS:
        raise Usage(
            f"revision {revision} cannot be written; revisions {WRITABLE_REVISIONS[0]} and {WRITABLE_REVISIONS[1]} can"
        )
    try:
        entry.encode()
    except UnicodeEncodeError as error:
        raise Usage(
            f"the file name {entry!r} is not valid UTF-8, and the directory has to name it"
        ) from error
    offsets, total = _place(objects)
    spelling = REVISIONS[revision]
    entries = [_entry(item, offset, spelling) for item, offset in zip(objects, offsets, strict=True)]
    if revision == 2:
        root = {
            "identity": {"model_id": heading.model_id, "weights_id": heading.weights_id},
            "objects": entries,
        }
        text = _compact(root)
        start = align_up(spelling.header_bytes + len(text), PAGE)
        if max_file_bytes is not None and start + total > max_file_bytes:
            raise Usage(
                f"revision 2 is one file, and this one takes {start + total:,} bytes; write revision 3 to split it"
            )
        header = spelling.magic + len(text).to_bytes(8, "little") + text
        return Blueprint(2, offsets, (FileSpec(entry, header, start, 0, total),))
    limit = DEFAULT_MAX_FILE_BYTES if max_file_bytes is None else max_file_bytes
    return Blueprint(3, offsets, _split(entry, entries, heading, objects, total, limit, spelling))


def sections(tensors: Iterable[str], heading: Heading) -> dict[str, Any]:
    """What revision 3 says beside objects and files, in writing order: one binding of the whole object per tensor."""
    return {
        "components": heading.components,
        "bindings": {name: {"object": name} for name in tensors},
        "uses": [],
        **heading.sections,
    }


def _place(objects: Sequence[ObjectSpec]) -> tuple[tuple[int, ...], int]:
    cursor = 0
    offsets = []
    for item in objects:
        if isinstance(item, TensorSpec):
            cursor = align_up(cursor, TENSOR_ALIGNMENT)
        offsets.append(cursor)
        cursor += item.bytes
    return tuple(offsets), cursor


def _entry(item: ObjectSpec, offset: int, revision: Revision) -> dict[str, Any]:
    if isinstance(item, ResourceSpec):
        return {
            revision.key: item.name,
            "kind": "resource",
            "encoding": revision.encoding,
            "offset": offset,
            "bytes": item.bytes,
        }
    return {
        revision.key: item.name,
        "kind": "tensor",
        "shape": list(item.shape),
        "format": revision.spell_format(item.format),
        "layout": revision.spell_layout(item.layout),
        "offset": offset,
        "bytes": item.bytes,
    }


def _split(
    entry: str,
    entries: list[dict[str, Any]],
    heading: Heading,
    objects: Sequence[ObjectSpec],
    total: int,
    max_file_bytes: int,
    revision: Revision,
) -> tuple[FileSpec, ...]:
    said = sections((item.name for item in objects if isinstance(item, TensorSpec)), heading)
    root: dict[str, Any] = {"components": said.pop("components"), "objects": entries, **said}
    # The directory lists the files, whose sizes depend on the directory's length: grow until it fits, then pad it.
    start = 0
    while True:
        sizes = _sizes(start, total, max_file_bytes) if start else [total]
        names = [None, *(f"{entry}.part-{index:04d}" for index in range(1, len(sizes)))]
        text = _compact(
            {
                **root,
                "files": [
                    {"path": name, "payload_bytes": size} for name, size in zip(names, sizes, strict=True)
                ],
            }
        )
        needed = align_up(revision.header_bytes + len(text), PAGE)
        if needed <= start:
            break
        start = needed
    text = text.ljust(start - PAGE + 1 - revision.header_bytes)
    header = revision.magic + len(text).to_bytes(8, "little") + bytes(ARTIFACT_ID_BYTES) + text
    files = [FileSpec(entry, header, start, 0, sizes[0])]
    begin = sizes[0]
    for index, size in enumerate(sizes[1:], 1):
        part = PART_MAGIC + index.to_bytes(8, "little") + bytes(ARTIFACT_ID_BYTES)
        files.append(FileSpec(f"{entry}.part-{index:04d}", part, PART_PAYLOAD_OFFSET, begin, size))
        begin += size
    return tuple(files)


def _sizes(start: int, total: int, max_file_bytes: int) -> list[int]:
    """Payload bytes of each file; every file but the last is filled to a multiple of 4096."""
    sizes = []
    left = total
    header = start
    while left:
        capacity = (max_file_bytes - header) // PAGE * PAGE
        if max_file_bytes - header < min(left, PAGE):
            raise Usage(
                f"files of at most {max_file_bytes:,} bytes leave no room beside the header; "
                f"this artifact takes files of at least {start + PAGE:,} bytes"
            )
        sizes.append(left if left <= max_file_bytes - header else capacity)
        left -= sizes[-1]
        header = PART_PAYLOAD_OFFSET
    return sizes


def _compact(root: Mapping[str, Any]) -> bytes:
    return json.dumps(root, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode()
