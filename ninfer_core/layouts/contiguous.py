"""`contiguous-le-v1`: direct words in C order, little-endian, nothing else (layouts, "contiguous-le-v1")."""

from collections.abc import Iterator

from ninfer_core.errors import IllegalShape
from ninfer_core.formats import DIRECT, DirectFormat, NumericFormat
from ninfer_core.layouts.base import (
    BLOCK_WEIGHTS,
    MAX_RANK,
    Block,
    Plane,
    Shape,
    Span,
    checked,
    elements,
    matrix_blocks,
    require_pair,
)


class ContiguousLe:
    """Any rank from 0 to 16 with positive dimensions, seen as one row of all elements."""

    name = "contiguous-le-v1"
    formats: tuple[NumericFormat, ...] = DIRECT

    def matrix(self, fmt: NumericFormat, shape: Shape) -> tuple[int, int]:
        """(1, elements)."""
        require_pair(self, fmt)
        if len(shape) > MAX_RANK:
            raise IllegalShape(shape, f"rank is at most {MAX_RANK}")
        if any(size < 1 for size in shape):
            raise IllegalShape(shape, "every dimension is positive")
        return 1, elements(shape)

    def encoded_size(self, fmt: NumericFormat, shape: Shape) -> int:
        """elements * word size."""
        _, count = self.matrix(fmt, shape)
        return checked(count * _word_bytes(fmt), "the encoded size")

    def planes(self, fmt: NumericFormat, shape: Shape) -> tuple[Plane, ...]:
        """One plane, `words`."""
        return (Plane("words", Span(0, self.encoded_size(fmt, shape)), f"<u{_word_bytes(fmt)}"),)

    def blocks(self, fmt: NumericFormat, shape: Shape, weights: int = BLOCK_WEIGHTS) -> Iterator[Block]:
        """Runs of elements."""
        return matrix_blocks(*self.matrix(fmt, shape), weights)

    def spans(self, fmt: NumericFormat, shape: Shape, block: Block) -> tuple[tuple[Span, ...], ...]:
        """One span."""
        size = _word_bytes(fmt)
        return ((Span(block.column * size, block.columns * size),),)


def _word_bytes(fmt: NumericFormat) -> int:
    bits = fmt.word_bits if isinstance(fmt, DirectFormat) else 0
    return 2 if bits == 16 else 4


CONTIGUOUS_LE = ContiguousLe()
