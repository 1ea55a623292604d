"""Why a store gave no bytes or took none, where that is nobody's file's fault and may be over the next time."""

import errno
from typing import Final

from ninfer_core.errors import CannotWrite, NinferError

_FULL: Final = (errno.ENOSPC, errno.EDQUOT)


class StoreAway(NinferError):
    """A store that does not answer. That says nothing of the content: a `CannotRead` would become a finding on the file."""

    code = "store_away"
    passing = True


class StoreAwayForWriting(StoreAway, CannotWrite):
    """The same, where something was to be stored; nothing of it is anywhere."""


class StoreFull(CannotWrite):
    """No room is left for what was to be stored; nothing of it is anywhere."""

    code = "store_full"
    passing = True


class WrongContent(CannotWrite):
    """What was to be stored is not what its digest or its size say; nothing of it is anywhere."""

    code = "wrong_content"

    def __init__(self, wanted: str, found: str) -> None:
        super().__init__(f"the content was to be {wanted} and is {found}")
        self.wanted = wanted
        self.found = found


def not_written(error: OSError, place: str = "") -> CannotWrite:
    """What an error of the disk means for content that was to be written; `place` is a folder it may name."""
    said = f"cannot {f'write in {place}' if place else 'store content'}: {error.strerror}"
    return StoreFull(said) if error.errno in _FULL else CannotWrite(said)
