"""Harmless text, and numbers with units: everything about showing that needs no terminal."""

import unicodedata
from collections.abc import Sequence

UNKNOWN = "\u2013"
_UNITS = ("kB", "MB", "GB", "TB", "PB", "EB")
_SHOWN_CONTROL = frozenset(("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"))


def clean(text: object) -> str:
    """Text from outside with every character spelled out that could move a cursor, hide or reorder others."""
    string = str(text)
    if string.isascii() and string.isprintable():
        return string
    return "".join(_spelled(character) for character in string)


def _spelled(character: str) -> str:
    if unicodedata.category(character) not in _SHOWN_CONTROL:
        return character
    return character.encode("unicode_escape", "backslashreplace").decode("ascii")


def size(count: int | None) -> str:
    """Bytes for a person: `17.5 GB`; powers of a thousand, three digits."""
    if count is None:
        return UNKNOWN
    if count < 1000:
        return f"{count} B"
    value, unit = count / 1000, 0
    while value >= 999.5 and unit < len(_UNITS) - 1:
        value, unit = value / 1000, unit + 1
    digits = 0 if value >= 99.95 else 1 if value >= 9.995 else 2
    return f"{value:.{digits}f} {_UNITS[unit]}"


def number(count: int | None) -> str:
    """An integer with its thousands grouped."""
    return UNKNOWN if count is None else f"{count:,}"


def plural(count: int, noun: str) -> str:
    """`1 object`, `2 objects`."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def shape(dimensions: Sequence[int] | None) -> str:
    """A shape as it is written everywhere: `[7168, 5120]`."""
    return UNKNOWN if dimensions is None else str(list(dimensions))


def digest(value: str | None, whole: bool) -> str:
    """`sha256:9f2c…e1a7` for a person, all of it where a program may read."""
    if value is None:
        return UNKNOWN
    if whole:
        return value
    prefix, _, hexadecimal = value.rpartition(":")
    short = f"{hexadecimal[:8]}…{hexadecimal[-4:]}"
    return f"{prefix}:{short}" if prefix else short


def seconds(elapsed: float) -> str:
    """A duration: `0.42 s`, `41 s`, `3 min 12 s`."""
    if elapsed < 10:
        return f"{elapsed:.2f} s"
    if elapsed < 100:
        return f"{elapsed:.0f} s"
    return f"{int(elapsed) // 60} min {int(elapsed) % 60} s"


def shorten(text: str, width: int) -> str:
    """`text` in at most `width` characters; the middle goes, since names differ at their ends."""
    if len(text) <= width or width < 5:
        return text
    head = (width - 1) // 2
    return f"{text[:head]}…{text[len(text) - (width - 1 - head) :]}"
