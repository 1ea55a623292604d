"""Facts as a page says them: harmless clipped names, relative times, places, figures, durations."""

import json
import re
import unicodedata
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Final

from markupsafe import Markup, escape

from service.text import UNKNOWN, clean, number, plural, seconds, shape, shorten, size

NAME_WIDTH = 120
TEXT_WIDTH = 600
TITLE_WIDTH = 1_000
# Keys of `where` in the order in which a person looks for a place; the others follow by name.
_PLACE = ("row", "group", "lane", "column", "index", "byte", "offset", "member", "path", "rule", "role", "tensor", "file")  # fmt: skip
_BREAKS: Final = re.compile(r"([/.])(?=[^/.])")
_MINUTE, _HOUR, _DAY = 60, 3_600, 86_400
_AGES = ((_MINUTE, 1, "second"), (_HOUR, _MINUTE, "minute"), (_DAY, _HOUR, "hour"), (45 * _DAY, _DAY, "day"))


def clipped(text: object, width: int = TEXT_WIDTH) -> str:
    """Text from outside, harmless and at most `width` characters: its middle goes, since names differ at their ends.

    It is cut before it is cleaned: a name may be a megabyte long, and spelling characters out makes it longer.
    """
    return shorten(_flat(clean(shorten(str(text), width))), width)


def _flat(text: str) -> str:
    # Marks set above one another climb out of their line. Two stay, since Vietnamese has two; the others are spelled.
    if text.isascii():
        return text
    parts, pile = [], 0
    for character in text:
        pile = pile + 1 if unicodedata.category(character) in ("Mn", "Me") else 0
        parts.append(character if pile <= 2 else f"\\u{ord(character):04x}")
    return "".join(parts)


def name(text: object) -> Markup:
    """The name of an object, a file, a model, as markup: it may break after a slash or a dot, and rather there."""
    return Markup(_BREAKS.sub(r"\1<wbr>", str(escape(clipped(text, NAME_WIDTH)))))  # noqa: S704  escaped just before


def plain_name(text: object) -> str:
    """The same as text."""
    return clipped(text, NAME_WIDTH)


def title(text: object) -> str:
    """What a clipped text says in its tooltip; still not a megabyte."""
    return clipped(text, TITLE_WIDTH)


def short_digest(value: str) -> str:
    """`9f2c41d0…e1a7`, whatever the prefix."""
    hexadecimal = value.rpartition(":")[2]
    return f"{hexadecimal[:8]}…{hexadecimal[-4:]}" if len(hexadecimal) > 16 else hexadecimal


def exact(moment: datetime) -> str:
    """`2026-11-30 12:45:07 UTC`."""
    return f"{moment:%Y-%m-%d %H:%M:%S} UTC"


def ago(moment: datetime, now: datetime) -> str:
    """`just now`, `5 minutes ago`, `3 days ago`, and a date when that says more."""
    age = (now - moment).total_seconds()
    if age < 10:
        return "just now"
    for below, unit, noun in _AGES:
        if age < below:
            return f"{plural(int(age // unit), noun)} ago"
    return f"{moment.day} {moment:%B %Y}"


def until(moment: datetime, now: datetime) -> str:
    """`in 5 minutes`, `in 3 days`, and a date when that says more; what is over is `now`."""
    rest = (moment - now).total_seconds()
    if rest < 1:
        return "now"
    for below, unit, noun in _AGES:
        if rest < below:
            return f"in {plural(int(rest // unit), noun)}"
    return f"{moment.day} {moment:%B %Y}"


def duration(begin: datetime | None, end: datetime | None) -> str | None:
    """How long something took; None when it has not begun or not ended."""
    return None if begin is None or end is None else seconds(max(0.0, (end - begin).total_seconds()))


def place(where: Mapping[str, Any], message: str = "") -> str:
    """`row 4,096, group 17, lane 5`, without what the message says already."""
    keys = [key for key in _PLACE if key in where] + sorted(key for key in where if key not in _PLACE)
    entries = [f"{clipped(key, 40)} {_value(where[key])}" for key in keys if not _said(where[key], message)]
    return ", ".join(entry for entry in entries if entry not in message)


def _said(value: object, message: str) -> bool:
    """Whether a message lists all of these names itself."""
    return (
        isinstance(value, list)
        and bool(value)
        and all(isinstance(one, str) and one in message for one in value)
    )


def _value(value: object) -> str:
    if isinstance(value, str):
        return clipped(value, NAME_WIDTH)
    if isinstance(value, int) and not isinstance(value, bool):
        return number(value)
    return clipped(json.dumps(value, default=str), NAME_WIDTH)


def figure(value: float | None, spec: str) -> str:
    """A measured number, or a dash where it is not defined."""
    if value is None or value == 0:
        return UNKNOWN if value is None else "0"
    return format(value, spec).replace("-", "\N{MINUS SIGN}", 1)


def share(part: int, whole: int) -> str:
    """A share in per cent that says 100 % only of all, and 0 % only of nothing; of nothing at all there is none."""
    if whole == 0:
        return UNKNOWN
    if part >= whole:
        return "100 %"
    percent = 100 * part / whole
    if percent < 0.1:
        return "under 0.1 %" if part else "0 %"
    return "over 99.9 %" if percent >= 99.95 else f"{percent:.1f} %"


def left(done: int, whole: int, elapsed: timedelta) -> str | None:
    """`about 2 min left`, once enough has been done to tell."""
    spent = elapsed.total_seconds()
    if spent < 3 or whole <= 0 or done < whole // 50 or done >= whole or done <= 0:
        return None
    rest = spent * (whole - done) / done
    if rest < _MINUTE:
        return f"about {max(1, round(rest))} s left"
    return (
        f"about {round(rest / _MINUTE):,} min left"
        if rest < 2 * _HOUR
        else f"about {round(rest / _HOUR):,} h left"
    )


__all__ = [
    "UNKNOWN",
    "ago",
    "clipped",
    "duration",
    "exact",
    "figure",
    "left",
    "name",
    "number",
    "place",
    "plain_name",
    "plural",
    "shape",
    "share",
    "short_digest",
    "size",
    "title",
    "until",
]
