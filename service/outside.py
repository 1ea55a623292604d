"""Content that lies outside of the service: files below the folders, and objects in the buckets, that the settings name.

What may be read is decided on the text of its address, before anything is looked at; so a refusal never tells whether
something is there. A path is then walked from its root, folder by folder, each held open: nothing that is renamed or
linked meanwhile leads elsewhere, and a link is followed only as long as it stays below its root.
"""

import os
import stat
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Final, Self

from ninfer_core.errors import CannotRead, LeadsOutside
from ninfer_core.io import Buffer, ByteSource, DiskFile, is_plain_name
from service.blobs.bucket import Bucket, Found
from service.blobs.opening import server
from service.blobs.remote import RemoteFile
from service.blobs.waiting import Check, never
from service.errors import Fault, ImportRefused, TooManyFiles
from service.settings import Settings

SCHEME: Final = "s3://"
_MAX_LENGTH: Final = 4096
_MAX_LINKS: Final = 40
_DEEPER: Final = 50  # objects at any depth below a prefix, for each that may be taken
_LOOK: Final = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC

Named = list[tuple[str, ByteSource]]


@dataclass(frozen=True, slots=True)
class Place:
    """Where something lies that may be read: a root, or a bucket, and the names that lead on from there."""

    root: Path | None
    bucket: str
    parts: tuple[str, ...]


def allowed(settings: Settings, source: str) -> Place:
    """Where `source` leads, decided on its text alone. Raises: ImportRefused."""
    absolute = source.startswith("/")
    parts = tuple(source.removeprefix("/" if absolute else SCHEME).rstrip("/").split("/"))
    plain = all(is_plain_name(part) and part.isprintable() for part in parts) and len(source) <= _MAX_LENGTH
    if plain and absolute:
        for root in settings.import_roots:
            names = root.absolute().parts[1:]
            if parts[: len(names)] == names:
                return Place(root, "", parts[len(names) :])
    elif plain and source.startswith(SCHEME) and len(parts) > 1:
        for bucket in settings.import_buckets:
            names = tuple(bucket.removeprefix(SCHEME).strip("/").split("/"))
            if parts[: len(names)] == names:
                return Place(None, parts[0], parts[1:])
    fault = Fault("body", "$.source", "not below a folder or in a bucket that imports may read")
    raise ImportRefused("This is not below a folder, and not in a bucket, that imports may read.", fault)


@contextmanager
def open_outside(settings: Settings, source: str, check: Check = never) -> Iterator[Named]:
    """A file, or the files directly in a folder, by name; open until the end, or until each is closed.

    `check` is asked while a server is waited for, and may raise. Raises: ImportRefused, TooManyFiles, CannotRead,
    StoreAway.
    """
    place = allowed(settings, source)
    with ExitStack() as stack:
        if place.root is None:
            yield _objects(Bucket(server(settings), place.bucket, "", check), place.parts, settings.max_files)
        else:
            yield _files(place.root, place.parts, settings.max_files, stack)


def _objects(bucket: Bucket, parts: Sequence[str], most: int) -> Named:
    key = "/".join(parts)
    found = [one] if (one := bucket.find(key)) is not None else []
    if not found:
        found = list(islice(_directly(bucket, key, most * _DEEPER), most + 1))
    files: Named = [
        (name, RemoteFile(bucket, one, name, None, None))
        for one in found
        for name in (one.key.rsplit("/", 1)[-1],)
    ]
    return _bounded(files, most)


def _directly(bucket: Bucket, key: str, most: int) -> Iterator[Found]:
    for count, one in enumerate(bucket.below(key)):
        if count == most:
            raise TooManyFiles(f"More than {most:,} objects lie there, at any depth.")
        if "/" not in one.key.removeprefix(f"{key}/"):
            yield one


def _files(root: Path, parts: Sequence[str], most: int, stack: ExitStack) -> Named:
    with _Beneath(root) as beneath:
        status = beneath.walk(parts)
        if stat.S_ISREG(status.st_mode):
            found = [_OutsideFile(root, parts, status)]
        else:
            found = list(islice(_direct(root, parts, beneath.names()), most + 1))
    for file in found:
        stack.callback(file.close)
    return _bounded([(file.name, file) for file in found], most)


def _direct(root: Path, parts: Sequence[str], names: Sequence[str]) -> Iterator["_OutsideFile"]:
    for name in names:
        inner = (*parts, name)
        with suppress(CannotRead), _Beneath(root) as beneath:  # gone by now, or a link that leads away
            status = beneath.walk(inner)
            if stat.S_ISREG(status.st_mode):
                yield _OutsideFile(root, inner, status)


