"""From a path that a person typed to the files and the kind of artifact it means."""

from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Literal, Self

from ninfer_core.containers.spelling import MAGIC_STEM, PART_MAGIC
from ninfer_core.errors import CannotRead, Usage
from ninfer_core.io import DiskFile, DiskFiles, read
from ninfer_core.sources.checkpoint import INDEX_SUFFIX, SUFFIX, detect

ArtifactKind = Literal["ninfer", "safetensors"]
ENTRY_SUFFIX = ".ninfer"


@dataclass(frozen=True, slots=True)
class Opened:
    """An artifact on disk: `entry` is the file to begin with, its parts or shards lie in `files` beside it."""

    kind: ArtifactKind
    files: DiskFiles
    entry: str

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.files.close()


def open_path(path: Path) -> Opened:
    """The artifact at `path`: a file, or a folder that holds one entry with its parts, or one checkpoint.

    Raises: CannotRead when the path cannot be read, Usage when a folder could mean several things or none.
    """
    if path.is_dir():
        return _folder(path)
    kind = _kind(path)
    try:
        files = DiskFiles(path.parent)
    except CannotRead:
        # A readable file in a folder that may not be listed: only its neighbours are out of reach.
        files = DiskFiles(path.parent, (path.name,))
    return Opened(kind, files, path.name)


def _folder(path: Path) -> Opened:
    files = DiskFiles(path)
    entries = [name for name in files.names if name.endswith(ENTRY_SUFFIX)]
    checkpoint = any(name.endswith((SUFFIX, INDEX_SUFFIX)) for name in files.names)
    if len(entries) == 1 and not checkpoint:
        return Opened("ninfer", files, entries[0])
    if len(entries) > 1 or (entries and checkpoint):
        found = [*entries, *(name for name in files.names if name.endswith((SUFFIX, INDEX_SUFFIX)))]
        listed = ", ".join(found[:8]) + (", …" if len(found) > 8 else "")
        raise Usage(f"{path} holds more than one artifact; name the file: {listed}")
    if not checkpoint:
        raise Usage(f"{path} holds no {ENTRY_SUFFIX} entry and no {SUFFIX} checkpoint")
    try:
        return Opened("safetensors", files, detect(files).name)
    except Usage as error:
        raise Usage(f"{path}: {error}") from error


def _kind(path: Path) -> ArtifactKind:
    file = DiskFile(path)
    try:
        head = read(file, 0, min(file.size, 9))
    finally:
        file.close()
    if head.startswith((MAGIC_STEM, PART_MAGIC)):
        return "ninfer"
    if path.name.endswith((SUFFIX, INDEX_SUFFIX)):
        return "safetensors"
    if path.name.endswith(ENTRY_SUFFIX) or head[8:9] != b"{":
        return "ninfer"
    return "safetensors"
