"""`ninfer-gate formats`: the registry of numeric formats, as a table or as JSON."""

from typing import Any

from ninfer_core.formats import FORMATS, BlockFormat, DirectFormat, GroupedFormat, NumericFormat
from ninfer_core.layouts import BLOCK_SCALE, CONTIGUOUS_LE, Layout, canonical_layout
from ninfer_core.layouts.base import MAX_RANK
from ninfer_core.layouts.block_scale import TILE_COLUMNS, TILE_ROWS
from service.cli.failures import Task, guarded
from service.cli.output import FORMATS_SCHEMA, JsonTarget, json_target, no_document


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
        document = {"schema": FORMATS_SCHEMA, "formats": [format_json(fmt) for fmt in FORMATS]}
        target.write(document)
    if target is None or not target.alone:
        _show()
    return 0


def category(fmt: NumericFormat) -> str:
    """The kind of format, in a word."""
    match fmt:
        case DirectFormat():
            return "direct"
        case GroupedFormat():
            return "grouped"
        case BlockFormat():
            return "block"
    return "row"


def words(fmt: NumericFormat) -> tuple[str, str]:
    """Codes and scales of a format; a direct format has words and no scales."""
    match fmt:
        case DirectFormat():
            return f"{fmt.word_bits}-bit words", "none"
        case GroupedFormat():
            return f"{fmt.qmin} to {fmt.qmax}", f"binary16 per {fmt.group}"
        case BlockFormat():
            return "E2M1", f"E4M3FN per {fmt.group}, binary32 per matrix"
    return "E4M3FN", "BF16 per row"


def legal_shapes(layout: Layout) -> str:
    """The shapes that a layout takes."""
    if layout is CONTIGUOUS_LE:
        return f"any rank up to {MAX_RANK}"
    if layout is BLOCK_SCALE:
        return f"[N, K], N a multiple of {TILE_ROWS}, K of {TILE_COLUMNS}"
    return "[N, K]"


def format_json(fmt: NumericFormat) -> dict[str, Any]:
    """One format as JSON values."""
    layout = canonical_layout(fmt)
    codes, scales = words(fmt)
    return {
        "name": fmt.name,
        "category": category(fmt),
        "meaning": fmt.meaning,
        "layout": layout.name,
        "logical_bits_per_weight": float(fmt.logical_bits_per_weight),
        "codes": codes,
        "scales": scales,
        "shapes": legal_shapes(layout),
    }


def _show() -> None:
    from service.cli.screen import aligned, console, hanging, narrowed

    out = console()
    titles = ("format", "kind", "bits", "codes", "scales", "layout")
    rows: list[tuple[str, ...]] = [titles]
    for fmt in FORMATS:
        codes, scales = words(fmt)
        bits = f"{float(fmt.logical_bits_per_weight):.2f}"
        rows.append((fmt.name, category(fmt), bits, codes, scales, canonical_layout(fmt).name))
    right = (False, False, True, False, False, False)
    # A narrow window does without the layout, which is told below, and then without the kind.
    for index, line in enumerate(aligned(*narrowed(rows, right, out.width - 2, (5, 1), gap=2), gap=2)):
        out.print(f"  {line}", style="dim" if index == 0 else None)
    out.print()
    shapes = {canonical_layout(fmt).name: legal_shapes(canonical_layout(fmt)) for fmt in FORMATS}
    for line in aligned([("layout", "shapes"), *shapes.items()], (False, False)):
        out.print(f"  {line}")
    out.print()
    note = (
        "Bits are logical bits per weight: full groups, no padding. Names are exact; explain NAME says more."
    )
    out.print(hanging("  ", note, out.width))
