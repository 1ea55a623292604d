"""The catalogue for a person: a list, a scheme in full with drawn layouts, a decoder or an encoder as text."""

import math
from collections.abc import Iterator, Sequence
from typing import Any, Final

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from ninfer_core.errors import Usage
from ninfer_core.schemes.catalogue import Scheme
from ninfer_core.schemes.catalogue.facts import bits_per_weight, encodes, part_bits, rounded, span
from ninfer_core.schemes.catalogue.shown import Shown
from ninfer_core.schemes.drawing import Box, flat
from ninfer_core.schemes.form import REQUIRED, Form
from service.cli.screen import aligned, console, hanging, narrowed, show_left_out, styled
from service.text import UNKNOWN, clean, number, plural
from service.text import shape as shape_text

_BAR: Final = 64  # columns of a drawn element, at most
_FEWEST: Final = 2  # columns of its narrowest field
_TINTS: Final = ("cyan", "green", "yellow", "magenta", "blue")


def show_list(schemes: Sequence[Scheme]) -> None:
    """One line a scheme, in the order of the seed's table."""
    out = console()
    if not schemes:
        out.print("  No scheme of the catalogue fits; without --kind and --match all are listed.")
        return
    titles = ("row", "scheme", "claimed", "declared", "in files", "encode", "title")
    rows = [titles, *map(_line, schemes)]
    right = (True, False, False, False, False, False, False)
    kept, flush = narrowed(rows, right, out.width - 2, (6, 0, 5), gap=2)
    for index, line in enumerate(aligned(kept, flush, gap=2)):
        out.print(Text(f"  {line}", "" if index else "dim"), no_wrap=True, overflow="ignore", crop=False)
    show_left_out(out, titles, kept[0])
    out.print()
    note = (
        "Bits per weight: as the table of the seed claims them (the page that the catalogue is made from), as its own "
        "structures take them, and as files do (of an example each). Encode says which of the two kinds of forms can be written. `schemes show NAME` has parts, parameters and layout. These are schemes of other tools, none "
        "of them a format of a .ninfer file; `formats` lists those."
    )
    out.print(hanging("  ", note, out.width))


def _line(scheme: Scheme) -> tuple[str, ...]:
    return (
        "" if scheme.row is None else str(scheme.row),
        scheme.name,
        scheme.claimed or UNKNOWN,
        span(scheme, "literal") or UNKNOWN,
        span(scheme, "file") or UNKNOWN,
        encodes(scheme),
        scheme.title,
    )


def show_in_full(scheme: Scheme, shown: Sequence[Shown]) -> None:
    """A scheme: its forms in a table where there are several, and the main one of them in full.

    Raises: SchemeRefused, StructFault for a shape that the form does not take, before anything is printed.
    """
    rows = [("form", "kind", "bits", "encode", "what it is"), *map(_form_line, shown)]
    main = next((one for one in shown if one.form.name == scheme.name), None)
    main = main or next((one for one in shown if one.form.kind == "file"), shown[0])
    layout = main.layout
    out = console()
    out.print(hanging("  ", scheme.name, out.width, "bold"))
    for label, text in _facts(scheme):
        out.print(hanging(Text(f"  {label.ljust(11)}", "dim"), text, out.width))
    for index, text in enumerate(scheme.contradictions):
        lead = Text(f"  {'' if index else 'beware'}".ljust(13), "dim")
        out.print(hanging(lead, text, out.width))
    if len(shown) > 1:
        out.print()
        _table(out, rows, (1,))
    out.print()
    _show_form(out, main, layout)
    if len(shown) > 1:
        others = ", ".join(one.form.name for one in shown if one is not main)
        text = f"ninfer-gate schemes show NAME, of {others}"
        out.print()
        out.print(hanging(Text("  Next: ", "dim"), text, out.width, "dim"))


def _form_line(shown: Shown) -> tuple[str, ...]:
    form = shown.form
    bits = rounded(bits_per_weight(form, shown.example))
    encode = form.encoding if form.encode is not None else "no"
    return form.name, form.kind, bits, encode, form.summary


def show_function(shown: Shown, encoder: bool) -> None:
    """The decoder or the encoder of a form, ready to be parsed. Raises: Usage where it has none."""
    text = shown.encoder() if encoder else shown.decoder()
    if text is None:
        what = "encoder" if encoder else "decoder"
        raise Usage(f"{shown.form.name} has no {what} of standard ONNX operators")
    console().print(text, soft_wrap=True)


def _facts(scheme: Scheme) -> Iterator[tuple[str, str]]:
    row = f"row {scheme.row} of the seed's table" if scheme.row is not None else "beside the seed's table"
    yield "title", f"{scheme.title}   {row}"
    yield "meaning", scheme.summary
    yield "profiles", scheme.profiles
    declared, real = span(scheme, "literal"), span(scheme, "file")
    figures = (("claimed", scheme.claimed), ("declared", declared), ("in files", real))
    yield "bits", ", ".join(f"{value} {label}" for label, value in figures if value) + " (per weight)"
    if scheme.aliases:
        yield "also", ", ".join(scheme.aliases)
    if scheme.apart:
        yield "namesake", scheme.apart


