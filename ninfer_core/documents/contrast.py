"""Where two JSON documents differ, member by member."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

from ninfer_core.findings import clip

_NOTHING: Final = object()
_MOST, _LONGEST, _BEFORE = (
    1 << 16,
    160,
    20,
)  # pieces of JSON text looked at; characters shown, and of these shared ones


@dataclass(frozen=True, slots=True)
class Difference:
    """One member: its path, and the JSON text of both values, bounded; None where a side does not have it."""

    path: str
    a: str | None
    b: str | None


def differences(path: str, a: Any, b: Any) -> Iterator[Difference]:
    """The innermost members that differ, in A's order and then B's; `a` and `b` are plain JSON values.

    An empty `path` is the document itself. Numbers are compared by value, as JSON has them: 1 is 1.0, and neither is true.
    """
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        for name in (*a, *(name for name in b if name not in a)):
            # Clipped on the way: a long name above many members is not written out for each.
            inner = clip(f"{path}.{name}") if path else clip(name)
            yield from differences(inner, a.get(name, _NOTHING), b.get(name, _NOTHING))
    elif isinstance(a, list) and isinstance(b, list) and len(a) == len(b):
        for index, (one, other) in enumerate(zip(a, b, strict=True)):
            yield from differences(f"{path}[{index}]", one, other)
    elif isinstance(a, bool) is not isinstance(b, bool) or a != b:
        yield Difference(path, *_shown(a, b))


def contradictions(path: str, claimed: Any, known: Mapping[str, Any]) -> Iterator[Difference]:
    """Members claimed otherwise than they are known (`a` and `b`); what only one side states contradicts nothing."""
    for difference in differences(path, claimed, known):
        if difference.a is not None and difference.b is not None:
            yield difference


def whole_difference(path: str, a: Any, b: Any) -> Difference:
    """Two values that differ, each as one; None stands for a side that has none."""
    return Difference(clip(path), *_shown(*(_NOTHING if value is None else value for value in (a, b))))


def _shown(a: Any, b: Any) -> tuple[str | None, str | None]:
    texts = [None if value is _NOTHING else _text(value) for value in (a, b)]
    known = [text for text in texts if text is not None]
    begin = 0
    if len(known) == 2 and max(map(len, known)) > _LONGEST:
        begin = max(0, _shared(*known) - _BEFORE)  # else two long texts would look alike
    one, other = (None if text is None else _window(text, begin) for text in texts)
    return one, other


def _shared(one: str, other: str) -> int:
    """How many characters both begin with."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((at for at, (a, b) in pairs if a != b), min(len(one), len(other)))


def _text(value: Any) -> str:
    # No more of it than could ever be shown: a value may be as large as the directory.
    return "".join(islice(json.JSONEncoder().iterencode(value), _MOST))


def _window(text: str, begin: int) -> str:
    end = begin + _LONGEST
    return ("…" if begin else "") + text[begin:end] + ("…" if len(text) > end else "")
