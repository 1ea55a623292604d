"""One reading, two digests: that of a whole file and, beside it, that of one part of it after the other."""

import hashlib
from collections.abc import Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Protocol

from ninfer_core.kernels.sha256 import Sha256, proved, update_both


class Hashing(Protocol):
    """Fed the bytes of the whole in order; those between `begin` and `end` are a part's as well."""

    def begin(self) -> None: ...

    def end(self) -> str:
        """Hex sha256 of the part."""
        ...

    def update(self, piece: memoryview) -> None: ...

    def hexdigest(self) -> str:
        """Hex sha256 of the whole."""
        ...


@contextmanager
def hashing(threads: int) -> Iterator[Hashing]:
    """Both on this thread in the time of one where the processor can; else by hashlib, with a helper's thread for the parts.

    The digest of a file is one chain that no two threads can share. Where that of its parts would double the chain,
    and others work beside it, the helper keeps it as long as it is by itself.
    """
    if proved():
        yield _Paired()
    elif threads > 1:
        with ThreadPoolExecutor(1, thread_name_prefix="hash") as helper:
            yield _Separate(helper)
    else:
        yield _Separate(None)


class _Paired:
    def __init__(self) -> None:
        self._whole = Sha256()
        self._part: Sha256 | None = None

    def begin(self) -> None:
        self._part = Sha256()

    def end(self) -> str:
        part, self._part = self._part, None
        return "" if part is None else part.hexdigest()

    def update(self, piece: memoryview) -> None:
        if self._part is None:
            self._whole.update(piece)
        else:
            update_both(self._whole, self._part, piece)

    def hexdigest(self) -> str:
        return self._whole.hexdigest()


class _Separate:
    def __init__(self, helper: Executor | None) -> None:
        self._helper = helper
        self._whole = hashlib.sha256()
        self._part: hashlib._Hash | None = None

    def begin(self) -> None:
        self._part = hashlib.sha256()

    def end(self) -> str:
        part, self._part = self._part, None
        return "" if part is None else part.hexdigest()

    def update(self, piece: memoryview) -> None:
        part = self._part
        if part is None:
            self._whole.update(piece)
        elif self._helper is None:
            self._whole.update(piece)
            part.update(piece)
        else:
            beside = self._helper.submit(part.update, piece)
            self._whole.update(piece)
            beside.result()  # the buffer is filled again after this

    def hexdigest(self) -> str:
        return self._whole.hexdigest()
