"""The manifest of the vectors: which files of cases one version has, with size and digest of each."""

import hashlib
from dataclasses import dataclass
from typing import Any, Final

from ninfer_core.selfcheck.vectors.reading import BrokenVectors, count, read_document, text

MANIFEST: Final = "manifest.json"


@dataclass(frozen=True, slots=True)
class ManifestFile:
    """One file of cases, as its manifest knows it."""

    name: str
    bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Manifest:
    """Every file of cases in one version of the vectors; `digest` is that of the manifest and so of all of them."""

    version: int
    files: tuple[ManifestFile, ...]
    digest: str


def read_manifest(data: bytes) -> Manifest:
    """The manifest, its members closed. Raises: BrokenVectors."""
    document = read_document(data, MANIFEST)
    try:
        if set(document) != {"schema", "version", "specification", "files"}:
            raise BrokenVectors(f"{MANIFEST} has other members than its schema")
        if document["schema"] != "ninfer-gate/vectors/1":
            raise BrokenVectors(
                f"{MANIFEST} is of schema {document['schema']}, which this version does not read"
            )
        listed = tuple(_listed(entry) for entry in document["files"])
        if len({entry.name for entry in listed}) != len(listed) or not listed:
            raise ValueError("it names no file, or one of them twice")
        return Manifest(count(document["version"]), listed, f"sha256:{hashlib.sha256(data).hexdigest()}")
    except (KeyError, TypeError, ValueError) as error:
        raise BrokenVectors(f"{MANIFEST}: {error}") from error


def _listed(entry: dict[str, Any]) -> ManifestFile:
    if set(entry) != {"name", "bytes", "sha256"}:
        raise ValueError("a file has other members than its schema")
    return ManifestFile(text(entry["name"]), count(entry["bytes"]), text(entry["sha256"]))
