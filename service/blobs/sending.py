"""Content on its way to a bucket: in pieces, hashed as they go, ending well only when all of it is what it should be."""

import asyncio
import hashlib
from collections.abc import Callable
from typing import Final, Self

from service.blobs.errors import StoreAwayForWriting, WrongContent

BLOCK_BYTES: Final = 8 << 20  # read, or put, in one request
_MAX_PARTS: Final = 9_000  # of one object; S3 takes 10,000


def require(sha256: str, size: int, found: str, found_size: int) -> None:
    """Raises: WrongContent."""
    if (sha256, size) != (found, found_size):
        raise WrongContent(
            f"{size:,} bytes with sha256 {sha256}", f"{found_size:,} bytes with sha256 {found}"
        )


class Outgoing:
    """Content on its way to a bucket, read piece by piece and hashed; it ends well only when its digest is right."""

    def __init__(self, size: int, sha256: str, get: Callable[[int, int], bytes | memoryview]) -> None:
        """`get` gives the bytes from one offset to before another; it is called on a thread of its own."""
        self.piece_bytes = max(BLOCK_BYTES, -(-size // _MAX_PARTS >> 20) << 20)
        self.size = size
        self._sha256, self._get = sha256, get
        self._hash = hashlib.sha256()
        self._at = 0
        self._stopped = False

    def stop(self) -> None:
        """Let it fail at its next piece."""
        self._stopped = True

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes | memoryview:
        piece = await asyncio.get_running_loop().run_in_executor(None, self._next)
        if piece is None:
            raise StopAsyncIteration
        return piece

    def _next(self) -> bytes | memoryview | None:
        if self._stopped:
            raise StoreAwayForWriting("it was told to stop")
        if self._at == self.size:
            require(self._sha256, self.size, self._hash.hexdigest(), self._at)
            return None
        piece = self._get(self._at, min(self.size, self._at + self.piece_bytes))
        self._hash.update(piece)
        self._at += len(piece)
        return piece
