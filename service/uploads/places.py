"""Which spool folder is this one: the place that holds the file of an upload has an id, and only there does it go on.

<scratch>/spool-id    32 hex digits, made once; machines that share the folder share it
"""

import os
import re
import secrets
from contextlib import suppress
from pathlib import Path
from typing import Final

from service.blobs import sync_folder
from service.blobs.errors import not_written
from service.records.models import Upload

_FILE: Final = "spool-id"
_ID: Final = re.compile(r"[0-9a-f]{32}\Z")


def here(scratch: Path) -> str | None:
    """The id of this folder; None where no upload was begun in it."""
    try:
        with (scratch / _FILE).open("rb") as file:
            said = file.read(64).decode("ascii", "replace")
    except OSError:
        return None
    return said if _ID.match(said) else None


def make(scratch: Path) -> str:
    """The id of this folder, made where there is none. Raises: CannotWrite."""
    known = here(scratch)
    if known is not None:
        return known
    path, partial = scratch / _FILE, scratch / f"{_FILE}-{secrets.token_hex(8)}"
    try:
        with partial.open("xb") as file:
            file.write(secrets.token_hex(16).encode())
            file.flush()
            os.fsync(file.fileno())
        try:
            # Whole or not there, and of several processes one is the first.
            with suppress(FileExistsError):
                os.link(partial, path)
            if (known := here(scratch)) is None:  # it holds no id
                os.replace(partial, path)
                known = here(scratch)
        finally:
            partial.unlink(missing_ok=True)
    except OSError as error:
        raise not_written(error, str(scratch)) from error
    sync_folder(scratch)
    if known is None:
        raise not_written(OSError(f"{path} cannot be read"), str(scratch))
    return known


def elsewhere(scratch: Path, upload: Upload) -> bool:
    """Whether the bytes of this upload come in at another folder than this one."""
    return upload.place is not None and upload.place != here(scratch)
