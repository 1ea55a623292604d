"""`python -m ninfer_core.registry_lock`: what the registries mean today against what was locked.

The lock says, of each entry, the digest of its meaning, and which names are retired. `--write` adds entries that are
new, and nothing else: a locked digest is never replaced. Who means something else needs another name.
"""

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from ninfer_core.governance.entries import Meaning, meanings
from ninfer_core.locked import LOCK, read_lock
from ninfer_core.retired import find_retired, read_retired

SCHEMA: Final = "ninfer-gate/registry-lock/1"


@dataclass(frozen=True, slots=True)
class Differences:
    """What sets the registries apart from a lock, each entry as text; `new` alone may be written."""

    new: tuple[Meaning, ...]
    changed: tuple[str, ...]
    gone: tuple[str, ...]
    reused: tuple[str, ...]

    @property
    def refused(self) -> tuple[str, ...]:
        """What no command mends: the registries have to change."""
        return (*self.changed, *self.gone, *self.reused)


def compare(lock: dict[str, Any], held: Sequence[Meaning]) -> Differences:
    """The differences between a lock and the meanings that are registered."""
    locked = {(one["registry"], one["name"]): one for one in lock["entries"]}
    retired = read_retired(lock)
    new, changed, reused = [], [], []
    for meaning in held:
        entry = locked.get((meaning.registry, meaning.name))
        former = find_retired(retired, meaning.registry, meaning.name)
        if former is not None:
            reused.append(f"{meaning.registry} {former}")
        elif entry is None:
            new.append(meaning)
        elif (entry["version"], entry["digest"]) != (meaning.version, meaning.digest):
            changed.append(
                f"{meaning.registry} {meaning.name}: version {entry['version']} is locked as {entry['digest']}, "
                f"version {meaning.version} now means {meaning.digest}"
            )
    names = {(meaning.registry, meaning.name) for meaning in held}
    gone = [
        f"{registry} {name} is locked, and neither registered nor retired"
        for registry, name in locked
        if (registry, name) not in names
    ]
    return Differences(tuple(new), tuple(changed), tuple(gone), tuple(reused))


def with_new(lock: dict[str, Any], new: Sequence[Meaning]) -> dict[str, Any]:
    """The lock with entries added; what it holds stays as it is."""
    added = [
        {
            "registry": meaning.registry,
            "name": meaning.name,
            "version": meaning.version,
            "digest": meaning.digest,
        }
        for meaning in new
    ]
    return {**lock, "entries": [*lock["entries"], *added]}


def main(arguments: Sequence[str], path: Path = LOCK) -> int:
    """0 when the lock and the registries agree, or do so after `--write`; 1 when they differ; 2 for other arguments."""
    if [*arguments] not in ([], ["--write"]):
        print("usage: python -m ninfer_core.registry_lock [--write]", file=sys.stderr)
        return 2
    lock = read_lock(path)
    found = compare(lock, meanings())
    for line in found.refused:
        print(line)
    for meaning in found.new:
        print(f"{meaning.registry} {meaning.name}: new, {meaning.digest}")
    if found.new and arguments:
        path.write_text(
            json.dumps(with_new(lock, found.new), indent=2, ensure_ascii=False) + "\n", encoding="utf-8"
        )
    return 1 if found.refused or (found.new and not arguments) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
