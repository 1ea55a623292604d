"""What a token may do. `read` is part of every other scope, and `admin` has all of them."""

from collections.abc import Iterable
from typing import Final, Literal

Scope = Literal["read", "submit", "gate", "admin"]

READ: Final[Scope] = "read"  # see what the project holds
SUBMIT: Final[Scope] = "submit"  # push content, start and cancel jobs
GATE: Final[Scope] = "gate"  # decide what is released
ADMIN: Final[Scope] = "admin"  # tokens, trusts, bounds and the log of the project

SCOPES: Final[tuple[Scope, ...]] = (READ, SUBMIT, GATE, ADMIN)


def widened(given: Iterable[str]) -> frozenset[str]:
    """All that these scopes allow. Raises: ValueError for a word that is none, and for no word at all."""
    words = frozenset(given)
    unknown = words - set(SCOPES)
    if unknown or not words:
        raise ValueError(f"scopes are {', '.join(SCOPES)}; got {', '.join(sorted(unknown)) or 'none'}")
    return frozenset(SCOPES) if ADMIN in words else words | {READ}


def spelled(scopes: Iterable[str]) -> str:
    """As a row keeps them, in the order of `SCOPES`."""
    words = frozenset(scopes)
    return " ".join(scope for scope in SCOPES if scope in words)


def widest(scopes: Iterable[str]) -> tuple[Scope, ...]:
    """The shortest list that allows the same: without what another of them allows anyway."""
    words = frozenset(scopes)
    if ADMIN in words:
        return (ADMIN,)
    return tuple(scope for scope in SCOPES if scope in words and (scope != READ or words == {READ}))
