"""Canonical forms: a parsed document as plain JSON for RFC 8785, and the hash of the lines that one expands to."""

import hashlib
from collections.abc import Iterable

from ninfer_core import strict_json
from ninfer_core.documents.fields import MAX_INTEGER, Faults, Path
from ninfer_core.strict_json import Huge, Json, Members, Real


def plain(value: Json, path: Path, faults: Faults) -> Json:
    """The document with `Real` as a float and only integers that a float holds exactly; others are findings."""
    if isinstance(value, Members):
        return {name: plain(member, (*path, name), faults) for name, member in value.items()}
    if isinstance(value, list):
        return [plain(member, (*path, index), faults) for index, member in enumerate(value)]
    if isinstance(value, Real):
        return value.value
    if isinstance(value, Huge) or (type(value) is int and abs(value) > MAX_INTEGER):
        shown = strict_json.show(value)
        message = f"{shown} has no exact canonical form."
        faults.add("integer_not_exact", path, message, f"at most {MAX_INTEGER}", shown)
        return 0
    return value


def lines_sha256(lines: Iterable[str]) -> str:
    """Bare hex of the lines, each ended by a line feed, in UTF-8."""
    digest = hashlib.sha256()
    for line in lines:
        digest.update(line.encode() + b"\n")
    return digest.hexdigest()


def sorted_sha256(lines: Iterable[str]) -> str:
    """The same of lines in the order of their bytes."""
    return lines_sha256(sorted(lines, key=str.encode))
