"""Closed registries: exact names, frozen at import, nothing parsed, folded or added later.

tensor-formats sections 1 and 10: a name is compared with the list, never split into components. A name that was
retired is never registered again.
"""

from collections.abc import Iterator
from typing import Generic, Protocol, TypeVar

from ninfer_core.errors import UnknownName
from ninfer_core.retired import retirement


class Named(Protocol):
    """Anything with its exact registry name."""

    @property
    def name(self) -> str: ...


Entry = TypeVar("Entry", bound=Named)


class Closed(Generic[Entry]):
    """An immutable list of named entries; a lookup either finds the exact name or raises `UnknownName`."""

    __slots__ = ("_entries", "what")

    def __init__(self, what: str, *entries: Entry) -> None:
        self.what = what
        self._entries = {entry.name: entry for entry in entries}
        if len(self._entries) != len(entries):
            raise ValueError(f"two entries of one name in the registry of {what}s")
        for name in self._entries:
            if (former := retirement(what, name)) is not None:
                raise ValueError(f"the registry of {what}s cannot hold a retired name: {former}")

    def __getitem__(self, name: str) -> Entry:
        """The entry called `name`. Raises: UnknownName."""
        try:
            return self._entries[name]
        except KeyError:
            former = retirement(self.what, name)
            reason = None if former is None else str(former)
            raise UnknownName(self.what, name, tuple(self._entries), reason) from None

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name in self._entries

    def __iter__(self) -> Iterator[Entry]:
        return iter(self._entries.values())

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def names(self) -> tuple[str, ...]:
        """Every registered name, in registry order."""
        return tuple(self._entries)
