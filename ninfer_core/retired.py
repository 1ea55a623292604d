"""Names that a registry once held: refused for ever, so that no file is ever read under another meaning.

They stand in `registry.lock.json`, beside the digests of what is registered today.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from typing import Any

from ninfer_core.locked import read_lock


@dataclass(frozen=True, slots=True)
class Retired:
    """An entry that is no more: `registry` and `name` are its own, `spellings` what files called it beside that name.

    `digest` is the meaning that it had, `date` the day of its retirement, year first.
    """

    registry: str
    name: str
    spellings: tuple[str, ...]
    digest: str
    date: str
    reason: str

    def __str__(self) -> str:
        return (
            f"{self.name} was retired on {self.date} ({self.reason}), and a retired name is never used again"
        )


@cache
def retired_names() -> tuple[Retired, ...]:
    """Every retired entry of every registry."""
    return read_retired(read_lock())


def read_retired(lock: dict[str, Any]) -> tuple[Retired, ...]:
    """The retired entries of a lock."""
    return tuple(Retired(**{**one, "spellings": tuple(one["spellings"])}) for one in lock["retired"])


def retirement(registry: str, name: str) -> Retired | None:
    """What became of a name, or of a spelling, that `registry` once held; None when it never did or still does."""
    return find_retired(retired_names(), registry, name)


def find_retired(retired: Iterable[Retired], registry: str, name: str) -> Retired | None:
    """The entry of `registry` among `retired` that a name, or a spelling, belongs to."""
    own = (one for one in retired if one.registry == registry)
    return next((one for one in own if name in (one.name, *one.spellings)), None)
