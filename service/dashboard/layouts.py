"""Stored forms as drawings of cells: the parts of a value as a bar, one block byte by byte, one word bit by bit.

The drawings are tables, so that what they show can be read aloud, searched and copied; colours repeat what cells say.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from service.dashboard.format import number, plural, share, size

Box = Mapping[str, Any]  # `ninfer_core.schemes.catalogue.facts.box_json`

TINTS: Final = 8
_BYTES, _BITS = 16, 32  # cells of a row
_MOST_CELLS: Final = 512  # of a drawn element, in bytes or bits
_MOST_REPEATS: Final = 16  # of a structure inside of one, drawn one by one
_CHARACTERS: Final = 128  # in a row of cells, about, in the width that they take at least
_TELLING: Final = 8
_NARROWEST: Final = 1.5  # per cent of the bar: a part that exists can be seen


@dataclass(frozen=True, slots=True)
class Cell:
    """Some bytes or bits of one field beside one another; a cell that goes on has no label of its own."""

    span: int
    label: str
    says: str
    tint: int
    room: int  # characters that are seen of the label, about

    @property
    def fits(self) -> bool:
        """Whether enough is seen of the label to tell it from others."""
        return min(len(self.label), _TELLING) <= self.room


@dataclass(frozen=True, slots=True)
class Row:
    """A row of cells from a place on; `more` rows of the same field are left out after it."""

    place: str
    cells: tuple[Cell, ...]
    more: int = 0


@dataclass(frozen=True, slots=True)
class Grid:
    """A drawn element: its columns by name, and its rows."""

    caption: str
    columns: tuple[str, ...]
    rows: tuple[Row, ...]

    @property
    def width(self) -> int:
        """Cells of a row."""
        return len(self.columns)


@dataclass(frozen=True, slots=True)
class Field:
    """A line of the table beside the drawings; a constant has no place."""

    depth: int
    name: str
    what: str
    place: str
    takes: str
    tint: int | None


@dataclass(frozen=True, slots=True)
class Share:
    """A part of the bar; `x` and `width` are per cent of it, as drawn."""

    name: str
    says: str
    tint: int
    x: float
    width: float


@dataclass(frozen=True, slots=True)
class Drawn:
    """Everything that is drawn of one form."""

    shares: tuple[Share, ...]
    element: Grid | None
    word: Grid | None
    fields: tuple[Field, ...]


@dataclass(frozen=True, slots=True)
class _Piece:
    name: str
    offset: int
    bits: int
    tint: int


def drawn(layout: Box, word: Box | None) -> Drawn:
    """The drawings of a form's struct type and of one word of its codes."""
    repeated = _repeated(layout)
    tints = {} if repeated is None else _tints(repeated)
    element = None if repeated is None else _element(repeated, tints)
    return Drawn(_shares(layout), element, _word(word), tuple(_fields(layout, repeated, tints)))


def _filled(box: Box) -> list[Box]:
    return [inner for inner in box["inside"] if not inner["constant"] and _total(inner)]


def _times(box: Box) -> int:
    return math.prod(box["counts"])


def _total(box: Box) -> int:
    bits: int = box["bits"]
    return bits * _times(box)


def _shares(layout: Box) -> tuple[Share, ...]:
    """The fields of a value that is one structure, as a bar."""
    fields = _filled(layout)
    if layout["counts"] or len(fields) < 2:
        return ()
    total = _total(layout)
    widths = [max(_NARROWEST, 100 * _total(one) / total) for one in fields]
    stretch = 100 / sum(widths)
    shares, x = [], 0.0
    for index, (one, width) in enumerate(zip(fields, widths, strict=True)):
        says = f"{one['name']}: {_amount(_total(one))}, {share(_total(one), total)}"
        shares.append(Share(one["name"], says, index % TINTS, round(x, 3), round(width * stretch, 3)))
        x += width * stretch
    return tuple(shares)


def _repeated(layout: Box) -> Box | None:
    """What is drawn of a value: an element of the whole, of its first field that is made of others, or a small whole."""
    if layout["counts"]:
        return layout if layout["inside"] else None
    filled = _filled(layout)
    inner = _first_repeated(layout)
    if inner is not None and (len(filled) == 1 or _total(layout) > 8 * _MOST_CELLS):
        return inner
    return layout if filled and _total(layout) <= 8 * _MOST_CELLS else None


def _first_repeated(box: Box) -> Box | None:
    for one in _filled(box):
        found = one if one["counts"] and one["inside"] else _first_repeated(one)
        if found is not None:
            return found
    return None


def _tints(box: Box) -> dict[str, int]:
    """The colour of each field of an element by its path, arrays of structures counted once."""
    return {path: index % TINTS for index, path in enumerate(_paths(box, ""))}


def _paths(box: Box, prefix: str) -> Iterator[str]:
    for inner in _filled(box):
        path = f"{prefix}{inner['name']}"
        if inner["inside"]:
            yield from _paths(inner, f"{path}.")
        else:
            yield path


