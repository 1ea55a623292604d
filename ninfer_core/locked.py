"""What `registry.lock.json` says: the digest of every meaning, as locked. Reading it needs none of the registries."""

import json
from functools import cache
from pathlib import Path
from typing import Any, Final

LOCK: Final = Path(__file__).with_name("registry.lock.json")


def read_lock(path: Path = LOCK) -> dict[str, Any]:
    """The lock as JSON values."""
    lock: dict[str, Any] = json.loads(path.read_bytes())
    return lock


@cache
def _digests() -> dict[tuple[str, str], str]:
    return {(one["registry"], one["name"]): one["digest"] for one in read_lock()["entries"]}


def locked_digest(registry: str, name: str) -> str | None:
    """The digest of a meaning in the lock; None for a name that is not locked."""
    return _digests().get((registry, name))
