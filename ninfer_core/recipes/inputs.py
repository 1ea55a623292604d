"""Inputs: files that belong to no checkpoint, plain ones and rankings of token ids."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Final

from ninfer_core.documents.fields import Faults, Fields, Path
from ninfer_core.io import is_plain_name
from ninfer_core.strict_json import Json

FILE: Final = "file"
RANKING: Final = "i64-le-rows"
COUNT_BYTES: Final = 8
_ROW_MEMBERS: Final = ("row_width", "rows", "used_row")
_NOTES: Final = ("top_ids", "top_ids_meaning", "note")


@dataclass(frozen=True, slots=True)
class Pin:
    """What a file must be; None where the recipe leaves it open. `sha256` is bare hex."""

    bytes: int | None
    sha256: str | None


NO_PIN: Final = Pin(None, None)


@dataclass(frozen=True, slots=True)
class Ranking:
    """Rows of `row_width` little-endian I64 counts, of which only `used_row` counts.

    `top_ids` are the first ids that this ranking gives, known without the file.
    """

    row_width: int
    rows: int
    used_row: int
    top_ids: tuple[int, ...] | None

    @property
    def bytes(self) -> int:
        """Of the whole file."""
        return self.row_width * self.rows * COUNT_BYTES


@dataclass(frozen=True, slots=True)
class Input:
    """A file that belongs to no checkpoint; `file` is the name that the document gives it."""

    name: str
    pin: Pin
    file: str | None = None
    ranking: Ranking | None = None


@dataclass(slots=True)
class Known:
    """What the trees of a document may name; `vectors` are the lengths of I32 vectors by object.

    A length is None where another fault keeps it from being known; while `incomplete`, more vectors may exist.
    """

    roles: Collection[str]
    inputs: Mapping[str, Input | None]
    resources: Collection[str]
    vectors: dict[str, int | None] = field(default_factory=dict)
    incomplete: bool = False


def read_pin(fields: Fields) -> Pin:
    """The members `bytes` and `sha256`."""
    return Pin(fields.integer("bytes", 1), fields.sha256("sha256"))


def plain_name(fields: Fields, member: str) -> str | None:
    """A member that names a file of a folder."""
    name = fields.text(member)
    if name is not None and not is_plain_name(name):
        fields.wrong_value(member, "a plain file name")
        return None
    return name


def read_input(faults: Faults, name: str, value: Json) -> Input | None:
    """The input `name`, or None after findings."""
    path: Path = ("inputs", name)
    kind = value.get("kind") if isinstance(value, dict) else None
    rows, notes = (_ROW_MEMBERS, _NOTES) if kind == RANKING else ((), ())
    fields = Fields(faults, value, path, ("kind", *rows), ("file", "bytes", "sha256", *notes))
    chosen = fields.choice("kind", FILE, RANKING)
    pin, file = read_pin(fields), plain_name(fields, "file")
    if chosen is None:
        return None
    if chosen == FILE:
        return Input(name, pin, file)
    ranking = _ranking(fields)
    if ranking is None:
        return None
    if pin.bytes is not None and pin.bytes != ranking.bytes:
        fields.wrong_value("bytes", f"{ranking.bytes}, the size of its rows")
        return None
    return Input(name, pin, file, ranking)


def _ranking(fields: Fields) -> Ranking | None:
    width, rows = fields.integer("row_width", 1), fields.integer("rows", 1)
    used, top = fields.integer("used_row"), fields.integers("top_ids")
    for member in ("top_ids_meaning", "note"):
        fields.text(member)
    if used is not None and rows is not None and used >= rows:
        fields.wrong_value("used_row", f"one of {rows} rows")
        return None
    if top is not None and width is not None and (len(set(top)) != len(top) or max(top, default=0) >= width):
        fields.wrong_value("top_ids", f"different ids below {width}")
        return None
    if width is None or rows is None or used is None:
        return None
    return Ranking(width, rows, used, top)
