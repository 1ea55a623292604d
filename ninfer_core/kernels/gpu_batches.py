"""Blocks on their way to a CUDA device: cut into whole tiles or rows, as much at once as memory and a launch allow."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ninfer_core.formats import GroupedFormat
from ninfer_core.kernels.gpu_memory import MOST_BLOCKS, DeviceArray, Memory
from ninfer_core.kernels.sizes import grouped_rows, require_row_scales, require_source
from ninfer_core.kernels.tiles import LANES, LINE
from ninfer_core.kernels.values import GroupedPlanes
from ninfer_core.layouts.row_split import groups_per_row

Words = NDArray[Any]

MOST_TILES: Final = 1 << 15  # at once: what is kept for each takes some 2 KB
SPAN: Final = 8192  # lanes of a row of FP8 codes that a block of threads has


@dataclass(frozen=True, slots=True)
class Batch:
    """Whole tiles of a block: rows of which none is cut, or a run of one long row."""

    first: int  # logical lane of the block
    rows: int
    columns: int
    planes: GroupedPlanes

    @property
    def lanes(self) -> int:
        """Logical lanes."""
        return self.rows * self.columns

    @property
    def tiles(self) -> int:
        """Tiles, each of one row."""
        return self.rows * -(-self.columns // LANES)

    def words(self, source: Words) -> Words:
        """Those of a block's flat source words that belong to the batch."""
        return source[self.first : self.first + self.lanes]


def walk_units(memory: Memory, units: int, most: int, visit: Callable[[int, int], None]) -> None:
    """Call `visit` with consecutive ranges [begin, end) of at most `most` units. Raises: DeviceFailed."""

    def shifted(start: int, begin: int, end: int) -> None:
        visit(start + begin, start + end)

    for start in range(0, units, most):
        memory.in_batches(min(most, units - start), partial(shifted, start))


def walk(
    memory: Memory, fmt: GroupedFormat, columns: int, planes: GroupedPlanes, visit: Callable[[Batch], None]
) -> int:
    """Visit a block in order; the number of its logical lanes.

    A visit that raises OutOfMemory is repeated with less, and must have left nothing behind.
    Raises: ValueError for planes that hold no such rows, DeviceFailed.
    """
    rows = grouped_rows(fmt, columns, planes)
    lanes, one_row = rows * columns, columns % LINE == 0
    units, width, per_unit = rows, columns, groups_per_row(fmt, columns)
    if one_row:  # rows without padding are one long row: units are its tiles
        units, width, per_unit = -(-lanes // LANES), LANES, LANES // fmt.group

    def batch(begin: int, end: int) -> None:
        part = planes.part(fmt, begin * per_unit, min(end * per_unit, planes.scales.size))
        first, last = begin * width, min(end * width, lanes)
        visit(Batch(first, 1, last - first, part) if one_row else Batch(first, end - begin, columns, part))

    walk_units(memory, units, max(1, MOST_TILES // -(-width // LANES)), batch)
    return lanes


def upload_planes(memory: Memory, planes: GroupedPlanes) -> tuple[DeviceArray, DeviceArray, DeviceArray]:
    """Base codes in words of 32 bits, high bits, scales."""
    base, high = memory.upload("base", planes.base), memory.upload("high", planes.high)
    return base.view(np.uint32), high, memory.upload("scales", planes.scales)


def walk_rows(
    memory: Memory,
    codes: Words,
    scales: Words,
    visit: Callable[[int, int, DeviceArray, DeviceArray, int, int], None],
) -> None:
    """Visit FP8 rows in order: [begin, end), their codes and scales on the device, columns, and spans of each row.

    Raises: ValueError for scales that do not go with the rows, DeviceFailed.
    """
    require_row_scales(codes, scales)
    rows, columns = codes.shape
    spans = max(1, -(-columns // SPAN))

    def run(begin: int, end: int) -> None:
        own = memory.upload("base", codes[begin:end]), memory.upload("scales", scales[begin:end])
        visit(begin, end, *own, columns, spans)

    walk_units(memory, rows, max(1, MOST_BLOCKS // spans), run)


def source_words(words: Words, dtype: str) -> Words:
    """Words of a source, flat. Raises: ValueError, where they cannot be of that type."""
    require_source(words, dtype)
    return words.reshape(-1)
