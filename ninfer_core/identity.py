"""Names for content: artifact digest, object identity and content root (architecture, "Contracts").

All are sha256; members called `digest` are spelled `sha256:<hex>`, members called `sha256` are bare hex.
"""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import rfc8785

from ninfer_core.layouts.base import Shape

DIGEST_PREFIX: Final = "sha256:"


@dataclass(frozen=True, slots=True)
class FileDigest:
    """One file of an artifact."""

    name: str
    bytes: int
    sha256: str


def canonical_digest(document: Any) -> str:
    """`sha256:` of the RFC 8785 form of a JSON document. Raises: rfc8785.CanonicalizationError."""
    return DIGEST_PREFIX + hashlib.sha256(rfc8785.dumps(document)).hexdigest()


def artifact_digest(kind: str, files: Sequence[FileDigest]) -> str:
    """The file's own sha256 for one file; for a set the digest of its sorted listing."""
    if len(files) == 1:
        return DIGEST_PREFIX + files[0].sha256
    listing = [
        {"name": file.name, "bytes": file.bytes, "sha256": file.sha256}
        for file in sorted(files, key=lambda file: file.name)
    ]
    return canonical_digest({"schema": "ninfer-gate/files/1", "kind": kind, "files": listing})


def tensor_identity(format_name: str, shape: Shape, layout_name: str, payload_sha256: str) -> str:
    """What a tensor is, wherever it lies: canonical names, logical shape, payload."""
    return canonical_digest(
        {"format": format_name, "shape": list(shape), "layout": layout_name, "payload_sha256": payload_sha256}
    )


def resource_identity(encoding: str, payload_sha256: str) -> str:
    """What a resource is."""
    return canonical_digest({"encoding": encoding, "payload_sha256": payload_sha256})


def content_root(identities: Iterable[tuple[str, str]]) -> str:
    """Merkle root over (name, identity) pairs in name order; the same for every revision and split of the same content.

    Leaf: sha256(0x00, RFC 8785 of {"identity", "name"}); node: sha256(0x01, left, right), where left covers the
    largest power of two of leaves that is smaller than the whole, as in RFC 9162. Names order by their UTF-8 bytes.
    """
    leaves = [
        hashlib.sha256(b"\0" + rfc8785.dumps({"identity": identity, "name": name})).digest()
        for name, identity in sorted(identities, key=lambda pair: pair[0].encode())
    ]
    # One stack of full subtrees: the depth stays logarithmic for half a million objects.
    stack: list[tuple[int, bytes]] = []
    for leaf in leaves:
        size, node = 1, leaf
        while stack and stack[-1][0] == size:
            size, node = size * 2, _node(stack.pop()[1], node)
        stack.append((size, node))
    root = stack.pop()[1] if stack else hashlib.sha256().digest()
    while stack:
        root = _node(stack.pop()[1], root)
    return DIGEST_PREFIX + root.hex()


def _node(left: bytes, right: bytes) -> bytes:
    return hashlib.sha256(b"\1" + left + right).digest()
