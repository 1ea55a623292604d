"""`row-scale-v1`: E4M3FN codes row-major, then one BF16 multiplier a row."""

from collections.abc import Iterator

from ninfer_core.formats import FP8_E4M3FN_ROW_BF16S, NumericFormat
from ninfer_core.layouts.base import (
    BLOCK_WEIGHTS,
    Block,
    Plane,
    Shape,
    Span,
    align_up,
    checked,
    matrix_blocks,
    require_matrix,
    require_pair,
)


class RowScale:
    """Positive [N, K]; the gap between the planes is zero."""

    name = "row-scale-v1"
    formats: tuple[NumericFormat, ...] = (FP8_E4M3FN_ROW_BF16S,)

    def matrix(self, fmt: NumericFormat, shape: Shape) -> tuple[int, int]:
        """(N, K)."""
        require_pair(self, fmt)
        return require_matrix(shape)

    def encoded_size(self, fmt: NumericFormat, shape: Shape) -> int:
        """End of the scale plane."""
        last = self.planes(fmt, shape)[-1].span
        return checked(last.offset + last.length, "the encoded size")

    def planes(self, fmt: NumericFormat, shape: Shape) -> tuple[Plane, ...]:
        """`codes`, `scales`."""
        n, k = self.matrix(fmt, shape)
        return (
            Plane("codes", Span(0, n * k), "|u1"),
            Plane("scales", Span(align_up(n * k, 256), 2 * n), "<u2"),
        )

    def blocks(self, fmt: NumericFormat, shape: Shape, weights: int = BLOCK_WEIGHTS) -> Iterator[Block]:
        """Whole rows, or runs of columns of one row."""
        return matrix_blocks(*self.matrix(fmt, shape), weights)

    def spans(self, fmt: NumericFormat, shape: Shape, block: Block) -> tuple[tuple[Span, ...], ...]:
        """One span a plane."""
        n, k = shape
        codes = Span(block.row * k + block.column, block.rows * block.columns)
        return (codes,), (Span(align_up(n * k, 256) + 2 * block.row, 2 * block.rows),)


ROW_SCALE = RowScale()