def _show_form(out: Console, shown: Shown, layout: Box) -> None:
    form = shown.form
    kind = "the catalogue's own structure" if form.kind == "literal" else "as files hold it"
    out.print(styled("  ", (form.name, "bold"), f"   {kind}"))
    encode = form.encoding if form.encode is not None else "no: no rule fixes the bytes"
    for label, text in (
        ("meaning", form.summary),
        ("encode", encode),
        ("decode", _decoding(form)),
        ("oracle", form.oracle),
        ("notes", form.notes),
    ):
        if text:
            out.print(hanging(Text(f"    {label.ljust(11)}", "dim"), text, out.width))
    _show_parts(out, shown)
    if form.parameters:
        _show_parameters(out, shown)
    bits = sum(part_bits(form, shown.example).values())
    weight = f"{shape_text(shown.example.shape)} over [{', '.join(form.axes)}]"
    per = f"{rounded(bits_per_weight(form, shown.example))} bits per weight"
    out.print(
        hanging(Text("    takes      ", "dim"), f"{number(-(-bits // 8))} bytes, {per}: {weight}", out.width)
    )
    _show_layout(out, layout)
    word = shown.word
    if word is not None:
        _show_word(out, word)


def _decoding(form: Form) -> str:
    return f"{form.arithmetic}; a compiled decoder equals it" if form.fast is not None else form.arithmetic


def _show_parts(out: Console, shown: Shown) -> None:
    stored = shown.form.stored(shown.example.shape, shown.params)
    rows = [("part", "type", "stored", "what it is")]
    for part in shown.form.parts:
        counts = shape_text(stored[part.name]) if part.name in stored else UNKNOWN
        meaning = (
            f"{part.axes + ': ' if part.axes else ''}{part.meaning}{'; optional' if part.optional else ''}"
        )
        rows.append((part.name, " or ".join(part.dtypes), counts, meaning))
    _table(out, rows, (2,))


def _show_parameters(out: Console, shown: Shown) -> None:
    params = shown.params
    rows = [("parameter", "value", "default", "what it says")]
    for parameter in shown.form.parameters:
        default = "needed" if parameter.default is REQUIRED else value_word(parameter.default)
        choices = f" ({', '.join(map(value_word, parameter.choices))})" if parameter.choices else ""
        rows.append(
            (parameter.name, value_word(params[parameter.name]), default, parameter.meaning + choices)
        )
    _table(out, rows, (2,))


def value_word(value: Any) -> str:
    """The value of a parameter, short."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple | list):
        listed = ",".join(map(str, value[:8]))
        return f"{listed},…" if len(value) > 8 else listed or "none"
    return "none" if value is None or value == "" else str(value)


def _table(out: Console, rows: Sequence[Sequence[str]], spare: Sequence[int]) -> None:
    """Rows, titles first, whose last cell goes on below itself where the window is narrow."""
    cells = [[clean(cell) for cell in row] for row in rows]
    kept, flush = narrowed(cells, (False,) * len(cells[0]), max(40, out.width - 34), spare, gap=2)
    leads = aligned([row[:-1] for row in kept], flush[:-1], gap=2)
    width = max(map(cell_len, leads)) + 2
    for index, (lead, row) in enumerate(zip(leads, kept, strict=True)):
        before = f"    {lead}{' ' * (width - cell_len(lead))}"
        out.print(hanging(before, row[-1], out.width), style="" if index else "dim")


def _show_layout(out: Console, root: Box) -> None:
    """The type as a tree of bytes, with a bar for what repeats."""
    repeated = next((box for _, box in flat(root) if box.inside and box.counts), root)
    if repeated.inside and repeated.bits:
        times = f"{plural(math.prod(repeated.counts), 'element')} of " if repeated.counts else ""
        out.print(styled("    ", ("layout", "dim"), f"     {times}{_amount(repeated.bits)}"))
        _show_bar(out, repeated)
    rows = [("at", "field", "type", "takes")]
    for depth, box in flat(root):
        counts = "".join(f"[{count}]" for count in box.counts)
        what = f"constant {box.what}" if box.constant else f"{box.what}{counts}"
        rows.append(
            (_place(box), "  " * depth + clean(box.name), what, "" if box.constant else _amount(box.total))
        )
    lines = aligned(rows, (True, False, False, True), gap=2)
    for index, line in enumerate(lines):
        out.print(Text(f"      {line}", "" if index else "dim"), no_wrap=True, overflow="ellipsis")


def _place(box: Box) -> str:
    whole, rest = divmod(box.offset, 8)
    return f"{whole:,}" if not rest else f"{whole:,}.{rest}"


def _amount(bits: int) -> str:
    return f"{bits // 8:,} B" if bits % 8 == 0 else f"{bits:,} bits"


def _show_bar(out: Console, box: Box) -> None:
    """One element as a bar, its fields as wide as their bits, with their names where there is room."""
    fields = [inner for inner in box.inside if not inner.constant and inner.total]
    room = min(_BAR, out.width - 8)
    if len(fields) * (_FEWEST + 1) > room:
        return
    line = Text("      ")
    for index, field in enumerate(fields):
        columns = max(_FEWEST, round(room * field.total / box.bits))
        name = clean(field.name)
        label = name if len(name) + 2 <= columns else name[: columns - 1] if columns > _FEWEST else ""
        line.append(
            label.center(columns), f"black on {_TINTS[index % len(_TINTS)]}" if out.is_terminal else ""
        )
        line.append("" if out.is_terminal else "|")
    out.print(line, no_wrap=True, overflow="crop")


def _show_word(out: Console, word: Box) -> None:
    """One stored word of the codes, highest bit first as integers are written."""
    pieces = [f"{inner.name} {_bits_of(inner)}" for inner in reversed(word.inside)]
    out.print(
        hanging(
            Text("    one word   ", "dim"), f"bits {word.bits - 1} to 0:  {' | '.join(pieces)}", out.width
        )
    )


def _bits_of(piece: Box) -> str:
    last = piece.offset + piece.bits - 1
    return f"{piece.offset}..{last}" if piece.bits > 1 else str(last)
