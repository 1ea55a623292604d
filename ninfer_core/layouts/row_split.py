"""`row-split-k128-v1`: base codes, high bits and binary16 scales of the four grouped formats in separate planes.

K is padded to 128; every plane goes row after row, group after group, so rows and groups are one flat count.
Reference packing here is plain numpy; `kernels/` holds its compiled twin.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ninfer_core.errors import IllegalPair
from ninfer_core.formats import GROUPED, GroupedFormat, NumericFormat
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

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ninfer_core.layouts.arrays import Bytes

K_ALIGNMENT = 128
PLANE_ALIGNMENT = 256
BASE_BYTES = 32  # per group, in every grouped format


@dataclass(frozen=True, slots=True)
class GroupedWords:
    """Logical words of a grouped tensor: signed codes [N, K], binary16 scale words [N, ceil(K / group)]."""

    codes: "NDArray[np.int8]"
    scales: "NDArray[np.uint16]"


def high_bytes(fmt: GroupedFormat) -> int:
    """Bytes of high bits per group: what a code has beyond its low nibble; W8 keeps whole bytes in the base plane."""
    return 0 if fmt.code_bits == 8 else (fmt.code_bits - 4) * fmt.group // 8


def groups_per_row(fmt: GroupedFormat, k: int) -> int:
    """Physical groups of one row."""
    return align_up(k, K_ALIGNMENT) // fmt.group


class RowSplit:
    """Positive [N, K]; three planes, or two where a code fits its base plane."""

    name = "row-split-k128-v1"
    formats: tuple[NumericFormat, ...] = GROUPED

    def matrix(self, fmt: NumericFormat, shape: Shape) -> tuple[int, int]:
        """(N, K)."""
        require_pair(self, fmt)
        return require_matrix(shape)

    def encoded_size(self, fmt: NumericFormat, shape: Shape) -> int:
        """End of the scale plane."""
        last = self.planes(fmt, shape)[-1].span
        return checked(last.offset + last.length, "the encoded size")

    def planes(self, fmt: NumericFormat, shape: Shape) -> tuple[Plane, ...]:
        """`base`, `high` where the format has one, `scales`; each starts at a multiple of 256."""
        grouped = _grouped(fmt)
        n, k = self.matrix(fmt, shape)
        groups = n * groups_per_row(grouped, k)
        base = groups * BASE_BYTES
        high = groups * high_bytes(grouped)
        high_offset = align_up(base, PLANE_ALIGNMENT)
        scale_offset = high_offset + align_up(high, PLANE_ALIGNMENT)
        planes = [Plane("base", Span(0, base), "|u1")]
        if high:
            planes.append(Plane("high", Span(high_offset, high), "|u1"))
        planes.append(Plane("scales", Span(scale_offset, groups * 2), "<u2"))
        return tuple(planes)

    def blocks(self, fmt: NumericFormat, shape: Shape, weights: int = BLOCK_WEIGHTS) -> Iterator[Block]:
        """Whole rows, or runs of whole 128 columns of one row."""
        return matrix_blocks(*self.matrix(fmt, shape), weights, K_ALIGNMENT)

    def spans(self, fmt: NumericFormat, shape: Shape, block: Block) -> tuple[tuple[Span, ...], ...]:
        """One span a plane: groups of a block are contiguous everywhere."""
        grouped = _grouped(fmt)
        per_row = groups_per_row(grouped, shape[1])
        first = block.row * per_row + block.column // grouped.group
        count = block.rows * groups_per_row(grouped, block.columns)
        found = []
        for plane in self.planes(fmt, shape):
            size = plane.span.length // (shape[0] * per_row)
            found.append((Span(plane.span.offset + first * size, count * size),))
        return tuple(found)


def pack(fmt: GroupedFormat, words: GroupedWords) -> "tuple[Bytes, Bytes, NDArray[np.uint16]]":
    """Base, high and scale planes of [N, K] words, padding included: the plain counterpart of the encode kernel."""
    import numpy as np

    n, k = words.codes.shape
    padded = align_up(k, K_ALIGNMENT)
    codes = np.zeros((n, padded), np.uint8)
    codes[:, :k] = words.codes.view(np.uint8)
    scales = np.zeros((n, padded // fmt.group), np.uint16)
    scales[:, : words.scales.shape[1]] = words.scales
    if fmt.code_bits == 8:
        return codes.reshape(-1), np.empty(0, np.uint8), scales.reshape(-1)
    nibbles = codes & np.uint8(0x0F)
    base = nibbles[:, 0::2] | nibbles[:, 1::2] << np.uint8(4)
    bits = fmt.code_bits - 4
    lanes = (codes >> 4)[..., None] >> np.arange(bits, dtype=np.uint8) & 1
    high = np.packbits(lanes.reshape(-1), bitorder="little") if bits else np.empty(0, np.uint8)
    return base.reshape(-1), high, scales.reshape(-1)


def unpack(
    fmt: GroupedFormat, columns: int, base: "Bytes", high: "Bytes", scales: "NDArray[np.uint16]"
) -> GroupedWords:
    """All physical lanes and groups of planes whose rows have `columns` logical columns; shapes are the padded ones."""
    import numpy as np

    per_row = groups_per_row(fmt, columns)
    rows = scales.size // per_row
    lanes = per_row * fmt.group
    if fmt.code_bits == 8:
        codes = base.view(np.int8).reshape(rows, lanes)
    else:
        low = np.empty((base.size, 2), np.uint8)
        low[:, 0], low[:, 1] = base & 0x0F, base >> 4
        word = low.reshape(-1)
        bits = fmt.code_bits - 4
        if bits:
            lane_bits = np.unpackbits(high, bitorder="little").reshape(-1, bits)
            word = word | (lane_bits << np.arange(4, 4 + bits, dtype=np.uint8)).sum(axis=1, dtype=np.uint8)
        shift = 8 - fmt.code_bits
        codes = ((word << shift).view(np.int8) >> shift).reshape(rows, lanes)
    return GroupedWords(codes, scales.reshape(rows, per_row))


def _grouped(fmt: NumericFormat) -> GroupedFormat:
    if not isinstance(fmt, GroupedFormat):
        raise IllegalPair(f"layout {RowSplit.name} does not hold {fmt.name}")
    return fmt


ROW_SPLIT = RowSplit()
