"""Text of a large-file pointer: what a repository holds in place of weights that were never fetched."""

import re
from dataclasses import dataclass

PREFIX = b"version https://git-lfs"
HEAD_BYTES = 1024  # a pointer is smaller by definition

_OID = re.compile(rb"^oid sha256:([0-9a-f]{64})\r?$", re.MULTILINE)
_SIZE = re.compile(rb"^size ([0-9]{1,19})\r?$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class PointerStub:
    """What the pointer names: the real file's sha256 (bare hex) and length in bytes, where it says so."""

    sha256: str | None
    bytes: int | None

    @property
    def where(self) -> dict[str, str | int | None]:
        """The members a finding carries."""
        return {"recognised": "large-file pointer", "sha256": self.sha256, "bytes": self.bytes}


def pointer_stub(head: bytes) -> PointerStub | None:
    """The pointer that `head`, the first `HEAD_BYTES` bytes of a file, is; None for any other file."""
    if not head.startswith(PREFIX):
        return None
    oid, size = _OID.search(head), _SIZE.search(head)
    return PointerStub(oid[1].decode() if oid else None, int(size[1]) if size else None)
