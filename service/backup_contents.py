"""Content on its way between a store and the folder of a backup: `<folder>/ab/<sha256>`, hashed as it goes."""

import hashlib
import os
import re
import stat
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from ninfer_core.errors import CannotRead
from service.blobs import Blobs, sync_folder
from service.records import dump
from service.records.database import Database
from service.settings import Settings

PARTIAL: Final = ".partial"
_PIECE_BYTES: Final = 4 << 20
_MOST_NAMED: Final = 100
_SHA256: Final = re.compile(r"[0-9a-f]{64}")

Document = dict[str, Any]
Told = Callable[[str], None]


@dataclass(slots=True)
class Contents:
    """What became of content on its way; `missing` and `damaged` are sha256, at most some of them named."""

    files: int = 0
    bytes: int = 0
    copied: int = 0
    missing: list[str] = field(default_factory=list)
    damaged: list[str] = field(default_factory=list)

    @property
    def whole(self) -> bool:
        """Whether all of it is there."""
        return not self.missing and not self.damaged

    def as_json(self) -> Document:
        """For a manifest, and for who asked."""
        return {
            "files": self.files,
            "bytes": self.bytes,
            "copied": self.copied,
            "missing": {"count": len(self.missing), "sha256": self.missing[:_MOST_NAMED]},
            "damaged": {"count": len(self.damaged), "sha256": self.damaged[:_MOST_NAMED]},
        }


def copy_out(
    settings: Settings, blobs: Blobs, held: list[tuple[str, int]], into: Path, tell: Told
) -> Contents:
    """Copy contents (sha256 and bytes) that are not in a folder yet. Raises: StoreAway, OSError."""
    contents = Contents()
    into.mkdir(mode=0o700, exist_ok=True)
    for sha256, size in held:
        path = into / sha256[:2] / sha256
        contents.files, contents.bytes = contents.files + 1, contents.bytes + size
        if _is_there(path, size):
            continue
        path.parent.mkdir(mode=0o700, exist_ok=True)
        try:
            if _fetch(blobs, sha256, size, path):
                contents.copied += 1
            else:
                contents.damaged.append(sha256)
        except CannotRead:
            contents.missing.append(sha256)
    contents.missing = _still_held(settings, contents.missing)
    tell(f"{contents.files:,} contents, {contents.copied:,} of them new in this backup")
    return contents


def _fetch(blobs: Blobs, sha256: str, size: int, path: Path) -> bool:
    """Whether what the store has is what it should be; only then it is kept. Raises: CannotRead, OSError."""
    partial = path.with_name(f"{sha256}{PARTIAL}")
    try:
        hashed = hashlib.sha256()
        with partial.open("wb") as file:
            for piece in blobs.pieces(sha256, 0, size):
                hashed.update(piece)
                file.write(piece)
            file.flush()
            os.fsync(file.fileno())
        if hashed.hexdigest() != sha256:
            return False
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)
    sync_folder(path.parent)
    return True


def _still_held(settings: Settings, missing: list[str]) -> list[str]:
    """Those that a project still holds: what was given up since the rows were read is nobody's loss."""
    if not missing:
        return []
    database = Database(settings.records_url)
    try:
        with database.read() as session:
            return dump.held_of(session, missing)
    finally:
        database.close()


def copy_in(blobs: Blobs, folder: Path) -> Contents:
    """Put what lies in such a folder into the store. Raises: CannotWrite, StoreAway, OSError."""
    contents = Contents()
    for path in sorted(folder.glob("??/*")):
        if not _SHA256.fullmatch(path.name):
            continue
        size = path.stat().st_size
        contents.files, contents.bytes = contents.files + 1, contents.bytes + size
        if blobs.holds(path.name, size):
            continue
        with blobs.writer() as writer, path.open("rb") as file:
            while piece := file.read(_PIECE_BYTES):
                writer.write(piece)
            if writer.sha256 != path.name:
                contents.damaged.append(path.name)
                continue
            writer.commit()
            contents.copied += 1
    return contents


def _is_there(path: Path, size: int) -> bool:
    try:
        status = path.lstat()
    except OSError:
        return False
    return stat.S_ISREG(status.st_mode) and status.st_size == size
