"""Whole artifacts of a target without its weights: a real directory over a hole. Written apart from the product's writer."""

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ninfer_core.targets import Target, TargetObject, registered_recipe

PAGE, ALIGNMENT = 4096, 256
Entry = dict[str, Any]


@dataclass(frozen=True)
class Directory:
    """A compact directory and where things lie under it."""

    revision: int
    text: bytes
    entries: Sequence[Entry]

    @property
    def payload_offset(self) -> int:
        return -(-(16 + len(self.text)) // PAGE) * PAGE

    @property
    def file_bytes(self) -> int:
        return self.payload_offset + max(entry["offset"] + entry["bytes"] for entry in self.entries)

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.text).hexdigest()

    def write(self, path: Path) -> Path:
        """A file with this directory; everything else is a hole."""
        with path.open("wb") as file:
            file.write(
                b"NINFER\0" + bytes([self.revision]) + len(self.text).to_bytes(8, "little") + self.text
            )
        os.truncate(path, self.file_bytes)
        return path


def resource_bytes(target: Target) -> Mapping[str, int]:
    """The length of each resource, as the registered recipe of the target pins it."""
    document = registered_recipe(target.recipe_id or "")
    assert document is not None
    return {entry["object"]: entry["bytes"] for entry in json.loads(document)["resources"]}


def entries(objects: Sequence[TargetObject], lengths: Mapping[str, int]) -> list[Entry]:
    """Directory entries in the order given, tightly placed."""
    result: list[Entry] = []
    cursor = 0
    for item in objects:
        entry: Entry = {"name": item.name, "kind": item.kind}
        if item.shape is not None and item.format is not None and item.layout is not None:
            cursor = -(-cursor // ALIGNMENT) * ALIGNMENT
            size = item.layout.encoded_size(item.format, item.shape)
            entry |= {"shape": list(item.shape), "format": item.format.name, "layout": item.layout.name}
        else:
            size = lengths[item.name]
            entry["encoding"] = item.encoding
        result.append(entry | {"offset": cursor, "bytes": size})
        cursor += size
    return result


def directory(target: Target, revision: int = 2, listed: Sequence[Entry] | None = None) -> Directory:
    """The canonical directory of a target, or one of its identity with other entries."""
    listed = entries(target.objects, resource_bytes(target)) if listed is None else listed
    identity = {"model_id": target.model_id, "weights_id": target.weights_id}
    root: Entry = {"model_id": target.model_id} if revision == 1 else {"identity": identity}
    text = json.dumps(root | {"objects": listed}, separators=(",", ":"), ensure_ascii=False).encode()
    return Directory(revision, text, listed)
