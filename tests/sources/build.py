"""Safetensors files out of literal parts; nothing here is checked."""

import json
from typing import Any

from ninfer_core.findings import Findings
from ninfer_core.io import ByteSource, MemorySource
from ninfer_core.sources import Header, HeaderLimits, read_header


def blob(header: bytes, data: bytes = b"") -> bytes:
    """A file with this header text and data."""
    return len(header).to_bytes(8, "little") + header + data


def entry(dtype: str, shape: list[int], begin: int, end: int) -> dict[str, Any]:
    """A tensor entry."""
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


def file(tensors: dict[str, tuple[str, list[int], bytes]], metadata: dict[str, str] | None = None) -> bytes:
    """A valid file: (dtype, shape, stored bytes) by name, in that order."""
    header: dict[str, Any] = {} if metadata is None else {"__metadata__": metadata}
    data = b""
    for name, (dtype, shape, stored) in tensors.items():
        header[name] = entry(dtype, shape, len(data), len(data) + len(stored))
        data += stored
    return blob(json.dumps(header).encode(), data)


def index(weight_map: dict[str, str], **metadata: Any) -> bytes:
    """An index."""
    return json.dumps({"metadata": metadata, "weight_map": weight_map}).encode()


def codes_of(content: bytes, limits: HeaderLimits | None = None) -> tuple[list[str], Header | None]:
    """Every finding code of a file, in order, and the header."""
    findings = Findings()
    header = read_header(MemorySource("model.safetensors", content), findings, limits)
    assert (header is None) == bool(findings.errors)
    return [finding.code for finding in findings], header


class MemoryFiles:
    """Files of a folder, in memory."""

    def __init__(self, **contents: bytes) -> None:
        self.contents = contents

    @classmethod
    def of(cls, contents: dict[str, bytes]) -> "MemoryFiles":
        """From a mapping, for names that are no identifiers."""
        return cls(**contents)

    @property
    def names(self) -> tuple[str, ...]:
        """Sorted, as a folder lists them."""
        return tuple(sorted(self.contents))

    def __contains__(self, name: object) -> bool:
        return name in self.contents

    def open(self, name: str) -> ByteSource:
        """See `FileSet.open`."""
        return MemorySource(name, self.contents[name])
