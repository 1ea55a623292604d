"""Rows of an encoded matrix as an encoded matrix of its own: consecutive views and arbitrary gathers.

Words are moved plane by plane; nothing is decoded, so every word of the result is one of the original.
"""

from collections.abc import Sequence

import numpy as np

from ninfer_core.errors import Usage
from ninfer_core.formats import NumericFormat
from ninfer_core.layouts.arrays import Bytes
from ninfer_core.layouts.base import Layout, Plane, Shape
from ninfer_core.layouts.block_scale import BlockScale, swizzle, unswizzle


def gather_rows(
    layout: Layout, fmt: NumericFormat, shape: Shape, payload: Bytes, rows: Sequence[int]
) -> Bytes:
    """The payload of the matrix whose row i is row `rows[i]` of `payload`, padding and gaps included.

    `payload` is uint8 [encoded size] of an [N, K] matrix. Raises: Usage when a row is not in it or the payload has
    another size, IllegalShape when the layout does not take that many rows.
    """
    if len(shape) != 2:
        raise Usage(f"rows are gathered from a matrix, not from shape {list(shape)}")
    if payload.size != layout.encoded_size(fmt, shape):
        raise Usage(
            f"the payload has {payload.size:,} bytes, {fmt.name} {list(shape)} takes {layout.encoded_size(fmt, shape):,}"
        )
    index = np.asarray(rows, np.int64).reshape(-1)
    if index.size == 0 or index.min() < 0 or index.max() >= shape[0]:
        raise Usage(f"rows are 0 to {shape[0] - 1}")
    taken = (index.size, shape[1])
    result = np.zeros(layout.encoded_size(fmt, taken), np.uint8)
    for source, target in zip(layout.planes(fmt, shape), layout.planes(fmt, taken), strict=True):
        _part(result, target)[:] = _plane_rows(layout, source, _part(payload, source), index, shape)
    return result


def row_view(layout: Layout, fmt: NumericFormat, shape: Shape, payload: Bytes, begin: int, end: int) -> Bytes:
    """The payload of rows [begin, end). Raises: as `gather_rows`."""
    return gather_rows(layout, fmt, shape, payload, range(begin, end))


def _part(payload: Bytes, plane: Plane) -> Bytes:
    return payload[plane.span.offset : plane.span.offset + plane.span.length]


def _plane_rows(
    layout: Layout,
    plane: Plane,
    content: Bytes,
    rows: np.ndarray[tuple[int], np.dtype[np.int64]],
    shape: Shape,
) -> Bytes:
    if plane.name == "divisor":
        return content
    if isinstance(layout, BlockScale) and plane.name == "scales":
        return swizzle(np.ascontiguousarray(unswizzle(content, *shape)[rows]))
    return content.reshape(shape[0], -1)[rows].reshape(-1)
