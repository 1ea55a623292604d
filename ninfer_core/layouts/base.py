"""What a layout is: where the words of a tensor lie, known before any byte is touched.

A layout moves words, never values. Every tensor is seen as an [N, K] matrix (a direct tensor as one row of all
its elements), handled in *blocks* so that memory is bounded by the block and not by the tensor.

Sizes and places are integers: what only lists a directory does without numpy, whose import takes longer than that.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Protocol

from ninfer_core.errors import IllegalPair, IllegalShape, SizeOverflow
from ninfer_core.formats import NumericFormat

if TYPE_CHECKING:
    import numpy as np

U64_MAX = 2**64 - 1
MAX_RANK = 16
TENSOR_ALIGNMENT = 256
BLOCK_WEIGHTS = 1 << 22  # fixed, so that sums over blocks give the same digits everywhere

Shape = tuple[int, ...]


def align_up(value: int, alignment: int) -> int:
    """The smallest multiple of `alignment` that is at least `value`."""
    return -(-value // alignment) * alignment


def checked(value: int, what: str) -> int:
    """`value` when an unsigned 64-bit integer holds it. Raises: SizeOverflow."""
    if value > U64_MAX:
        raise SizeOverflow(f"{what} is {value}, which an unsigned 64-bit integer does not hold")
    return value


def elements(shape: Sequence[int]) -> int:
    """Number of logical elements, exact; `[]` is one scalar. Raises: SizeOverflow."""
    return checked(prod(shape), "the element count")


@dataclass(frozen=True, slots=True)
class Span:
    """Bytes [offset, offset + length) of a payload."""

    offset: int
    length: int


@dataclass(frozen=True, slots=True)
class Block:
    """Rows and columns of a matrix that one step handles.

    Whole rows when `columns` is K; otherwise a run of columns of one row (of 128 rows in the block-scale layout)
    that starts at a multiple of 128 (64 there) and ends at one or at K.
    """

    row: int
    rows: int
    column: int
    columns: int


@dataclass(frozen=True, slots=True)
class Plane:
    """One contiguous part of a payload that holds one kind of word."""

    name: str
    span: Span
    typestr: str  # of its words, little-endian, as numpy spells it

    @property
    def word(self) -> "np.dtype[np.generic]":
        """The type of its words."""
        import numpy as np

        return np.dtype(self.typestr)


class Layout(Protocol):
    """One registered layout; `formats` are the only formats it takes."""

    @property
    def name(self) -> str: ...

    @property
    def formats(self) -> tuple[NumericFormat, ...]: ...

    def matrix(self, fmt: NumericFormat, shape: Shape) -> tuple[int, int]:
        """(N, K) of a legal shape. Raises: IllegalPair, IllegalShape, SizeOverflow."""
        ...

    def encoded_size(self, fmt: NumericFormat, shape: Shape) -> int:
        """Bytes of the payload. Raises: IllegalPair, IllegalShape, SizeOverflow."""
        ...

    def planes(self, fmt: NumericFormat, shape: Shape) -> tuple[Plane, ...]:
        """The planes in payload order; bytes between them are zero."""
        ...

    def blocks(self, fmt: NumericFormat, shape: Shape, weights: int = BLOCK_WEIGHTS) -> Iterator[Block]:
        """Blocks of at most `weights` elements where the layout allows, in row-major order."""
        ...

    def spans(self, fmt: NumericFormat, shape: Shape, block: Block) -> tuple[tuple[Span, ...], ...]:
        """For each plane the bytes that hold `block`, in order."""
        ...


def gaps(layout: Layout, fmt: NumericFormat, shape: Shape) -> tuple[Span, ...]:
    """The nonempty zero gaps between planes; a payload ends with its last plane."""
    found, cursor = [], 0
    for plane in layout.planes(fmt, shape):
        if plane.span.offset > cursor:
            found.append(Span(cursor, plane.span.offset - cursor))
        cursor = plane.span.offset + plane.span.length
    return tuple(found)


def require_pair(layout: Layout, fmt: NumericFormat) -> None:
    """Raises: IllegalPair."""
    if fmt not in layout.formats:
        raise IllegalPair(f"layout {layout.name} does not hold {fmt.name}")


def require_matrix(shape: Shape) -> tuple[int, int]:
    """(N, K) of a positive rank-two shape. Raises: IllegalShape."""
    if len(shape) != 2:
        raise IllegalShape(shape, "this layout takes rank two, [N, K]")
    if min(shape) < 1:
        raise IllegalShape(shape, "every dimension is positive")
    return shape[0], shape[1]


def matrix_blocks(n: int, k: int, weights: int, column_unit: int = 128, row_unit: int = 1) -> Iterator[Block]:
    """Blocks of whole rows, `row_unit` rows at a time, or of columns of `row_unit` rows when those are too wide."""
    rows = weights // k // row_unit * row_unit
    if rows:
        for row in range(0, n, rows):
            yield Block(row, min(rows, n - row), 0, k)
        return
    columns = max(column_unit, weights // row_unit // column_unit * column_unit)
    for row in range(0, n, row_unit):
        for column in range(0, k, columns):
            yield Block(row, min(row_unit, n - row), column, min(columns, k - column))
