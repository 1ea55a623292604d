"""The known answers that come with the package: what was asked of a kernel, and the only right answer.

Data in JSON beside this module, one file for each kind and format; ORIGIN.md says who made and who checked them.
Hexadecimal strings are bytes as they lie in memory: words little-endian, matrices row after row. `selfcheck.archive`
publishes the same files for implementations in any language.
"""

import hashlib
import json
from functools import cache
from importlib.resources import files
from typing import Final

from ninfer_core.formats import NumericFormat
from ninfer_core.selfcheck.vectors.manifest import MANIFEST, read_manifest
from ninfer_core.selfcheck.vectors.reading import (
    BrokenVectors,
    Case,
    CheckCase,
    EncodeCase,
    ReconstructCase,
    interpreted,
)

VERSION: Final = 1  # of the set: one more with every change of a vector
ORIGIN: Final = "ORIGIN.md"
SCHEMA: Final = "schema.json"


def encode_cases(fmt: NumericFormat) -> tuple[EncodeCase, ...]:
    """The packaged encodings of a format; none for one that has no encoder profile. Raises: BrokenVectors."""
    return tuple(case for case in cases("encode", fmt) if isinstance(case, EncodeCase))


def reconstruct_cases(fmt: NumericFormat) -> tuple[ReconstructCase, ...]:
    """The packaged reconstructions of a format. Raises: BrokenVectors."""
    return tuple(case for case in cases("reconstruct", fmt) if isinstance(case, ReconstructCase))


def check_cases(fmt: NumericFormat) -> tuple[CheckCase, ...]:
    """The packaged payloads of a format that are legal or not. Raises: BrokenVectors."""
    return tuple(case for case in cases("check", fmt) if isinstance(case, CheckCase))


@cache
def cases(kind: str, fmt: NumericFormat) -> tuple[Case, ...]:
    """Every packaged case of one kind and format, held to the digest in the manifest. Raises: BrokenVectors."""
    name = file_name(kind, fmt)
    stated = _stated().get(name)
    if stated is None:
        return ()
    data = packaged(name)
    if hashlib.sha256(data).hexdigest() != stated:
        raise BrokenVectors(
            f"{name} of this installation is not the file that its manifest names; install again"
        )
    return interpreted(json.loads(data), name)  # the digest holds, so there is nothing left to distrust


def file_name(kind: str, fmt: NumericFormat) -> str:
    """Where the cases of one kind and format lie."""
    return f"{kind}.{fmt.name}.json"


def packaged(name: str) -> bytes:
    """A file of this package's vectors. Raises: BrokenVectors when it is missing."""
    try:
        return (files(__package__) / name).read_bytes()
    except OSError as error:
        raise BrokenVectors(f"{name} is missing from this installation: {error}") from error


@cache
def _stated() -> dict[str, str]:
    return {entry.name: entry.sha256 for entry in read_manifest(packaged(MANIFEST)).files}


__all__ = [
    "MANIFEST",
    "ORIGIN",
    "SCHEMA",
    "VERSION",
    "BrokenVectors",
    "CheckCase",
    "EncodeCase",
    "ReconstructCase",
    "cases",
    "check_cases",
    "encode_cases",
    "packaged",
    "reconstruct_cases",
]
