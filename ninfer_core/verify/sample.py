"""Which rows a sampled comparison looks at, and what such a sample can find.

The choice follows from the seed and the object's name alone, so that anybody can repeat it and nobody can aim at it
without the seed. Where rows meet that come from different places, both sides are always in the sample: there mistakes
are made.
"""

import hashlib
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from ninfer_core.containers.directory import TensorObject
from ninfer_core.formats import BlockFormat, DirectFormat
from ninfer_core.layouts.base import Block, elements
from ninfer_core.layouts.block_scale import TILE_ROWS

WHOLE_BYTES: Final = 64 << 10  # an object up to this size is compared whole
MOST_UNITS: Final = 1 << 16  # of one object; a unit of a larger one is several rows
VECTOR_ROW: Final = 4096  # elements that count as a row where a direct tensor has no rows

_GOLDEN: Final = 0x9E3779B97F4A7C15
_MASK: Final = (1 << 64) - 1


@dataclass(frozen=True, slots=True)
class Sample:
    """About what share of the rows of every object is compared, 0 < fraction <= 1, and the seed of the choice."""

    fraction: float
    seed: int = 0

    def __post_init__(self) -> None:
        """Raises: ValueError."""
        if not 0 < self.fraction <= 1:
            raise ValueError(f"a sample is a share above 0 and at most 1, not {self.fraction}")


@dataclass(frozen=True, slots=True)
class Detection:
    """Probability that a sample holds at least one wrong row, by how many are wrong; see `detection`."""

    one_row: float
    one_percent: float
    one_permille: float


def matrix_of(item: TensorObject) -> tuple[int, int]:
    """(rows, elements of a row) as samples count them.

    A direct tensor has the rows of its leading axis; a vector or a scalar is cut into rows of `VECTOR_ROW` elements.
    """
    if not isinstance(item.format, DirectFormat):
        return item.shape[0], item.shape[1]
    count = elements(item.shape)
    if len(item.shape) > 1:
        return item.shape[0], count // item.shape[0]
    return -(-count // VECTOR_ROW), VECTOR_ROW


def plan_rows(item: TensorObject, sample: Sample, joints: Iterable[int] = ()) -> tuple[range, ...]:
    """Ascending, separate ranges of the rows to compare.

    `joints` are the positions along the leading axis, each the first of a new piece, where rows of different origin
    meet. Ranges begin and end where the layout can be read: at any row, or at tiles of 128 rows.
    """
    rows, width = matrix_of(item)
    if item.bytes <= WHOLE_BYTES or sample.fraction == 1:
        return (range(rows),)
    tile = TILE_ROWS if isinstance(item.format, BlockFormat) else 1
    tiles = rows // tile
    unit = -(-tiles // MOST_UNITS)
    units = -(-tiles // unit)
    chosen = _choose(units, math.ceil(sample.fraction * units), sample.seed, item.name)
    wanted = [range(place * unit, min((place + 1) * unit, tiles)) for place in chosen]
    per_row = width if len(item.shape) < 2 else 1  # a joint of a vector is an element
    size = item.shape[0] if item.shape else 1
    sides = {0, size - 1, *(side for joint in joints for side in (joint - 1, joint) if 0 <= side < size)}
    wanted += [range(side // per_row // tile, side // per_row // tile + 1) for side in sides]
    return tuple(range(found.start * tile, found.stop * tile) for found in _joined(wanted))


def blocks_of(item: TensorObject, ranges: Iterable[range]) -> Iterator[Block]:
    """The blocks that hold just these rows, each of bounded size, in order."""
    width = matrix_of(item)[1]
    for rows in ranges:
        if isinstance(item.format, DirectFormat):
            begin, end = rows.start * width, min(rows.stop * width, elements(item.shape))
            for block in item.layout.blocks(item.format, (end - begin,)):
                yield replace(block, column=begin + block.column)
        else:
            for block in item.layout.blocks(item.format, (len(rows), width)):
                yield replace(block, row=rows.start + block.row)


def detection(rows: int, of_rows: int) -> Detection:
    """What comparing `rows` of `of_rows` rows finds when 1, 1 % or 1 in 1,000 of all rows are wrong (rounded up).

    Exact for wrong rows that lie anywhere with equal chance, however the sample was chosen: of D wrong rows among N a
    sample of n misses all with C(N - D, n) / C(N, n). Mistakes at joints are found more often, since both sides of
    every joint are in the sample; a fault that avoids the sampled rows on purpose is not found at all.
    """
    return Detection(*(_found(rows, of_rows, -(-of_rows // share)) for share in (max(of_rows, 1), 100, 1000)))


def _found(rows: int, of_rows: int, wrong: int) -> float:
    # C(N - D, n) / C(N, n) is the product over i < D of 1 - n / (N - i), and the same with n and D exchanged.
    few, many = sorted((rows, wrong))
    if few == 0:
        return 0.0
    if rows + wrong > of_rows:
        return 1.0
    missed = 0.0  # logarithm of the chance that none is found
    for i in range(few):
        missed += math.log1p(-many / (of_rows - i))
        if missed < -745:  # below every positive binary64 number
            break
    return -math.expm1(missed)


def _choose(units: int, count: int, seed: int, name: str) -> Sequence[int]:
    """`count` different numbers below `units`: those with the smallest of 64-bit keys (SplitMix64 of seed and name)."""
    start = int.from_bytes(
        hashlib.sha256(f"{seed}\n{name}".encode("utf-8", "surrogatepass")).digest()[:8], "little"
    )
    steps = np.arange(1, units + 1, dtype=np.uint64) * np.uint64(_GOLDEN)
    keys = steps + np.uint64(start & _MASK)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        keys = (keys ^ (keys >> np.uint64(shift))) * np.uint64(factor)
    keys ^= keys >> np.uint64(31)
    chosen: list[int] = np.sort(np.argsort(keys, kind="stable")[:count]).tolist()
    return chosen


def _joined(ranges: Iterable[range]) -> Iterator[range]:
    """Ascending ranges with overlapping and touching ones made one."""
    current: range | None = None
    for found in sorted(ranges, key=lambda one: one.start):
        if current is not None and found.start <= current.stop:
            current = range(current.start, max(current.stop, found.stop))
            continue
        if current is not None:
            yield current
        current = found
    if current is not None:
        yield current
