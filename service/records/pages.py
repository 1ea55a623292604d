"""Pages of a list, by keys and not by numbers: what is added or removed meanwhile neither repeats nor hides an item."""

import base64
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Generic, TypeVar

from service.records.errors import BadCursor

T = TypeVar("T")
Key = Callable[
    [Any], Any
]  # of a JSON value; raises TypeError, ValueError or OverflowError for one that is no such key

_MAX_CURSOR = 500
_MAX_ORDINAL = 2**31 - 1
_ID = re.compile(r"[0-9a-z:-]{1,71}")


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """Some items of a list; `next` is the cursor of the page after it, None for the last one."""

    items: list[T]
    next: str | None


def cut(rows: Sequence[T], limit: int, cursor: Callable[[T], str]) -> Page[T]:
    """A page of the first `limit` rows; one row more says that there is another page."""
    items = list(rows[:limit])
    return Page(items, cursor(items[-1]) if len(rows) > limit else None)


def fetched(limit: int) -> int:
    """How many rows to ask for. Raises: ValueError for a limit below 1."""
    if limit < 1:
        raise ValueError("a page holds at least one item")
    return limit + 1


def encode(listing: str, *keys: Any) -> str:
    """A cursor of the list `listing` after the row with these keys; URL-safe."""
    text = json.dumps([listing, *keys], separators=(",", ":"))
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def decode(cursor: str | None, listing: str, *keys: Key) -> tuple[Any, ...] | None:
    """The keys of the row to go on after; None for no cursor. Raises: BadCursor."""
    if cursor is None:
        return None
    try:
        if len(cursor) > _MAX_CURSOR:
            raise ValueError(cursor)
        text = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
        found = json.loads(text)
        if not isinstance(found, list) or len(found) != 1 + len(keys) or found[0] != listing:
            raise ValueError(found)
        return tuple(key(value) for key, value in zip(keys, found[1:], strict=True))
    except (TypeError, ValueError, OverflowError, RecursionError):
        raise BadCursor from None


def ordinal(value: Any) -> int:
    """A place in a list. Raises: TypeError, ValueError."""
    if type(value) is not int:
        raise TypeError(value)
    if not 0 <= value <= _MAX_ORDINAL:
        raise ValueError(value)
    return value


def identifier(value: Any) -> str:
    """An id or a digest. Raises: ValueError."""
    if not isinstance(value, str) or not _ID.fullmatch(value):
        raise ValueError(value)
    return value


def metric(value: Any) -> float | None:
    """A number, or none. Raises: TypeError, ValueError, OverflowError."""
    if value is None:
        return None
    if type(value) not in (int, float):
        raise TypeError(value)
    number = float(value)
    if number != number:
        raise ValueError(value)
    return number


def moment(value: Any) -> datetime:
    """A moment with its time zone, as UTC. Raises: TypeError, ValueError, OverflowError."""
    found = datetime.fromisoformat(value)
    if found.tzinfo is None:
        raise ValueError(value)
    return found.astimezone(UTC)
