"""The vectors as one file for implementations in any language: written the same everywhere, and held to its digests.

A zip whose members are stored uncompressed, with fixed times and modes and in the order of their names, so that the same
version is the same bytes on every machine. `SHA256SUMS` is for `sha256sum -c`.
"""

import hashlib
import zipfile
import zlib
from collections import Counter
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import Any, Final

from ninfer_core.containers.publish import NewFile, publish, require_free
from ninfer_core.errors import CannotRead
from ninfer_core.selfcheck.vectors import MANIFEST, ORIGIN, SCHEMA, VERSION, BrokenVectors, packaged
from ninfer_core.selfcheck.vectors.manifest import Manifest, read_manifest
from ninfer_core.selfcheck.vectors.reading import read_cases

FOLDER: Final = f"ninfer-gate-vectors-{VERSION}"
SUMS: Final = "SHA256SUMS"
LARGEST: Final = 64 << 20  # bytes of an archive that is looked at: many times what any version needs
MEMBERS: Final = 200  # of an archive that is looked at: many times as many as well
_UNREADABLE: Final = (
    zipfile.BadZipFile,
    zlib.error,
    NotImplementedError,
    RuntimeError,
    EOFError,
    OSError,
    ValueError,
)
_EPOCH: Final = (1980, 1, 1, 0, 0, 0)


@dataclass(frozen=True, slots=True)
class Exported:
    """The archive that was written."""

    path: Path
    bytes: int
    sha256: str
    manifest: Manifest
    files: int


@dataclass(frozen=True, slots=True)
class Verified:
    """What was found of an archive; `same` says whether its cases are those of this installation, None of another version."""

    name: str
    manifest: Manifest | None
    cases: dict[str, int]  # by kind
    same: bool | None
    problems: tuple[str, ...] = field(default=())

    @property
    def sound(self) -> bool:
        """Whether nothing is wrong with it."""
        return not self.problems

    def as_json(self) -> dict[str, Any]:
        """The members that a document tells of it."""
        return {
            "name": self.name,
            "version": None if self.manifest is None else self.manifest.version,
            "digest": None if self.manifest is None else self.manifest.digest,
            "cases": self.cases,
            "same_as_installed": self.same,
            "problems": list(self.problems),
        }


def export(out: Path) -> Exported:
    """Write the packaged vectors to `out`, which must not exist. Raises: NameTaken, CannotWrite, BrokenVectors."""
    require_free([out])
    files = installed()
    found = verify_files("this installation", files)
    if found.manifest is None or not found.sound:
        raise BrokenVectors(f"nothing was written: {found.problems[0]}")
    data = archived(files)
    new = NewFile(out, len(data))
    try:
        new.write(data, 0)
        publish([new])
    finally:
        new.close()
    return Exported(out, len(data), hashlib.sha256(data).hexdigest(), found.manifest, len(files))


def installed() -> dict[str, bytes]:
    """Every file of an archive of this installation, by name. Raises: BrokenVectors."""
    manifest = packaged(MANIFEST)
    names = [MANIFEST, ORIGIN, SCHEMA, *(entry.name for entry in read_manifest(manifest).files)]
    files = {name: packaged(name) for name in sorted(names)}
    sums = "".join(f"{hashlib.sha256(data).hexdigest()}  {name}\n" for name, data in files.items())
    return files | {SUMS: sums.encode()}


def archived(files: dict[str, bytes]) -> bytes:
    """The bytes of the archive that holds `files`."""
    buffer = BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for name in sorted(files):
            member = zipfile.ZipInfo(f"{FOLDER}/{name}", _EPOCH)
            member.create_system = 3  # or the bytes would depend on the system that wrote them
            member.external_attr = 0o100644 << 16
            archive.writestr(member, files[name])
    return buffer.getvalue()


