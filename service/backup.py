"""A copy of everything that the service knows, in one folder, taken while it runs, and a service made of such a copy.

    ninfer-gate-backup.json     what it is, how many rows and which digests; written last, so that it stands for the rest
    records-<moment>/           the rows, one file for each table (`service.records.dump`)
    content/ab/<sha256>         the content, where it is not left to the bucket's own means

The rows are read first. Content is durable before the database says that it is there, and is collected long after the
last row that names it is gone: so what the rows name can be copied afterwards, while others go on. A folder may be used
again and again: only content that is not in it yet is copied. Nothing of the durable engine is kept: open jobs begin anew.
"""

import hashlib
import json
import os
import re
import shutil
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from ninfer_core import __version__
from ninfer_core.errors import CannotRead, CannotWrite, NinferError
from service.blobs import Blobs, sync_folder
from service.queue import Queue
from service.records import dump, schema
from service.records.database import Database
from service.settings import Settings

SCHEMA: Final = "ninfer-gate/backup/1"
MANIFEST: Final = "ninfer-gate-backup.json"
_CONTENT: Final = "content"
_PARTIAL: Final = ".partial"
_PIECE_BYTES: Final = 4 << 20
_MOST_NAMED: Final = 100
_SHA256: Final = re.compile(r"[0-9a-f]{64}")
_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,100}")  # of a table, or of the folder of rows

Document = dict[str, Any]
Told = Callable[[str], None]


class NotABackup(NinferError):
    """A folder that holds no whole backup that this version understands."""

    code = "not_a_backup"


class EngineKnows(NinferError):
    """A durable engine that remembers work, beside a database that is to be filled from a backup."""

    code = "engine_not_empty"

    def __init__(self) -> None:
        super().__init__(
            "the durable engine's database still knows workflows of another service; give it an empty one, or remove it"
        )


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


def backup(settings: Settings, blobs: Blobs, to: Path, with_content: bool, tell: Told) -> Document:
    """Take a backup into a folder; its manifest. Raises: RecordsError, CannotWrite, StoreAway."""
    moment = datetime.now(UTC)
    name = f"records-{moment:%Y%m%dT%H%M%S%fZ}"
    try:
        to.mkdir(mode=0o700, parents=True, exist_ok=True)  # parents would not get the mode
        (to / name).mkdir(mode=0o700)
        tables: Document = {}
        contents: Document | None = None
        with dump.snapshot(settings.records_url, to / name) as snapshot:
            for table in dump.tables():
                path = to / name / f"{table.name}.jsonl.gz"
                rows = snapshot.write(table, path)
                tables[table.name] = {"rows": rows, "sha256": _sha256(path)}
            tell(f"{sum(table['rows'] for table in tables.values()):,} rows of {len(tables)} tables")
            held = list(snapshot.blobs()) if with_content else []
        if with_content:
            contents = _copy_out(settings, blobs, held, to / _CONTENT, tell).as_json()
        manifest = {
            "schema": SCHEMA,
            "ninfer_gate": __version__,
            "revision": schema.head(),
            "at": moment.isoformat(),
            "records": name,
            "tables": tables,
            "content": contents,
        }
        _publish(to, manifest)
        for old in to.glob("records-*"):
            if old.name != name:
                shutil.rmtree(old, ignore_errors=True)
    except OSError as error:
        raise CannotWrite(f"cannot write in {to}: {error.strerror or error}") from error
    return manifest


def _copy_out(
    settings: Settings, blobs: Blobs, held: list[tuple[str, int]], into: Path, tell: Told
) -> Contents:
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
        except CannotRead as error:
            if getattr(error, "passing", False):
                raise
            contents.missing.append(sha256)
    contents.missing = _still_held(settings, contents.missing)
    tell(f"{contents.files:,} contents, {contents.copied:,} of them new in this backup")
    return contents


def _fetch(blobs: Blobs, sha256: str, size: int, path: Path) -> bool:
    """Whether what the store has is what it should be; only then it is kept. Raises: CannotRead, OSError."""
    partial = path.with_name(f"{sha256}{_PARTIAL}")
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


def restore(settings: Settings, blobs: Blobs, source: Path, tell: Told) -> Document:
    """Make a service of a backup: an empty database is filled, content put into the store; what was done.

    Content first, rows last and at once: broken off, it is begun again. Raises: NotABackup, RecordsError, EngineKnows,
    CannotRead, CannotWrite.
    """
    manifest = read_manifest(source)
    dump.require_empty(settings.records_url)
    _require_new_engine(settings)
    contents = _copy_in(blobs, source / _CONTENT) if manifest["content"] is not None else Contents()
    tell(f"{contents.files:,} contents, {contents.copied:,} of them new in this store")
    files = {name: source / manifest["records"] / f"{name}.jsonl.gz" for name in manifest["tables"]}
    counts = dump.read_back(settings.records_url, manifest["revision"], files)
    tell(f"{sum(counts.values()):,} rows of {len(counts)} tables")
    return {"tables": counts, "content": contents.as_json(), "from": manifest["at"]}


def _copy_in(blobs: Blobs, folder: Path) -> Contents:
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


def read_manifest(source: Path) -> Document:
    """The manifest of a backup whose rows are all there and unchanged. Raises: NotABackup."""
    try:
        manifest = json.loads((source / MANIFEST).read_text(encoding="utf-8"))
        if manifest["schema"] != SCHEMA:
            raise NotABackup(f"{source} holds a backup of another form: {manifest['schema']}")
        if not all(map(_NAME.fullmatch, (manifest["records"], *manifest["tables"]))):
            raise NotABackup(f"{source} names files in a way that no backup does")
        for name, table in manifest["tables"].items():
            path = source / manifest["records"] / f"{name}.jsonl.gz"
            if _sha256(path) != table["sha256"]:
                raise NotABackup(f"{source} is damaged: {path.name} is not what was written")
        _ = manifest["revision"], manifest["content"], manifest["at"]
    except FileNotFoundError as error:
        raise NotABackup(f"{source} holds no whole backup: {Path(error.filename).name} is missing") from error
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise NotABackup(f"{source} holds no backup that can be read: {error}") from error
    return dict(manifest)


def _require_new_engine(settings: Settings) -> None:
    from service import queue

    queue.prepare(settings.engine_url)
    client = Queue(settings.engine_url)
    try:
        if client.knows_anything():
            raise EngineKnows
    finally:
        client.close()


def _publish(to: Path, manifest: Document) -> None:
    partial = to / f"{MANIFEST}{_PARTIAL}"
    with partial.open("w", encoding="utf-8") as file:
        json.dump(manifest, file, indent=1)
        file.flush()
        os.fsync(file.fileno())
    os.replace(partial, to / MANIFEST)
    sync_folder(to)


def _is_there(path: Path, size: int) -> bool:
    try:
        status = path.lstat()
    except OSError:
        return False
    return stat.S_ISREG(status.st_mode) and status.st_size == size


def _sha256(path: Path) -> str:
    hashed = hashlib.sha256()
    for piece in _pieces(path):
        hashed.update(piece)
    return hashed.hexdigest()


def _pieces(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while piece := file.read(_PIECE_BYTES):
            yield piece
