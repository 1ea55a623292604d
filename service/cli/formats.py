"""`ninfer-gate formats`: the registry of numeric formats, as a table or as JSON."""

from typing import Any

from ninfer_core.format_facts import FORMATS_SCHEMA, category, formats_json, legal_shapes, words
from ninfer_core.formats import FORMATS
from ninfer_core.layouts import canonical_layout
from service.cli.failures import Task, guarded
from service.cli.output import JsonTarget, json_target, no_document


def formats(json: str | None) -> int:
    """Print the registry; the exit code."""

    def failed(verdict: str, code: str, message: str) -> dict[str, Any]:
        return no_document(FORMATS_SCHEMA, verdict, code, message)

    first = JsonTarget(None) if json == "-" else None
    return guarded(
        Task("formats", "listing the formats", "Nothing is kept.", failed, first), lambda: _run(json)
    )


def _run(json: str | None) -> int:
    target = json_target(json)
    if target is not None:
        target.write(formats_json())
    if target is None or not target.alone:
        _show()
    return 0


def _show() -> None:
    from service.cli.screen import console, hanging, hung, narrowed, show_left_out

    out = console()
    titles = ("format", "kind", "bits", "codes", "scales", "layout")
    rows: list[tuple[str, ...]] = [titles]
    for fmt in FORMATS:
        codes, scales = words(fmt)
        bits = f"{float(fmt.logical_bits_per_weight):.2f}"
        rows.append((fmt.name, category(fmt), bits, codes, scales, canonical_layout(fmt).name))
    right = (False, False, True, False, False, False)
    # A narrow window does without the layout, which is told below, and then without the kind.
    kept, flush = narrowed(rows, right, out.width - 2, (5, 1), gap=2)
    for index, line in enumerate(hung(kept, flush, out, gap=2)):
        out.print(line, style="dim" if index == 0 else None)
    show_left_out(out, titles, kept[0])
    out.print()
    shapes = {canonical_layout(fmt).name: legal_shapes(canonical_layout(fmt)) for fmt in FORMATS}
    for line in hung([("layout", "shapes"), *shapes.items()], (False, False), out):
        out.print(line)
    out.print()
    note = (
        "Bits are logical bits per weight: full groups, no padding. Names are exact; explain NAME says more."
    )
    out.print(hanging("  ", note, out.width))