def verify(path: Path | None) -> Verified:
    """What is wrong with an archive, or with the installed vectors. Raises: CannotRead, BrokenVectors."""
    if path is None:
        return verify_files("this installation", installed())
    try:
        if path.is_dir():
            raise CannotRead(f"{path} is a folder; name the archive, or run `sha256sum -c {SUMS}` in it")
        if path.stat().st_size > LARGEST:
            return Verified(str(path), None, {}, None, (f"it has more than {LARGEST:,} bytes",))
        data = path.read_bytes()
    except OSError as error:
        raise CannotRead(f"cannot read {path}: {error.strerror}") from error
    try:
        return verify_files(str(path), _unpacked(data))
    except _UNREADABLE as error:
        return Verified(str(path), None, {}, None, (f"it is no archive that can be read: {error}",))


def _unpacked(data: bytes) -> dict[str, bytes]:
    files: dict[str, bytes] = {}
    folders: set[str] = set()
    with zipfile.ZipFile(BytesIO(data)) as archive:
        if len(archive.infolist()) > MEMBERS:
            raise ValueError(f"it has more than {MEMBERS} members")
        if sum(member.file_size for member in archive.infolist()) > LARGEST:
            raise ValueError(f"its members have more than {LARGEST:,} bytes")
        for member in archive.infolist():
            folder, _, name = member.filename.partition("/")
            if member.is_dir() or not folder or not name or "/" in name or name in files:
                raise ValueError(f"member {member.filename!r} has no place in it")
            if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                raise ValueError(f"member {member.filename!r} is neither stored nor deflated")
            folders.add(folder)
            if len(folders) > 1:
                raise ValueError(f"its members lie in more than one folder: {', '.join(sorted(folders))}")
            with archive.open(member) as stream:
                files[name] = stream.read(member.file_size)
    return files


def verify_files(name: str, files: dict[str, bytes]) -> Verified:
    """Digests, closed schema and sizes of the files of an archive, and whether they are the installed ones."""
    problems = _unlike_sums(files)
    if MANIFEST not in files:
        return Verified(name, None, {}, None, (*problems, f"{MANIFEST} is missing"))
    try:
        manifest = read_manifest(files[MANIFEST])
    except BrokenVectors as error:
        return Verified(name, None, {}, None, (*problems, str(error)))
    cases: Counter[str] = Counter()
    for entry in manifest.files:
        data = files.get(entry.name)
        if data is None:
            problems.append(f"{entry.name} is missing")
        elif len(data) != entry.bytes or hashlib.sha256(data).hexdigest() != entry.sha256:
            problems.append(f"{entry.name} is not the file that {MANIFEST} names")
        else:
            try:
                cases[entry.name.partition(".")[0]] += len(read_cases(data, entry.name))
            except BrokenVectors as error:
                problems.append(str(error))
    listed = {MANIFEST, ORIGIN, SCHEMA, SUMS, *(entry.name for entry in manifest.files)}
    problems += [f"{extra} is no part of it" for extra in sorted(files.keys() - listed)]
    same = files[MANIFEST] == packaged(MANIFEST) if manifest.version == VERSION else None
    if same is False:
        problems.append(
            f"it says that it is version {VERSION}, but its cases are not those of this installation"
        )
    elif same:  # the manifest has no digest of these two
        others = [other for other in (ORIGIN, SCHEMA) if files.get(other) != packaged(other)]
        problems += [f"{other} is not that of version {VERSION}" for other in others]
    return Verified(name, manifest, dict(cases), same, tuple(problems))


def _unlike_sums(files: dict[str, bytes]) -> list[str]:
    """What `sha256sum -c` would complain about, and files that it would not look at."""
    if SUMS not in files:
        return [f"{SUMS} is missing"]
    stated = {}
    for line in files[SUMS].decode("utf-8", "replace").splitlines():
        digest, _, name = line.partition("  ")
        stated[name] = digest
    problems = [f"{name} is missing" for name in sorted(stated.keys() - files.keys())]
    for name in sorted(files.keys() - {SUMS}):
        if hashlib.sha256(files[name]).hexdigest() != stated.get(name):
            problems.append(f"{name} is not the file that {SUMS} names")
    return problems
