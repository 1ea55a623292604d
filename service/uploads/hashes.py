"""Digests of uploads so far, as long as this process has seen every byte: then the last request need not read them again."""

import hashlib
import threading
from collections import OrderedDict
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from hashlib import _Hash as Hash

_MOST: Final = 10_000  # uploads that are remembered; the digest of any other is taken of its file, afterwards


class Hashes:
    """Upload id -> (offset, SHA-256 of all before it). A digest is taken out while bytes are added to it."""

    def __init__(self) -> None:
        self._known: OrderedDict[str, tuple[int, Hash]] = OrderedDict()
        self._lock = threading.Lock()

    def take(self, upload_id: str, offset: int) -> "Hash | None":
        """The digest of the first `offset` bytes, where it is known. It is the caller's until it is put back."""
        with self._lock:
            at, known = self._known.pop(upload_id, (-1, None))
        if at == offset:
            return known
        return hashlib.sha256() if offset == 0 else None

    def put(self, upload_id: str, offset: int, known: "Hash | None") -> None:
        """What `take` gave, with what has been added; None is not remembered."""
        if known is None:
            return
        with self._lock:
            self._known[upload_id] = (offset, known)
            while len(self._known) > _MOST:
                self._known.popitem(last=False)

    def forget(self, upload_id: str) -> None:
        """Of an upload that is over."""
        with self._lock:
            self._known.pop(upload_id, None)
