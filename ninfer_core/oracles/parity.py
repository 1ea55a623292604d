"""Error sums in the order of PARITY_SUMS_V1, one addition after the other, in plain binary64."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

LINE: Final = 128
TILE: Final = 32  # lines

Row = Sequence[float]
Number = TypeVar("Number", int, float)


@dataclass(frozen=True, slots=True)
class Sums:
    """Of (x - y)**2, x**2 and y**2, and the largest |x - y|."""

    squared_error: float
    source_squares: float
    value_squares: float
    largest_error: float


def sum_words(x: Sequence[Row], y: Sequence[Row]) -> Sums:
    """Over rows of finite values x and y, both exact in binary64; a block of direct words is one row."""
    error, source, value, largest = 0.0, 0.0, 0.0, 0.0
    for left, right in zip(_joined(x, x), _joined(y, y), strict=True):
        differences = [a - b for a, b in zip(left, right, strict=True)]
        error = _added(error, differences)
        source = _added(source, left)
        value = _added(value, right)
        largest = max([largest, *map(abs, differences)])
    return Sums(error, source, value, largest)


def sum_grouped(
    group: int, x: Sequence[Row], codes: Sequence[Sequence[int]], scales: Sequence[Sequence[float]]
) -> Sums:
    """Over rows of finite values x, signed codes [N, K] and the values of their scales [N, groups]."""
    y = [
        [float(code) * row_scales[lane // group] for lane, code in enumerate(row)]
        for row, row_scales in zip(codes, scales, strict=True)
    ]
    value = 0.0
    for row, row_scales in zip(_joined(codes, codes), _joined(scales, codes), strict=True):
        for first in range(0, len(row), TILE * LINE):
            products: list[float] = []
            for start in range(first, min(len(row), first + TILE * LINE), group):
                scale = row_scales[start // group]
                squares = sum(code * code for code in row[start : start + group])
                products.append(float(squares) * (scale * scale))
            value += _folded(products, LINE)
    sums = sum_words(x, y)
    return Sums(sums.squared_error, sums.source_squares, value, sums.largest_error)


def _joined(parts: Sequence[Sequence[Number]], rows: Sequence[Sequence[float]]) -> Sequence[Sequence[Number]]:
    """What belongs to each row; `rows` that end with a line are one long row."""
    if not rows or len(rows[0]) % LINE:
        return parts
    return [[one for part in parts for one in part]]


def _added(total: float, row: Row) -> float:
    """The total and the squares of one row, tile after tile."""
    for squares in _tiles(row):
        total += squares
    return total


def _tiles(row: Row) -> Iterator[float]:
    for first in range(0, len(row), TILE * LINE):
        lanes = row[first : first + TILE * LINE]
        accumulators = [0.0] * 32
        for start in range(0, len(lanes), LINE):
            line = [*lanes[start : start + LINE]]
            squares = [lane * lane for lane in line] + [0.0] * (LINE - len(line))
            for i in range(32):
                accumulators[i] += (squares[i] + squares[i + 32]) + (squares[i + 64] + squares[i + 96])
        yield _folded(accumulators, 32)


def _folded(values: list[float], places: int) -> float:
    """The sum of at most `places` numbers, a power of two: the upper half is added to the lower, until one is left."""
    left = values + [0.0] * (places - len(values))
    while len(left) > 1:
        half = len(left) // 2
        left = [a + b for a, b in zip(left[:half], left[half:], strict=True)]
    return left[0]
