"""The decoder of SpQR: binary16 arithmetic step by step, and outliers whose rows are a running sum over offsets."""

from collections.abc import Mapping
from typing import Final

import numpy as np

from ninfer_core.schemes.functions.build import BIT_CASTS, Tensor
from ninfer_core.schemes.functions.frame import Frame, Recipe
from ninfer_core.schemes.lattice.outliers import OFFSETS, ORDER, OUTLIERS

_SIDE: Final = 16
_RECORD: Final = 54


def spqr(frame: Frame) -> Tensor:
    """Scale and zero point of a row of a tile first, then its codes, then the outliers are added.

    An outlier that stands twice, which is a fault of the file, is rounded once here and twice by our own decoder.
    """
    build, (outputs, inputs) = frame.build, frame.shape
    grid = (outputs // _SIDE, inputs // _SIDE, _SIDE)
    words = build.reshape(frame.unsigned("dense_weights"), *grid)
    fields = build.cast(build.fields(words, range(0, _RECORD, 3), 3, grid), "FLOAT")
    factor, zero_factor, offset, zero_offset = _records(frame, words, grid)
    scales = _line(frame, build.cut(fields, 3, 0, 1), factor, offset)
    zeros = _line(frame, build.cut(fields, 3, 1, 2), zero_factor, zero_offset)
    tiles = _line(frame, build.cut(fields, 3, 2, 18), scales, zeros)
    values = build.reshape(build.transpose(tiles, 0, 2, 1, 3), outputs, inputs)
    values = _with_outliers(frame, values)
    return _in_order(frame, values) if ORDER in frame else values


def _line(frame: Frame, codes: Tensor, factor: Tensor, zero: Tensor) -> Tensor:
    """factor (code - zero), each step rounded to binary16: binary32 is wide enough that rounding twice does not show."""
    build = frame.build
    return frame.to_binary16(build.multiply(frame.to_binary16(build.subtract(codes, zero)), factor))


def _records(frame: Frame, words: Tensor, grid: tuple[int, int, int]) -> list[Tensor]:
    """The four numbers of each tile, FLOAT [tile rows, tile columns, 1, 1]: a byte in each even row, low byte first."""
    build, (down, across, _) = frame.build, grid
    even = build.gather(words, build.constant(np.arange(0, _SIDE, 2), "INT64"), 2)
    pairs = build.reshape(build.cast(build.field(even, _RECORD, 8), "UINT16"), down, across, 4, 2)
    low, high = (build.reshape(build.cut(pairs, 3, at, at + 1), down, across, 4, 1) for at in (0, 1))
    halves = build.cast(build.bit_cast(build.either(low, build.left(high, 8)), "FLOAT16"), "FLOAT")
    return [build.cut(halves, 2, number, number + 1) for number in range(4)]


def _with_outliers(frame: Frame, values: Tensor) -> Tensor:
    """The row of entry k is how many offsets but the first are at most k."""
    build, count, rows = frame.build, frame.shape_of(OUTLIERS)[0], frame.shape[0]
    if not count:
        return values
    words = frame.unsigned(OUTLIERS)
    added = build.cast(build.bit_cast(build.cast(build.right(words, 16), "UINT16"), "FLOAT16"), "FLOAT")
    columns = build.cast(build.mask(words, 0xFFFF), "INT64")
    ends = build.cast(build.cut(frame[OFFSETS], 0, 1, rows + 1), "INT64")
    none, each = build.constant([0], "INT32"), build.constant([1], "INT32")
    counted = build.op(
        "ScatterElements",
        build.expand(none, count + 1),
        ends,
        build.expand(each, rows),
        axis=0,
        reduction="add",
    )
    running = build.op("CumSum", counted, build.constant(0, "INT64"))
    row = build.cast(build.cut(running, 0, 0, count), "INT64")
    places = build.concat([build.reshape(row, count, 1), build.reshape(columns, count, 1)], 1)
    return frame.to_binary16(build.op("ScatterND", values, places, added, reduction="add"))


def _in_order(frame: Frame, values: Tensor) -> Tensor:
    """Column k of the tiles belongs to input `in_perm[k]`."""
    build, inputs = frame.build, frame.shape[1]
    order = build.cast(frame.unsigned(ORDER), "INT64")
    stored = build.constant(np.arange(inputs), "INT64")
    column_of_input = build.op("ScatterElements", stored, order, stored, axis=0)
    return build.gather(values, column_of_input, 1)


SPQR: Final[Mapping[str, Recipe]] = {"spqr": Recipe(spqr, opset=BIT_CASTS)}
