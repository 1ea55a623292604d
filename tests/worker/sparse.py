"""An artifact of any size that takes no room: a sparse file in the store, under a digest that it does not have."""

import json

from service import artifacts
from service.contents import NamedDigest
from service.records import content
from tests.worker.rig import PROJECT, Rig

_COLUMNS = 4096


def push_sparse(made: Rig, size: int, name: str = "weights.safetensors") -> str:
    """The digest of an artifact with one tensor of `size` bytes; what its pass would find does not matter."""
    head = {"w": {"dtype": "BF16", "shape": [size // 2 // _COLUMNS, _COLUMNS], "data_offsets": [0, size]}}
    text = json.dumps(head).encode()
    text += b" " * (-len(text) % 8)
    sha256 = f"{size:064x}"
    path = made.parts.blobs.path(sha256)  # type: ignore[attr-defined]
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        file.truncate(8 + len(text) + size)
    with made.parts.database.write() as session:
        content.add_blob(session, PROJECT, sha256, path.stat().st_size)
    found, _ = artifacts.push(made.parts, PROJECT, "safetensors", [NamedDigest(name, f"sha256:{sha256}")])
    return found.digest
