"""Consoles that take nothing in a text for markup, and lines and columns to print on them."""

import os
import sys
import textwrap
from collections.abc import Sequence
from contextlib import suppress
from typing import IO

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from service.text import clean, shorten

NAME_WANTED, NAME_SHORTEST = 30, 16  # characters of a name that a listing makes room for, and keeps at least
_NARROWEST = 20
PIPED_WIDTH = 100_000  # nothing wraps or is shortened where a program reads


class _Console(Console):
    """A console that goes quiet, and lets the verdict stand, when its reader has left."""

    def on_broken_pipe(self) -> None:
        self.quiet = True
        drop_output()


def drop_output() -> None:
    """Send whatever is still to be written to nowhere: the reader has left."""
    with suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


def console(file: IO[str] | None = None) -> Console:
    """A console on standard output or `file` that takes nothing in a text for markup, links or emoji."""
    file = file if file is not None else sys.stdout
    width = None if file.isatty() else PIPED_WIDTH
    return _Console(file=file, width=width, markup=False, highlight=False, emoji=False, soft_wrap=False)


def error_console() -> Console:
    """The console on standard error."""
    return console(sys.stderr)


def hanging(lead: Text | str, text: str, width: int, style: str = "", narrowest: int = _NARROWEST) -> Text:
    """`lead` and then `text`, cleaned; where it is too long for `width`, further lines stand below its first word."""
    line = lead.copy() if isinstance(lead, Text) else Text(lead)
    indent = line.cell_len
    pieces = textwrap.wrap(clean(text), max(narrowest, width - indent), break_on_hyphens=False)
    return line.append(f"\n{' ' * indent}".join(pieces), style)


def styled(*parts: tuple[object, str] | str) -> Text:
    """One line out of cleaned pieces, each a string or (text, style)."""
    line = Text()
    for part in parts:
        text, style = part if isinstance(part, tuple) else (part, "")
        line.append(clean(text), style)
    return line


def aligned(rows: Sequence[Sequence[str]], right: Sequence[bool], gap: int = 3) -> list[str]:
    """Rows of cells as lines: columns side by side, those of `right` flush right, no blanks at line ends."""
    widths = [max(map(cell_len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        line = ""
        for cell, width, is_right in zip(row, widths, right, strict=True):
            blanks = " " * (width - cell_len(cell))
            line += " " * gap + (blanks + cell if is_right else cell + blanks)
        lines.append(line[gap:].rstrip())
    return lines


def hung(rows: Sequence[Sequence[str]], right: Sequence[bool], out: Console, gap: int = 3) -> list[Text]:
    """Rows as lines after two blanks: a last cell too long for the window goes on below its own beginning."""
    leads = aligned([row[:-1] for row in rows], right[:-1], gap)
    width = max(map(cell_len, leads)) + gap
    return [
        hanging(f"  {lead}{' ' * (width - cell_len(lead))}", row[-1], out.width, narrowest=_NARROWEST // 2)
        for lead, row in zip(leads, rows, strict=True)
    ]


def narrowed(
    rows: Sequence[Sequence[str]], right: Sequence[bool], width: int, spare: Sequence[int], gap: int = 3
) -> tuple[list[list[str]], list[bool]]:
    """The rows without as many of the `spare` columns, in that order, as it takes to fit `width`."""
    widths = [max(map(cell_len, column)) for column in zip(*rows, strict=True)]
    kept = list(range(len(widths)))
    for column in spare:
        if sum(widths[index] + gap for index in kept) - gap <= width:
            break
        kept.remove(column)
    return [[row[index] for index in kept] for row in rows], [right[index] for index in kept]


def show_left_out(out: Console, titles: Sequence[str], kept: Sequence[str]) -> None:
    """Say which columns the window had no room for, if any."""
    gone = [title for title in titles if title and title not in kept]
    if gone:
        text = f"columns left out at this width: {', '.join(gone)}; --json FILE has all"
        out.print(hanging("  ", text, out.width, "dim"))


def fitted(
    rows: Sequence[Sequence[str]], right: Sequence[bool], out: Console, name: int, spare: Sequence[int]
) -> tuple[list[list[str]], list[bool]]:
    """Rows, with their titles first, as the window has room for them, with two blanks between columns.

    Where it is narrow, `spare` columns and then the middle of cells in the column `name` give way: numbers stay whole.
    """
    if not out.is_terminal:
        return [list(row) for row in rows], list(right)
    title, names = rows[0][name], [row[name] for row in rows]
    short = [[cell[:NAME_WANTED] if i == name else cell for i, cell in enumerate(row)] for row in rows]
    kept, flush = narrowed(short, right, out.width - 2, spare, gap=2)
    column = kept[0].index(title)
    others = sum(max(len(row[i]) for row in kept) + 2 for i in range(len(flush)) if i != column)
    for row, whole in zip(kept, names, strict=True):
        row[column] = shorten(whole, max(NAME_SHORTEST, out.width - others - 2))
    return kept, flush
