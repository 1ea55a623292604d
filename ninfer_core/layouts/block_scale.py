"""`blockscale-k16-m128x4-v1`: NVFP4 codes row-major, E4M3FN scales swizzled in 128 x 4 tiles, then the divisor."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ninfer_core.errors import IllegalShape
from ninfer_core.formats import NVFP4, NumericFormat
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
    from ninfer_core.layouts.arrays import Bytes

TILE_ROWS = 128
TILE_COLUMNS = 64  # four groups of 16
TILE_BYTES = 512


class BlockScale:
    """[N, K] with N % 128 == 0 and K % 64 == 0; no padding anywhere."""

    name = "blockscale-k16-m128x4-v1"
    formats: tuple[NumericFormat, ...] = (NVFP4,)

    def matrix(self, fmt: NumericFormat, shape: Shape) -> tuple[int, int]:
        """(N, K)."""
        require_pair(self, fmt)
        n, k = require_matrix(shape)
        if n % TILE_ROWS:
            raise IllegalShape(shape, f"N % {TILE_ROWS} == 0")
        if k % TILE_COLUMNS:
            raise IllegalShape(shape, f"K % {TILE_COLUMNS} == 0")
        return n, k

    def encoded_size(self, fmt: NumericFormat, shape: Shape) -> int:
        """End of the divisor."""
        last = self.planes(fmt, shape)[-1].span
        return checked(last.offset + last.length, "the encoded size")

    def planes(self, fmt: NumericFormat, shape: Shape) -> tuple[Plane, ...]:
        """`codes` (two a byte, low nibble first), `scales` (swizzled), `divisor`."""
        n, k = self.matrix(fmt, shape)
        codes, scales = n * k // 2, n * k // 16
        scale_offset = align_up(codes, 256)
        return (
            Plane("codes", Span(0, codes), "|u1"),
            Plane("scales", Span(scale_offset, scales), "|u1"),
            Plane("divisor", Span(scale_offset + scales, 4), "<u4"),
        )

    def blocks(self, fmt: NumericFormat, shape: Shape, weights: int = BLOCK_WEIGHTS) -> Iterator[Block]:
        """Multiples of 128 whole rows, or runs of whole 64 columns of 128 rows."""
        return matrix_blocks(*self.matrix(fmt, shape), weights, TILE_COLUMNS, TILE_ROWS)

    def spans(self, fmt: NumericFormat, shape: Shape, block: Block) -> tuple[tuple[Span, ...], ...]:
        """Codes of each row (one span for whole rows), the tiles of each 128 rows, the divisor."""
        n, k = self.matrix(fmt, shape)
        if block.columns == k:
            codes: tuple[Span, ...] = (Span(block.row * k // 2, block.rows * k // 2),)
        else:
            codes = tuple(
                Span((row * k + block.column) // 2, block.columns // 2)
                for row in range(block.row, block.row + block.rows)
            )
        scale_offset = align_up(n * k // 2, 256)
        stripe = k // TILE_COLUMNS * TILE_BYTES
        scales = tuple(
            Span(
                scale_offset + row // TILE_ROWS * stripe + block.column // TILE_COLUMNS * TILE_BYTES,
                block.columns // TILE_COLUMNS * TILE_BYTES,
            )
            for row in range(block.row, block.row + block.rows, TILE_ROWS)
        )
        return codes, scales, (Span(scale_offset + n * k // 16, 4),)


def scale_offset(row: int, group: int, k: int) -> int:
    """Byte of the scale of (row, group) inside the scale plane: the formula of the layout, word for word."""
    tile = (row // 128) * (k // 64) + group // 4
    return tile * 512 + (row % 32) * 16 + ((row % 128) // 32) * 4 + group % 4


def unswizzle(plane: "Bytes", rows: int, columns: int) -> "Bytes":
    """Scales [rows, columns / 16] in natural order out of whole tiles (rows % 128 == 0, columns % 64 == 0)."""
    import numpy as np

    tiles = plane.reshape(
        rows // 128, columns // 64, 32, 4, 4
    )  # stripe, tile, row % 32, row // 32 % 4, group % 4
    return np.ascontiguousarray(tiles.transpose(0, 3, 2, 1, 4)).reshape(rows, columns // 16)


def swizzle(scales: "Bytes") -> "Bytes":
    """The scale plane of natural-order scales [N, K / 16]: the inverse of `unswizzle`."""
    import numpy as np

    rows, groups = scales.shape
    tiles = scales.reshape(rows // 128, 4, 32, groups // 4, 4)
    return np.ascontiguousarray(tiles.transpose(0, 3, 2, 1, 4)).reshape(-1)


def pack_codes(codes: "Bytes") -> "Bytes":
    """Two E2M1 words a byte, the smaller column in the low nibble."""
    import numpy as np

    return (codes[:, 0::2] | codes[:, 1::2] << np.uint8(4)).reshape(-1)


def unpack_codes(packed: "Bytes", columns: int) -> "Bytes":
    """E2M1 words [rows, columns]."""
    import numpy as np

    pairs = np.empty((packed.size, 2), np.uint8)
    pairs[:, 0], pairs[:, 1] = packed & 0x0F, packed >> 4
    return pairs.reshape(-1, columns)


BLOCK_SCALE = BlockScale()