def _bounded(files: Named, most: int) -> Named:
    if not files:
        raise CannotRead("there is no file that could be imported")
    if len(files) > most:
        raise TooManyFiles(f"More than {most:,} files lie there.")
    for name, _ in files:
        if not is_plain_name(name) or not name.isprintable():
            raise CannotRead(f"a file has a name that cannot be kept: {name!r}")
    return files


class _Beneath:
    """A way down from a root, which is held open with every folder on the way."""

    def __init__(self, root: Path) -> None:
        """Links in the root's own path are those of who set it. Raises: CannotRead."""
        self._root = root
        self._open: list[int] = []
        self._enter(str(root), None, os.O_PATH | os.O_CLOEXEC)

    def walk(self, parts: Sequence[str]) -> os.stat_result:
        """What lies at the end. Raises: CannotRead, LeadsOutside."""
        ahead, links = deque(parts), 0
        while ahead:
            part = ahead.popleft()
            if part == "..":  # of a link; names of an address are plain
                if len(self._open) == 1:
                    raise _leads_out(parts)
                os.close(self._open.pop())
            elif part not in ("", "."):
                self._enter(part, self._open[-1], _LOOK)
                if stat.S_ISLNK(os.fstat(self._open[-1]).st_mode):
                    links += 1
                    if links > _MAX_LINKS:
                        raise CannotRead(f"{parts[-1]} is behind too many links")
                    ahead.extendleft(reversed(self._follow(part, parts)))
        return os.fstat(self._open[-1])

    def _enter(self, name: str, folder: int | None, flags: int) -> None:
        try:
            self._open.append(os.open(name, flags, dir_fd=folder))
        except OSError as error:
            shown = name if folder is not None else "the folder of imports"
            raise CannotRead(f"cannot open {shown}: {error.strerror}") from error

    def _follow(self, name: str, parts: Sequence[str]) -> list[str]:
        """Where the link leads that was just opened, from the folder that is open then. Raises: LeadsOutside."""
        os.close(self._open.pop())
        try:
            target = os.readlink(name, dir_fd=self._open[-1])
        except OSError as error:
            raise CannotRead(f"cannot read the link {name}: {error.strerror}") from error
        if not target.startswith("/"):
            return target.split("/")
        names, steps = self._root.absolute().parts[1:], target.split("/")[1:]
        if tuple(steps[: len(names)]) != names:
            raise _leads_out(parts)
        while len(self._open) > 1:
            os.close(self._open.pop())
        return steps[len(names) :]

    @property
    def here(self) -> Path:
        """What was reached, whatever has its name by now."""
        return Path(f"/proc/self/fd/{self._open[-1]}")

    def names(self) -> list[str]:
        """Of what lies in the folder that was reached. Raises: CannotRead."""
        try:
            return sorted(os.listdir(self.here))
        except OSError as error:
            raise CannotRead(f"cannot list that folder: {error.strerror}") from error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        while self._open:
            os.close(self._open.pop())


def _leads_out(parts: Sequence[str]) -> LeadsOutside:
    return LeadsOutside(
        f"{'/'.join(parts[-1:]) or 'it'} is behind a link that leads out of the folder of imports"
    )


class _OutsideFile:
    """A regular file below a root (a `ByteSource`), opened when it is first read; it must be the one that was found."""

    def __init__(self, root: Path, parts: Sequence[str], status: os.stat_result) -> None:
        self.name = parts[-1] if parts else root.name
        self.size = status.st_size
        self._root, self._parts = root, parts
        self._stamp = _stamp(status)
        self._file: DiskFile | None = None

    def read_into(self, buffer: Buffer, offset: int) -> None:
        """See `ByteSource.read_into`."""
        if self._file is None:
            with _Beneath(self._root) as beneath:
                if _stamp(beneath.walk(self._parts)) != self._stamp:
                    raise CannotRead(f"{self.name} was changed since it was found")
                self._file = DiskFile(beneath.here, self.name)
        self._file.read_into(buffer, offset)

    def changed(self) -> str | None:
        """See `ByteSource.changed`."""
        return None if self._file is None else self._file.changed()

    def close(self) -> None:
        """Close it; it may be read again."""
        if self._file is not None:
            self._file.close()
            self._file = None


def _stamp(status: os.stat_result) -> tuple[int, ...]:
    return status.st_mode, status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns
