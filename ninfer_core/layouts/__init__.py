"""The four tensor layouts, a closed registry, and the one encoding of resources."""

from ninfer_core.formats import NumericFormat
from ninfer_core.layouts.base import Layout
from ninfer_core.layouts.block_scale import BLOCK_SCALE
from ninfer_core.layouts.contiguous import CONTIGUOUS_LE
from ninfer_core.layouts.row_scale import ROW_SCALE
from ninfer_core.layouts.row_split import ROW_SPLIT
from ninfer_core.registry import Closed

LAYOUTS: Closed[Layout] = Closed("layout", CONTIGUOUS_LE, ROW_SPLIT, BLOCK_SCALE, ROW_SCALE)
RESOURCE_ENCODING = "raw-bytes-v1"


def canonical_layout(fmt: NumericFormat) -> Layout:
    """The layout of a format: today each format has exactly one."""
    return next(layout for layout in LAYOUTS if fmt in layout.formats)


__all__ = [
    "BLOCK_SCALE",
    "CONTIGUOUS_LE",
    "LAYOUTS",
    "RESOURCE_ENCODING",
    "ROW_SCALE",
    "ROW_SPLIT",
    "Layout",
    "canonical_layout",
]
