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
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from ninfer_core import __version__
from ninfer_core.errors import CannotWrite, NinferError
from service import queue
from service.backup_contents import PARTIAL, Contents, Document, Told, copy_in, copy_out
from service.blobs import Blobs, sync_folder
from service.records import dump, schema
from service.settings import Settings

SCHEMA: Final = "ninfer-gate/backup/1"
MANIFEST: Final = "ninfer-gate-backup.json"
_CONTENT: Final = "content"
_PIECE_BYTES: Final = 4 << 20
_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,100}")  # of a table, or of the folder of rows


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
            contents = copy_out(settings, blobs, held, to / _CONTENT, tell).as_json()
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


def restore(settings: Settings, blobs: Blobs, source: Path, tell: Told) -> Document:
    """Make a service of a backup: an empty database is filled, content put into the store; what was done.

    Content first, rows last and at once: broken off, it is begun again. Raises: NotABackup, RecordsError, EngineKnows,
    CannotRead, CannotWrite.
    """
    manifest = read_manifest(source)
    dump.require_empty(settings.records_url)
    _require_new_engine(settings)
    contents = copy_in(blobs, source / _CONTENT) if manifest["content"] is not None else Contents()
    tell(f"{contents.files:,} contents, {contents.copied:,} of them new in this store")
    files = {name: source / manifest["records"] / f"{name}.jsonl.gz" for name in manifest["tables"]}
    counts = dump.read_back(settings.records_url, manifest["revision"], files)
    tell(f"{sum(counts.values()):,} rows of {len(counts)} tables")
    return {"tables": counts, "content": contents.as_json(), "from": manifest["at"]}


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
    queue.prepare(settings.engine_url)
    client = queue.Queue(settings.engine_url)
    try:
        if client.knows_anything():
            raise EngineKnows
    finally:
        client.close()


def _publish(to: Path, manifest: Document) -> None:
    partial = to / f"{MANIFEST}{PARTIAL}"
    with partial.open("w", encoding="utf-8") as file:
        json.dump(manifest, file, indent=1)
        file.flush()
        os.fsync(file.fileno())
    os.replace(partial, to / MANIFEST)
    sync_folder(to)


def _sha256(path: Path) -> str:
    hashed = hashlib.sha256()
    for piece in _pieces(path):
        hashed.update(piece)
    return hashed.hexdigest()


def _pieces(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while piece := file.read(_PIECE_BYTES):
            yield piece
