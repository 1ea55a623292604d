"""Row operations that are no one range of their operand: the same rows of every block, and rows by number.

Where wanted rows lie dense, one covering piece of at most `boxes.PIECE_WORDS` words is read in place of many small ones.
"""

from collections.abc import Iterator
from itertools import pairwise
from math import prod
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

from ninfer_core.layouts.base import Shape
from ninfer_core.recipes import boxes
from ninfer_core.recipes.values import CastRefused, Value, Words
from ninfer_core.sources.dtypes import DTYPES

Ids = NDArray[np.int64]


class Blocked:
    """Rows [begin, begin + count) of every `stride` rows of another value, block after block."""

    def __init__(self, of: Value, stride: int, begin: int, count: int, shape: Shape) -> None:
        self.shape, self.dtype = shape, of.dtype
        width = prod(shape[1:])
        self._of = of
        self._period, self._skip, self._keep = stride * width, begin * width, count * width

    def read(self, begin: int, end: int) -> Words:
        """See `Value.read`."""
        try:
            return self._read(begin, end, covering=True)
        except CastRefused:
            # The refused word may be a neighbour that only came along: read again without neighbours.
            return self._read(begin, end, covering=False)

    def _read(self, begin: int, end: int, covering: bool) -> Words:
        words: Words = np.empty(end - begin, DTYPES[self.dtype].word)
        dense = self._period <= boxes.SPARSE * self._keep or self._keep < boxes.RUN_WORDS
        most = boxes.PIECE_WORDS // self._period if covering and dense else 0
        at = begin
        while at < end:
            block, inside = divmod(at, self._keep)
            first = block * self._period + self._skip + inside
            blocks = min((end - at) // self._keep, most) if inside == 0 else 0
            if blocks > 1:
                piece = self._of.read(first, first + (blocks - 1) * self._period + self._keep)
                steps = (self._period * piece.itemsize, piece.itemsize)
                taken = blocks * self._keep
                part = words[at - begin : at - begin + taken].reshape(blocks, self._keep)
                part[...] = as_strided(piece, part.shape, steps, writeable=False)
            else:
                taken = min(self._keep - inside, end - at)
                try:
                    words[at - begin : at - begin + taken] = self._of.read(first, first + taken)
                except CastRefused as refused:
                    raise refused.at(at + refused.element - first) from None
            at += taken
        return words


class Gathered:
    """Rows of another value in the order of `ids`, which are row numbers of it."""

    def __init__(self, of: Value, ids: Ids, shape: Shape) -> None:
        self.shape, self.dtype = shape, of.dtype
        self._of, self._ids = of, ids
        self._width = prod(shape[1:])

    def read(self, begin: int, end: int) -> Words:
        """See `Value.read`."""
        if begin >= end:
            return np.empty(0, DTYPES[self.dtype].word)
        try:
            covered = self._read_covering(begin, end)
        except CastRefused:
            covered = None  # perhaps about a row that nobody wants
        return self._read_runs(begin, end) if covered is None else covered

    def _read_covering(self, begin: int, end: int) -> Words | None:
        """All rows out of one piece, where it is small and not much larger than what is wanted."""
        width = self._width
        row, last = begin // width, -(-end // width)
        ids = self._ids[row:last]
        low, high = int(ids.min()), int(ids.max()) + 1
        if (high - low) * width > min(boxes.PIECE_WORDS, boxes.SPARSE * (end - begin)):
            return None
        piece = self._of.read(low * width, high * width).reshape(high - low, width)
        words: Words = piece[ids - low].reshape(-1)[begin - row * width : end - row * width]
        return words

    def _read_runs(self, begin: int, end: int) -> Words:
        words: Words = np.empty(end - begin, DTYPES[self.dtype].word)
        for at, first, count in self._runs(begin, end):
            try:
                words[at - begin : at - begin + count] = self._of.read(first, first + count)
            except CastRefused as refused:
                raise refused.at(at + refused.element - first) from None
        return words

    def _runs(self, begin: int, end: int) -> Iterator[tuple[int, int, int]]:
        """(element of this value, element of the other, how many) for every stretch of following rows."""
        width = self._width
        row, last = begin // width, -(-end // width)
        ids: NDArray[Any] = self._ids[row:last]
        breaks = np.flatnonzero(np.diff(ids) != 1) + 1
        starts = [0, *breaks.tolist(), last - row]
        for start, stop in pairwise(starts):
            low = max(begin, (row + start) * width)
            high = min(end, (row + stop) * width)
            yield low, int(ids[start]) * width + low - (row + start) * width, high - low
