"""The name that somebody may have meant, among many; bounded, whatever the names are."""

from collections.abc import Iterable
from difflib import SequenceMatcher
from heapq import nlargest
from itertools import islice, takewhile
from typing import Final

_LONGEST: Final = 256  # characters of a name that is looked at
_MOST: Final = 4096  # names that are looked at
_FEW: Final = 16  # names that are compared letter by letter
_ALIKE: Final = 0.8


def nearest(name: str, names: Iterable[str]) -> str | None:
    """The most similar of `names`, or None where none is much like `name`.

    Only the names that begin and end most like it are compared letter by letter.
    """
    if len(name) > _LONGEST:
        return None
    short = [other for other in islice(names, _MOST) if len(other) <= _LONGEST]
    first = nlargest(_FEW, short, key=lambda other: _ends(name, other))
    rated = [(SequenceMatcher(None, name, other, autojunk=False).ratio(), other) for other in first]
    best = max(rated, default=(0.0, ""), key=lambda rating: rating[0])
    return best[1] if best[0] >= _ALIKE else None


def _ends(name: str, other: str) -> int:
    """How many characters two names share at both of their ends together."""
    return _shared(zip(name, other, strict=False)) + _shared(
        zip(reversed(name), reversed(other), strict=False)
    )


def _shared(pairs: Iterable[tuple[str, str]]) -> int:
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
