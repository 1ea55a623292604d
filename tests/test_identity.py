"""Digests of artifacts and content, against definitions written out another way."""

import hashlib
import json

from hypothesis import given
from hypothesis import strategies as st

from ninfer_core.identity import FileDigest, artifact_digest, content_root, resource_identity, tensor_identity


def digest(document: object) -> str:
    return (
        "sha256:"
        + hashlib.sha256(
            json.dumps(document, separators=(",", ":"), sort_keys=True, ensure_ascii=False).encode()
        ).hexdigest()
    )


def test_one_file_is_its_own_digest():
    assert artifact_digest("ninfer", [FileDigest("a", 1, "ab")]) == "sha256:ab"


def test_a_set_is_listed_in_name_order():
    files = [FileDigest("b", 2, "cd"), FileDigest("a", 1, "ab")]
    listing = [{"name": "a", "bytes": 1, "sha256": "ab"}, {"name": "b", "bytes": 2, "sha256": "cd"}]
    expected = digest({"schema": "ninfer-gate/files/1", "kind": "ninfer", "files": listing})
    assert artifact_digest("ninfer", files) == artifact_digest("ninfer", files[::-1]) == expected


def test_identities():
    document = {"format": "BF16", "shape": [2, 3], "layout": "contiguous-le-v1", "payload_sha256": "ab"}
    assert tensor_identity("BF16", (2, 3), "contiguous-le-v1", "ab") == digest(document)
    assert resource_identity("raw-bytes-v1", "ab") == digest(
        {"encoding": "raw-bytes-v1", "payload_sha256": "ab"}
    )


def root(leaves: list[bytes]) -> bytes:
    """RFC 9162, section 2.1.1, as it is written: recursive."""
    if len(leaves) == 1:
        return leaves[0]
    split = 1
    while split * 2 < len(leaves):
        split *= 2
    return hashlib.sha256(b"\1" + root(leaves[:split]) + root(leaves[split:])).digest()


@given(
    st.dictionaries(
        st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=5),
        st.text("0123456789abcdef", min_size=4, max_size=4),
        min_size=1,
        max_size=40,
    )
)
def test_content_root_is_the_merkle_root_in_name_order(pairs: dict[str, str]):
    leaves = []
    for name in sorted(pairs, key=str.encode):
        document = json.dumps(
            {"identity": pairs[name], "name": name}, separators=(",", ":"), ensure_ascii=False
        )
        leaves.append(hashlib.sha256(b"\0" + document.encode()).digest())
    assert content_root(pairs.items()) == "sha256:" + root(leaves).hex()
    assert content_root(list(pairs.items())[::-1]) == content_root(pairs.items())
