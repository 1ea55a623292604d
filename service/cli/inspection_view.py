"""An inspection for a person: a header, one line an object, totals, what is wrong with the structure."""

from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from service.cli.findings_view import count_line, show_findings
from service.cli.inspect import Inspection, Listed, totals
from service.cli.screen import aligned, console, fitted, hanging, show_left_out, styled
from service.text import UNKNOWN, clean, number, plural, shape, size

_TITLES: tuple[str, ...] = (
    "#",
    "name",
    "kind",
    "format",
    "shape",
    "offset",
    "bytes",
    "stored bits",
    "logical bits",
)
_RIGHT = (True, False, False, False, False, True, True, True, True)
_NAME = 1
_SPARE = (8, 7, 2, 5)  # the columns that a narrow window does without, in this order


def show_inspection(inspection: Inspection, path: str, limit: int | None) -> None:
    """Print the whole inspection to standard output; `limit` bounds the objects listed."""
    out = console()
    out.print(hanging("  ", path, out.width, "bold"))
    out.print(hanging("  ", _headline(inspection), out.width))
    if inspection.objects:
        out.print()
        shown = inspection.objects if limit is None else inspection.objects[:limit]
        if shown:
            _show_listing(out, shown)
        if len(shown) < len(inspection.objects):
            out.print(
                f"  … and {plural(len(inspection.objects) - len(shown), 'object')} more; --json FILE has them all"
            )
        out.print()
        out.print(hanging("  ", _total_line(inspection.objects), out.width))
    show_findings(out, inspection.findings)
    out.print()
    found = count_line(inspection.findings)
    word = ("structure passed", "bold green") if inspection.sound else ("structure FAILED", "bold red")
    out.print(styled("  ", word, f"{': ' + found if found else ''}; no payload was read."))


def _headline(inspection: Inspection) -> str:
    parts = [
        f"{inspection.kind} revision {inspection.revision}"
        if inspection.revision is not None
        else inspection.kind,
        size(sum(count for _, count in inspection.files)),
    ]
    if len(inspection.files) > 1:
        parts.append(plural(len(inspection.files), "file"))
    identity = " / ".join(part for part in (inspection.model_id, inspection.weights_id) if part)
    if identity or inspection.name:
        parts.append(identity or inspection.name or "")
    parts += [plural(count, name.removesuffix("s")) for name, count in inspection.sections.items()]
    return "   ".join(parts)


def _show_listing(out: Console, objects: Sequence[Listed]) -> None:
    rows: list[list[str]] = [list(_TITLES), *(list(_row(item)) for item in objects)]
    rows, right = fitted(rows, _RIGHT, out, _NAME, _SPARE)
    for index, line in enumerate(aligned(rows, right, gap=2)):
        out.print(Text(f"  {line}", "" if index else "dim"), no_wrap=True, overflow="ignore", crop=False)
    show_left_out(out, _TITLES, rows[0])


def _row(item: Listed) -> tuple[str, ...]:
    return (
        str(item.ordinal),
        clean(item.name) if item.name is not None else f"objects[{item.ordinal}]",
        clean(item.kind or UNKNOWN),
        clean(item.format or (item.layout if item.kind == "resource" else None) or UNKNOWN),
        clean(shape(item.shape)) if item.kind != "resource" else "",
        number(item.offset),
        number(item.bytes),
        _bits(item.stored_bits),
        _bits(item.logical_bits if item.kind == "tensor" else None),
    )


def _bits(value: float | None) -> str:
    return "" if value is None else f"{value:,.3f}"


def _total_line(objects: Sequence[Listed]) -> str:
    total = totals(objects)
    parts = [plural(total["tensors"], "tensor"), plural(total["resources"], "resource"), size(total["bytes"])]
    if total["elements"]:
        parts.append(f"{total['elements']:,} weights")
        parts.append(
            f"{total['stored_bits_per_weight']:.3f} bits/weight stored, {total['logical_bits_per_weight']:.3f} logical"
        )
    return "   ".join(parts)
