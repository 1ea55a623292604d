"""What people and programs are told of a format: in words, and as the document `ninfer-gate/formats/1`."""

from typing import Any, Final

from ninfer_core.formats import FORMATS, BlockFormat, DirectFormat, GroupedFormat, NumericFormat
from ninfer_core.layouts import BLOCK_SCALE, CONTIGUOUS_LE, Layout, canonical_layout
from ninfer_core.layouts.base import MAX_RANK
from ninfer_core.layouts.block_scale import TILE_COLUMNS, TILE_ROWS

FORMATS_SCHEMA: Final = "ninfer-gate/formats/1"


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


def formats_json() -> dict[str, Any]:
    """The registry of formats as one document."""
    return {"schema": FORMATS_SCHEMA, "formats": [format_json(fmt) for fmt in FORMATS]}
