"""Axis permutation of ranges: which boxes a flat range is, and how a box is read in few, bounded pieces.

Memory is the range asked for and one piece of at most `PIECE_WORDS` words, whatever the tensor's size.
"""

from collections.abc import Callable, Iterator, Sequence
from math import prod
from typing import Any, Final

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

from ninfer_core.layouts.base import Shape

Words = NDArray[np.unsignedinteger[Any]]
Read = Callable[[int, int], Words]  # words of the flat elements [begin, end)
Box = tuple[tuple[int, ...], tuple[int, ...]]  # first and one past the last index of each axis

PIECE_WORDS: Final = 1 << 20
RUN_WORDS: Final = 1 << 10  # a run this long is worth a read of its own
SPARSE: Final = 4  # a piece may hold this many times the words that are wanted


def strides(shape: Shape) -> tuple[int, ...]:
    """Elements from one index of an axis to the next, C order."""
    return tuple(prod(shape[axis + 1 :]) for axis in range(len(shape)))


def flat_index(shape: Shape, index: Sequence[int]) -> int:
    """The flat element of an index."""
    return sum(step * i for step, i in zip(strides(shape), index, strict=True))


def index_of(shape: Shape, flat: int) -> tuple[int, ...]:
    """The index of a flat element."""
    return tuple(flat // step % size for step, size in zip(strides(shape), shape, strict=True))


def boxes(shape: Shape, begin: int, end: int) -> Iterator[Box]:
    """The flat range [begin, end) of a tensor as boxes, in order; fewer than two for each axis."""
    if not shape and begin < end:
        yield (), ()
        return
    steps = strides(shape)
    while begin < end:
        index = index_of(shape, begin)
        axis = next(a for a, step in enumerate(steps) if begin % step == 0 and begin + step <= end)
        last = index[axis] + min(shape[axis] - index[axis], (end - begin) // steps[axis])
        high = (*(i + 1 for i in index[:axis]), last, *shape[axis + 1 :])
        yield index, high
        begin += (last - index[axis]) * steps[axis]


def read_transposed(
    read: Read, shape: Shape, axes: tuple[int, ...], begin: int, end: int, out: Words, exact: bool = False
) -> None:
    """Fill `out` with the flat range [begin, end) of the permuted tensor; `shape` is that before the permutation.

    With `exact` no word beside the wanted ones is read, however many reads that takes.
    """
    result = tuple(shape[axis] for axis in axes)
    inverse = tuple(axes.index(axis) for axis in range(len(axes)))
    done = 0
    for low, high in boxes(result, begin, end):
        extent = tuple(edge - start for start, edge in zip(low, high, strict=True))
        part = out[done : done + prod(extent)].reshape(extent).transpose(inverse)
        _fill(
            read,
            shape,
            tuple(low[axis] for axis in inverse),
            tuple(high[axis] for axis in inverse),
            part,
            exact,
        )
        done += prod(extent)


def _fill(
    read: Read, shape: Shape, low: tuple[int, ...], high: tuple[int, ...], out: Words, exact: bool
) -> None:
    """Fill `out`, shaped as the box, from a tensor of `shape`: one covering piece, or slices along an axis."""
    steps = strides(shape)
    first = flat_index(shape, low)
    span = flat_index(shape, [edge - 1 for edge in high]) + 1 - first
    worth = span <= SPARSE * out.size or _run(shape, low, high) < RUN_WORDS
    if span <= PIECE_WORDS and (span == out.size or (worth and not exact)):
        words = read(first, first + span)
        out[...] = as_strided(words, out.shape, [step * words.itemsize for step in steps], writeable=False)
        return
    axis = next(a for a, size in enumerate(out.shape) if size > 1)
    count = max(1, PIECE_WORDS // steps[axis]) if span > PIECE_WORDS else 1
    for start in range(low[axis], high[axis], count):
        stop = min(start + count, high[axis])
        inner = (slice(None),) * axis + (slice(start - low[axis], stop - low[axis]),)
        _fill(
            read,
            shape,
            (*low[:axis], start, *low[axis + 1 :]),
            (*high[:axis], stop, *high[axis + 1 :]),
            out[inner],
            exact,
        )


def _run(shape: Shape, low: tuple[int, ...], high: tuple[int, ...]) -> int:
    """Contiguous words at the end of a box."""
    run = 1
    for axis in reversed(range(len(shape))):
        run *= high[axis] - low[axis]
        if high[axis] - low[axis] != shape[axis]:
            break
    return run