def _element(box: Box, tints: Mapping[str, int]) -> Grid | None:
    pieces = list(_pieces(box, "", "", 0, tints))
    whole = all(piece.offset % 8 == 0 and piece.bits % 8 == 0 for piece in pieces)
    unit = 8 if whole else 1
    cells = box["bits"] // unit
    if not 0 < cells <= _MOST_CELLS:
        return None
    times = f"one of {number(_times(box))}" if box["counts"] else "the whole value"
    name = f"{box['name']}, {_amount(box['bits'])}, {times}"
    how = "byte by byte" if whole else "bit by bit, the lowest first"
    return _grid(f"{name}: {how}", pieces, unit, min(_BYTES if whole else _BITS, cells))


def _pieces(box: Box, named: str, prefix: str, offset: int, tints: Mapping[str, int]) -> Iterator[_Piece]:
    """What an element holds, field after field; `named` shows places in arrays of structures, `prefix` does not."""
    for inner in _filled(box):
        name, path = f"{named}{inner['name']}", f"{prefix}{inner['name']}"
        at, times = offset + inner["offset_bits"], _times(inner)
        if not inner["inside"]:
            yield _Piece(name, at, _total(inner), tints[path])
        elif times > _MOST_REPEATS:
            first = next(_paths(inner, f"{path}."))
            yield _Piece(name, at, _total(inner), tints[first])
        else:
            for index in range(times):
                one = f"{name}[{index}]." if inner["counts"] else f"{name}."
                yield from _pieces(inner, one, f"{path}.", at + index * inner["bits"], tints)


def _word(word: Box | None) -> Grid | None:
    """One stored word of the codes as integers are written: the highest bit first."""
    if word is None:
        return None
    bits, columns = word["bits"], min(_BITS, word["bits"])
    if not 0 < bits <= _MOST_CELLS or bits % columns:
        return None
    pieces = [
        _Piece(one["name"], bits - one["offset_bits"] - one["bits"], one["bits"], index % TINTS)
        for index, one in enumerate(word["inside"])
    ]
    pieces.sort(key=lambda piece: piece.offset)
    rows = tuple(
        Row(str(bits - 1 - first), _cells(pieces, first, columns, 1)) for first in range(0, bits, columns)
    )
    names = tuple(str(columns - 1 - column) for column in range(columns))
    caption = f"One word of the codes, {_amount(bits)}: bit by bit, the highest first as integers are written"
    return Grid(caption, names if bits == columns else (), rows)


def _grid(caption: str, pieces: Sequence[_Piece], unit: int, columns: int) -> Grid:
    cells = sum(piece.bits for piece in pieces) // unit
    rows: list[Row] = []
    for first in range(0, cells, columns):
        row = Row(number(first), _cells(pieces, first, columns, unit))
        if rows and _goes_on(rows[-1], row, columns):
            rows[-1] = replace(rows[-1], more=rows[-1].more + 1)
        else:
            rows.append(row)
    return Grid(caption, tuple(map(str, range(columns))), tuple(rows))


def _goes_on(before: Row, row: Row, columns: int) -> bool:
    """Whether a row shows nothing that the one before it does not: all of both is the same field."""
    whole = len(before.cells) == len(row.cells) == 1 and row.cells[0].span == columns
    return whole and not row.cells[0].label and before.cells[0].says == row.cells[0].says


def _cells(pieces: Sequence[_Piece], first: int, columns: int, unit: int) -> tuple[Cell, ...]:
    """The cells of one row; a field is named where it begins."""
    begin, end = first * unit, (first + columns) * unit
    cells = []
    for piece in pieces:
        low, high = max(piece.offset, begin), min(piece.offset + piece.bits, end)
        if low < high:
            label = piece.name if low == piece.offset else ""
            says = f"{piece.name}: {_amount(piece.bits)}"
            span = (high - low) // unit
            cells.append(Cell(span, label, says, piece.tint, span * _CHARACTERS // max(columns, _BYTES)))
    return tuple(cells)


def _fields(
    layout: Box, repeated: Box | None, tints: Mapping[str, int], depth: int = 0, prefix: str | None = None
) -> Iterator[Field]:
    """The struct type line by line, in the colours of the drawings."""
    within = "" if layout is repeated else prefix
    yield _line(layout, depth, None if prefix is None else tints.get(prefix.removesuffix(".")))
    filled = _filled(layout)
    for inner in layout["inside"]:
        if within is not None:
            yield from _fields(inner, repeated, tints, depth + 1, f"{within}{inner['name']}.")
            continue
        lines = list(_fields(inner, repeated, tints, depth + 1))
        of_bar = filled.index(inner) % TINTS if inner in filled and len(filled) > 1 else None
        yield replace(lines[0], tint=of_bar)
        yield from lines[1:]


def _line(box: Box, depth: int, tint: int | None) -> Field:
    counts = "".join(f"[{number(count)}]" for count in box["counts"])
    if box["constant"]:
        return Field(depth, box["name"], f"constant {box['what']}", "", "", None)
    whole, rest = divmod(box["offset_bits"], 8)
    place = number(whole) if not rest else f"{number(whole)} + {plural(rest, 'bit')}"
    return Field(depth, box["name"], f"{box['what']}{counts}", place, _amount(_total(box)), tint)


def _amount(bits: int) -> str:
    return size(bits // 8) if bits % 8 == 0 else plural(bits, "bit")
